package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

// traceFlags are the options for replaying traces.
type traceFlags struct {
	SelfTimed     bool    `flag:"self-timed" default:"true" help:"replay a trace at its own times (the default unless --request-rate or a ramp is given)"`
	NoSelfTimed   bool    `flag:"no-self-timed" help:"ignore the times of a trace: send all requests immediately, up to --max-concurrency"`
	TraceSpeedup  float64 `flag:"trace-speedup" default:"1" help:"+ speed-up factor of the replay"`
	TraceWindow   Window  `flag:"trace-window" help:"+ replay only this part, by time since the first line: 60-120 (seconds), 10m-20m, 1h-"`
	TraceLimit    int     `flag:"trace-limit" help:"+ replay at most this many requests (weka and otel: sessions)"`
	TraceBlock    int     `flag:"trace-block-size" most:"tokens" help:"+ tokens per hash id; by default the value of the format"`
	TraceSessions bool    `flag:"trace-sessions" help:"+ make a request wait for the previous request of its conversation; reads the complete trace before the start"`
	timedFlags
}

func (f *traceFlags) trace() TraceOptions {
	return TraceOptions{Speedup: f.TraceSpeedup, Window: f.TraceWindow, Limit: f.TraceLimit, Block: f.TraceBlock, Sessions: f.TraceSessions}
}

func (f *traceFlags) check() error {
	switch {
	case !(f.TraceSpeedup > 0):
		return fmt.Errorf("--trace-speedup %v: must be above 0", f.TraceSpeedup)
	case f.TraceLimit < 0:
		return fmt.Errorf("--trace-limit %d: must be a number of requests, or 0 for all", f.TraceLimit)
	case f.TraceBlock < 0:
		return fmt.Errorf("--trace-block-size %d: must not be negative", f.TraceBlock)
	}
	return nil
}

// TraceOptions are the options for replaying a trace.
type TraceOptions struct {
	Speedup  float64 // speed-up factor; 0 means 1
	Window   Window  // part of the trace to replay
	Limit    int     // maximum number of requests; 0 means unlimited
	SkipBad  bool    // count bad lines instead of stopping
	Block    int     // tokens per hash id; 0 means the default of the format
	Sessions bool    // keep the requests of a conversation in order

	UnitS  float64           // timed_trace: seconds per time unit; 0 means 1
	Fields map[string]string // timed_trace: field names by default name

	countOnly bool // only count the hash ids
}

// Window is a part of a trace by the time since its first line. A zero To means the end
// of the trace. It is written as 60-120 (seconds) or 10m-20m.
type Window struct{ From, To time.Duration }

// MarshalText implements encoding.TextMarshaler.
func (w Window) MarshalText() ([]byte, error) {
	switch {
	case w == Window{}:
		return nil, nil
	case w.To == 0:
		return []byte(w.From.String() + "-"), nil
	}
	return []byte(w.From.String() + "-" + w.To.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Window) UnmarshalText(b []byte) error {
	from, to, ok := strings.Cut(string(b), "-")
	out := Window{}
	err := firstError(parseOffset(from, &out.From), parseOffset(to, &out.To))
	if !ok || err != nil || out.To != 0 && out.To <= out.From {
		return fmt.Errorf("%q is not a trace window; write FROM-TO, as in 60-120 (seconds) or 10m-20m", b)
	}
	*w = out
	return nil
}

func parseOffset(text string, d *time.Duration) error {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	s, err := strconv.ParseFloat(text, 64)
	if err == nil {
		*d, err = secondsOf(s, 1)
		return err
	}
	*d, err = time.ParseDuration(text)
	return err
}

// secondsOf converts n units of unitS seconds to a duration.
func secondsOf(n, unitS float64) (time.Duration, error) {
	ns := math.Round(n * unitS * 1e9)
	if !(ns >= 0 && ns < math.MaxInt64/2) {
		return 0, fmt.Errorf("%v is not a valid time in a trace", n)
	}
	return time.Duration(ns), nil
}

// traceRow is one request of a trace.
type traceRow struct {
	At            time.Duration // on the clock of the trace
	Input, Output int           // tokens
	Hashes        []int64       // hash ids of the prompt's blocks; nil if missing or only counted
	Blocks        int           // number of hash ids
	Model, Type   string
	ID, Parent    string // ids of the conversation, if any
}

// traceFormat is the format of a trace with one request per line, in order of time.
type traceFormat struct {
	name   string
	header bool // the first line contains the column names
	block  int  // tokens per hash id
	parse  func(line []byte, columns []string, o *TraceOptions) (traceRow, error)
}

// traceCursor reads a trace from its beginning.
type traceCursor struct {
	*Options
	format  *traceFormat
	lines   *rows.Lines
	line    []byte // line of the latest request
	columns []string
	origin  time.Duration // time of the first line
	last    time.Duration // time of the previous line since origin
	begun   bool
	untimed bool   // ignore times, so lines may be in any order
	index   uint64 // index of the next request in the window
	bad     rows.Bad
	empty   int // requests without tokens
}

func openTrace(f *traceFormat, o *Options) (*traceCursor, error) {
	if o.Path == "" {
		return nil, fmt.Errorf("%s: no trace; set its file with --dataset-path", f.name)
	}
	lines, err := rows.OpenLines(o.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	c := &traceCursor{Options: o, format: f, lines: lines, bad: rows.Bad{Skip: o.Trace.SkipBad}}
	if f.header {
		for column := range bytes.SplitSeq(lines.Next(), []byte(",")) {
			c.columns = append(c.columns, strings.Trim(string(column), "\" \r"))
		}
	}
	return c, nil
}

// next returns the next request of the window and its due time. It returns io.EOF after
// the last request.
func (c *traceCursor) next() (traceRow, time.Duration, error) {
	t := &c.Trace
	for line := c.lines.Next(); line != nil; line = c.lines.Next() {
		if t.Limit > 0 && c.index >= uint64(t.Limit) || c.Count > 0 && c.index >= uint64(c.Count) {
			return traceRow{}, 0, io.EOF
		}
		row, since, err := c.read(line)
		if err != nil {
			if err := c.bad.Take(fmt.Errorf("%s:%d: %w", c.Path, c.lines.Number(), err)); err != nil {
				return row, 0, fmt.Errorf("%s: %w", c.format.name, err)
			}
			continue
		}
		switch {
		case since < t.Window.From:
			continue
		case t.Window.To > 0 && since >= t.Window.To:
			return row, 0, io.EOF
		case row.Input == 0 || row.Output == 0:
			c.empty++
			continue
		}
		c.index++
		c.line = line
		return row, t.scale(since - t.Window.From), nil
	}
	if err := c.lines.Err(); err != nil {
		return traceRow{}, 0, fmt.Errorf("%s: %w", c.format.name, err)
	}
	return traceRow{}, 0, io.EOF
}

// read parses a line and returns its time since the first line.
func (c *traceCursor) read(line []byte) (traceRow, time.Duration, error) {
	row, err := c.format.parse(line, c.columns, &c.Trace)
	if err != nil {
		return row, 0, err
	}
	if err := checkTokens(row.Input, row.Output); err != nil {
		return row, 0, err
	}
	if err := checkBlocks(&row, c.block()); err != nil {
		return row, 0, err
	}
	if !c.begun {
		c.begun, c.origin = true, row.At
	}
	since := row.At - c.origin
	if since < c.last && !c.untimed {
		return row, 0, fmt.Errorf("its time, %v after the first line, is before the time of an earlier line, %v; sort the trace by time", since, c.last)
	}
	c.last = since
	return row, since, nil
}

func (c *traceCursor) block() int {
	if c.Trace.Block > 0 {
		return c.Trace.Block
	}
	return c.format.block
}

// maxTraceTokens is more than any model accepts. A larger number is an error in the trace
// and must not exhaust the memory.
const maxTraceTokens = 1 << 24

func checkTokens(in, out int) error {
	if in < 0 || out < 0 || in > maxTraceTokens || out > maxTraceTokens {
		return fmt.Errorf("%d prompt tokens and %d output tokens are out of range", in, out)
	}
	return nil
}

// checkBlocks compares the number of hash ids with the length of the prompt. The last
// block may be partial; if it has no hash id, it belongs to this request alone.
func checkBlocks(row *traceRow, block int) error {
	n := row.Blocks
	if n == 0 || n == row.Input/block || n == (row.Input+block-1)/block {
		return nil
	}
	return fmt.Errorf("%d hash ids of %d tokens each do not match a prompt of %d tokens; check --trace-block-size", n, block, row.Input)
}

// scale converts a time of the trace to a time of the replay.
func (t *TraceOptions) scale(d time.Duration) time.Duration {
	if t.Speedup == 0 || t.Speedup == 1 {
		return d
	}
	return tacho.Nanos(float64(d) / t.Speedup)
}

func (c *traceCursor) close() { c.lines.Close() }

// readTrace calls fn for the requests of a trace until fn returns false. It ignores
// times, so lines may be in any order.
func readTrace(f *traceFormat, o Options, fn func(traceRow) bool) error {
	o.Count = 0
	c, err := openTrace(f, &o)
	if err != nil {
		return err
	}
	defer c.close()
	c.untimed = true
	for {
		row, _, err := c.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil || !fn(row) {
			return err
		}
	}
}

// lineTrace replays a trace of any length. Only the current line is in memory.
type lineTrace struct {
	tokenMaker
	Options
	format  *traceFormat
	columns []string // column names, if there is a header
	mu      sync.Mutex
	cursor  *traceCursor
	bad     rows.Bad // bad lines of the cursor that got furthest
	empty   int
}

// newTrace returns the New function of a format.
func newTrace(f *traceFormat) func(context.Context, Options) (Workload, error) {
	return func(_ context.Context, o Options) (Workload, error) {
		if !(o.Trace.Speedup >= 0) || math.IsInf(o.Trace.Speedup, 0) {
			return nil, fmt.Errorf("%s: --trace-speedup %v: must be above 0", f.name, o.Trace.Speedup)
		}
		w := &lineTrace{Options: o, format: f, tokenMaker: newTokenMaker(o)}
		c, err := openTrace(f, &w.Options)
		if err != nil {
			return nil, err
		}
		defer c.close()
		w.columns = c.columns
		// The first line shows whether the file is such a trace.
		if _, _, err := c.next(); errors.Is(err, io.EOF) {
			where := " in it"
			if o.Trace.Window != (Window{}) {
				where = " in the window; choose another part with --trace-window"
			}
			return nil, fmt.Errorf("%s: %s has no request%s%s", f.name, o.Path, where, c.bad.Also())
		} else if err != nil {
			return nil, err
		}
		if o.Trace.Sessions {
			return newTraceSessions(w)
		}
		return w, nil
	}
}

// Arrivals implements tacho.Pacer. If a line cannot be read, Arrivals yields one more
// arrival, so that the runner calls Session and gets the error.
func (w *lineTrace) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		c, err := openTrace(w.format, &w.Options)
		if err != nil {
			yield(0)
			return
		}
		defer c.close()
		defer w.record(c)
		last := time.Duration(0)
		for {
			_, due, err := c.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(last)
				return
			}
			if last = due; !yield(due) {
				return
			}
		}
	}
}

// record keeps the errors found by the cursor that got furthest.
func (w *lineTrace) record(c *traceCursor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recordLocked(c)
}

func (w *lineTrace) recordLocked(c *traceCursor) {
	if c.bad.Count > w.bad.Count {
		w.bad = c.bad
	}
	w.empty = max(w.empty, c.empty)
}

// row returns request i. It reads on from the latest request, or from the beginning if i
// is before that.
func (w *lineTrace) row(i uint64) (row traceRow, due time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cursor == nil || w.cursor.index > i {
		if w.cursor != nil {
			w.cursor.close()
		}
		if w.cursor, err = openTrace(w.format, &w.Options); err != nil {
			return row, 0, err
		}
	}
	for w.cursor.index <= i {
		if row, due, err = w.cursor.next(); err != nil {
			break
		}
	}
	w.recordLocked(w.cursor)
	if err != nil { // a failed cursor cannot continue
		w.cursor.close()
		w.cursor = nil
	}
	return row, due, err
}

// Session implements tacho.Source.
func (w *lineTrace) Session(i uint64) (tacho.Session, error) {
	row, _, err := w.row(i)
	if err != nil {
		return tacho.Session{}, err
	}
	return single(i, w.request(i, &row, w.Seed)), nil
}

func (w *lineTrace) request(i uint64, row *traceRow, seed uint64) tacho.Request {
	q := tacho.Request{MaxTokens: row.Output, IgnoreEOS: w.IgnoreEOS, InputTokens: row.Input}
	if row.Type != "" {
		q.Labels = tacho.Labels{{Key: "type", Value: row.Type}}
	}
	block := w.Trace.Block
	if block == 0 {
		block = w.format.block
	}
	w.fill(&q, i, row.Input, row.Hashes, block, seed)
	return q
}

// Warmup implements Workload. It returns a request with lengths of the trace but
// different tokens.
func (w *lineTrace) Warmup(i uint64) (tacho.Session, error) {
	one := w.Options
	one.Count = 0
	c, err := openTrace(w.format, &one)
	if err != nil {
		return tacho.Session{}, err
	}
	defer c.close()
	row, _, err := c.next()
	for k := uint64(0); k < i%64 && err == nil; k++ {
		var more traceRow
		if more, _, err = c.next(); err == nil {
			row = more
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return tacho.Session{}, err
	}
	row.Hashes = nil
	return single(warmupBase+i, w.request(warmupBase+i, &row, w.Seed)), nil
}

// Notes implements Workload.
func (w *lineTrace) Notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := append(w.bad.Notes(), w.notes()...)
	if w.empty > 0 {
		out = append(out, fmt.Sprintf("%d requests of the trace without prompt or output tokens were left out; the load is lower than the recorded load by as many requests", w.empty))
	}
	return out
}

// tokenMaker makes prompts from their length and the hash ids of shared blocks.
type tokenMaker struct {
	ids   bool
	vocab idRange
}

func newTokenMaker(o Options) tokenMaker { return tokenMaker{o.IDs, idsBelow(max(o.Vocab, 0))} }

// fill gives q a prompt of n tokens. Blocks with the same hash have the same tokens, in
// every request and every process. Tokens without a hash are unique to session i.
func (m tokenMaker) fill(q *tacho.Request, i uint64, n int, hashes []int64, block int, seed uint64) {
	var text strings.Builder
	if m.ids {
		q.Input.IDs = make([]int32, 0, n)
	}
	made := 0
	add := func(r *rand.Rand, want int) {
		for ; want > 0 && made < n; want-- {
			if m.ids {
				q.Input.IDs = append(q.Input.IDs, m.vocab.draw(r))
			} else {
				if made > 0 {
					text.WriteByte(' ')
				}
				text.WriteString(commonWords[r.IntN(len(commonWords))])
			}
			made++
		}
	}
	for _, h := range hashes {
		add(rand.New(rand.NewPCG(seed^0x626c6f636b73, uint64(h))), block)
	}
	add(rngOf(seed, i), n-made)
	q.Input.Text = text.String()
	q.InputTokens = n
}

// notes reports that words are not tokens.
func (m tokenMaker) notes() []string {
	if m.ids {
		return nil
	}
	return []string{"the backend accepts no token ids, so prompts have one word per token of the trace and the server may count differently; for exact lengths choose a --backend that accepts ids, such as vllm"}
}
