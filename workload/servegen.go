package workload

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/rows"
	"github.com/tacho-bench/tacho/stat"
)

var servegen = Kind{
	Name: "servegen", Doc: "ServeGen's clients: a directory of chunk-N-trace.csv (rates and burstiness over time) and chunk-N-dataset.json (lengths over time); --trace-window picks the hours",
	Timed: true, Tokens: true, New: newServeGen,
}

// clientWindow is an interval in which a client sends at a constant rate.
type clientWindow struct {
	from, to float64 // seconds
	rate     float64 // requests per second; 0 means idle
	weibull  bool    // Weibull distribution of gaps, otherwise gamma
	shape    float64 // shape of the distribution; the mean is 1/rate
	in, out  *Length
}

// serveClient is one client.
type serveClient struct {
	name    string
	windows []clientWindow
}

// serveGen merges the randomly drawn arrivals of all clients.
type serveGen struct {
	tokenMaker
	Options
	clients []serveClient
	mu      sync.Mutex
	merge   *clientMerge
}

func newServeGen(_ context.Context, o Options) (Workload, error) {
	traces, err := filepath.Glob(filepath.Join(o.Path, "chunk-*-trace.csv"))
	if o.Path == "" || err != nil || len(traces) == 0 {
		return nil, fmt.Errorf("servegen: no chunk-*-trace.csv in %q; set --dataset-path to the directory of one model", o.Path)
	}
	slices.Sort(traces)
	w := &serveGen{Options: o, tokenMaker: newTokenMaker(o)}
	for _, path := range traces {
		c, err := readClient(path, o.Trace.Window)
		if err != nil {
			return nil, fmt.Errorf("servegen: %w", err)
		}
		if len(c.windows) > 0 {
			w.clients = append(w.clients, c)
		}
	}
	if len(w.clients) == 0 {
		return nil, fmt.Errorf("servegen: no client of %s sends requests in the window; choose other hours with --trace-window", o.Path)
	}
	return w, nil
}

// readClient reads the windows of a client within span, except idle ones.
func readClient(path string, span Window) (serveClient, error) {
	c := serveClient{name: strings.TrimSuffix(filepath.Base(path), "-trace.csv")}
	lengths, err := readClientLengths(strings.TrimSuffix(path, "-trace.csv") + "-dataset.json")
	if err != nil {
		return c, err
	}
	all, err := readClientWindows(path)
	if err != nil {
		return c, err
	}
	for i, win := range all {
		win.from = max(win.from, span.From.Seconds())
		if span.To > 0 {
			win.to = min(win.to, span.To.Seconds())
		}
		if win.rate == 0 || win.to <= win.from {
			continue
		}
		if win.in, win.out = lengths.at(all[i].from); win.in == nil {
			return c, fmt.Errorf("%s: no lengths at time %v s", path, all[i].from)
		}
		c.windows = append(c.windows, win)
	}
	return c, nil
}

// readClientWindows reads all windows of a client. Each window ends at the start of the
// next; the last window is as long as the one before.
func readClientWindows(path string) ([]clientWindow, error) {
	lines, err := rows.OpenLines(path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	var all []clientWindow
	for text := range lines.All {
		win, err := parseClientWindow(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, lines.Number(), err)
		}
		if n := len(all); n > 0 {
			if win.from <= all[n-1].from {
				return nil, fmt.Errorf("%s:%d: its time is not after the time of the previous line", path, lines.Number())
			}
			all[n-1].to = win.from
			win.to = win.from + win.from - all[n-1].from
		}
		all = append(all, win)
	}
	return all, lines.Err()
}

func parseClientWindow(text string) (w clientWindow, err error) {
	f := strings.Split(text, ",")
	if len(f) != 6 {
		return w, fmt.Errorf("%d fields, want time, rate, cv, pattern and its two parameters", len(f))
	}
	var errs [3]error
	w.from, errs[0] = strconv.ParseFloat(f[0], 64)
	w.rate, errs[1] = strconv.ParseFloat(f[1], 64)
	w.shape, errs[2] = strconv.ParseFloat(f[4], 64)
	if err := firstError(errs[:]...); err != nil {
		return w, err
	}
	switch strings.TrimSpace(f[3]) {
	case "":
		w.rate = 0
		return w, nil
	case "Gamma":
	case "Weibull":
		w.weibull = true
	case "Exponential", "Poisson":
		w.shape = 1
	default:
		return w, fmt.Errorf("arrival pattern %q is not one of Gamma, Weibull, Exponential", f[3])
	}
	if !(w.from >= 0) || !(w.rate >= 0) || !(w.shape > 0) {
		return w, fmt.Errorf("time %v, rate %v, shape %v", w.from, w.rate, w.shape)
	}
	return w, nil
}

// clientLengths are length distributions, each valid from a time.
type clientLengths []lengthsFrom

type lengthsFrom struct {
	from    float64
	in, out Length
}

func (l clientLengths) at(t float64) (in, out *Length) {
	for i := range slices.Backward(l) {
		if l[i].from <= t {
			return &l[i].in, &l[i].out
		}
	}
	return nil, nil
}

// readClientLengths reads {"600": {"input_tokens": "{12: 0.5, ...}", ...}}. The inner
// objects are Python literals in a string.
func readClientLengths(path string) (clientLengths, error) {
	b, err := atomicfile.Read(path)
	if err != nil {
		return nil, err
	}
	var file map[string]map[string]string
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out clientLengths
	for at, fields := range file {
		from, err := strconv.ParseFloat(at, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a time in seconds", path, at)
		}
		in, err1 := parseHistogram(fields["input_tokens"])
		answer, err2 := parseHistogram(fields["output_tokens"])
		if err := firstError(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: at %s s: %w", path, at, err)
		}
		if in.table == nil || answer.table == nil {
			continue // no requests in this interval
		}
		out = append(out, lengthsFrom{from, in, answer})
	}
	slices.SortFunc(out, func(a, b lengthsFrom) int { return cmp.Compare(a.from, b.from) })
	return out, nil
}

// parseHistogram reads {12: 0.5, 13: 0.5}.
func parseHistogram(text string) (l Length, err error) {
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "{"), "}")
	sum := 0.0
	for part := range strings.SplitSeq(inner, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, share, _ := strings.Cut(part, ":")
		n, err1 := strconv.Atoi(strings.TrimSpace(key))
		p, err2 := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err1 != nil || err2 != nil || n < 0 || !(p >= 0) {
			return l, fmt.Errorf("%q is not TOKENS: SHARE", part)
		}
		if p > 0 {
			sum += p
			l.sums, l.table = append(l.sums, sum), append(l.table, bin{n, n})
		}
	}
	return l, nil
}

// clientMerge draws the arrivals of all clients in order of time.
type clientMerge struct {
	queue clientQueue
	index uint64
}

// clientState is a client and its next arrival.
type clientState struct {
	*serveClient
	rng    *rand.Rand
	window int
	next   float64
}

func (w *serveGen) newMerge() *clientMerge {
	m := &clientMerge{}
	for i := range w.clients {
		s := &clientState{serveClient: &w.clients[i], rng: rngOf(w.Seed^0x636c69656e7473, uint64(i)), next: w.clients[i].windows[0].from}
		if s.advance() {
			m.queue = append(m.queue, s)
		}
	}
	heap.Init(&m.queue)
	return m
}

// advance draws the next arrival. It returns false if there is none.
func (s *clientState) advance() bool {
	for s.window < len(s.windows) {
		win := &s.windows[s.window]
		at := max(s.next, win.from) + win.gap(s.rng)
		if at < win.to {
			s.next = at
			return true
		}
		s.window++
		s.next = 0
	}
	return false
}

func (w *clientWindow) gap(r *rand.Rand) float64 {
	if w.weibull {
		return math.Pow(r.ExpFloat64(), 1/w.shape) / math.Gamma(1+1/w.shape) / w.rate
	}
	return stat.Gamma(r, w.shape) / w.shape / w.rate
}

// take returns the time, client and window of the next arrival.
func (m *clientMerge) take() (float64, *serveClient, *clientWindow, error) {
	if len(m.queue) == 0 {
		return 0, nil, nil, io.EOF
	}
	s := m.queue[0]
	at, client, win := s.next, s.serveClient, &s.windows[s.window]
	if s.advance() {
		heap.Fix(&m.queue, 0)
	} else {
		heap.Pop(&m.queue)
	}
	m.index++
	return at, client, win, nil
}

// Arrivals implements tacho.Pacer.
func (w *serveGen) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for m := w.newMerge(); !w.full(m.index); {
			at, _, _, err := m.take()
			if err != nil {
				return
			}
			due := time.Duration(math.Round(at*1e9)) - w.Trace.Window.From
			if !yield(w.Trace.scale(due)) {
				return
			}
		}
	}
}

func (w *serveGen) full(i uint64) bool {
	return w.Trace.Limit > 0 && i >= uint64(w.Trace.Limit) || w.Count > 0 && i >= uint64(w.Count)
}

// Session implements tacho.Source.
func (w *serveGen) Session(i uint64) (tacho.Session, error) {
	if w.full(i) {
		return tacho.Session{}, io.EOF
	}
	client, win, err := w.arrival(i)
	if err != nil {
		return tacho.Session{}, err
	}
	return single(i, w.request(i, client, win)), nil
}

// arrival returns the client and window of request i.
func (w *serveGen) arrival(i uint64) (client *serveClient, win *clientWindow, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.merge == nil || w.merge.index > i {
		w.merge = w.newMerge()
	}
	for w.merge.index <= i && err == nil {
		_, client, win, err = w.merge.take()
	}
	return client, win, err
}

func (w *serveGen) request(i uint64, client *serveClient, win *clientWindow) tacho.Request {
	rng := rngOf(w.Seed^0x6c656e67746873, i)
	q := tacho.Request{MaxTokens: win.out.Draw(rng, 1), IgnoreEOS: w.IgnoreEOS, Labels: tacho.Labels{{Key: "client", Value: client.name}}}
	w.fill(&q, i, win.in.Draw(rng, 1), nil, 1, w.Seed)
	return q
}

// Notes implements Workload.
func (w *serveGen) Notes() []string { return w.notes() }

// Warmup implements Workload.
func (w *serveGen) Warmup(i uint64) (tacho.Session, error) {
	c := &w.clients[i%uint64(len(w.clients))]
	return single(warmupBase+i, w.request(warmupBase+i, c, &c.windows[0])), nil
}

type clientQueue []*clientState

func (q clientQueue) Len() int { return len(q) }
func (q clientQueue) Less(a, b int) bool {
	return q[a].next < q[b].next || q[a].next == q[b].next && q[a].name < q[b].name
}
func (q clientQueue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *clientQueue) Push(x any)   { *q = append(*q, x.(*clientState)) }

// Pop implements heap.Interface.
func (q *clientQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
