//go:build real

package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/stat"
)

// A trial is a server, a load and a client that may be disturbed.
type trial struct {
	answerPattern answerPattern
	streams       int
	tokens        int
	flags         []string
	busy          int           // loops that compete for the client's core
	churn         int           // processes that use memory, disk and the kernel
	build         bool          // a compiler on all cores
	stops         int           // number of times the client is stopped
	stopAt        time.Duration // time of the first stop
	stopFor       time.Duration // duration of a stop
	shared        bool          // server and client share a core
	limit         int           // concurrency of a closed loop of single requests; 0 for other loads
	quota         time.Duration // CPU time per 100 ms; 0 for no quota
	proxy         string        // buffering mode of nginx; empty for no proxy
	http2         bool          // to nginx
	relay         string        // what a relay holds back: a number of events or a time; empty for no relay
	page          bool          // the server has a metrics page
	kill          bool          // kill an agent
}

func (c *trial) lasts() time.Duration {
	return c.answerPattern.TTFT + time.Duration(c.tokens)*c.answerPattern.Gap
}

// between returns a number from low to high.
func between(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }

func millis(r *rand.Rand, low, high int) time.Duration {
	return time.Duration(between(r, low, high)) * time.Millisecond
}

// steady is a server without faults and a load within its capacity.
func steady(r *rand.Rand) trial {
	gap := millis(r, 15, 60)
	return trial{
		answerPattern: answerPattern{TTFT: millis(r, 100, 400), Gap: gap}, streams: between(r, 50, 400),
		tokens: int(time.Duration(between(r, 1500, 2500)) * time.Millisecond / gap),
	}
}

// A kind describes a class of runs.
type kind struct {
	name  string
	of    func(r *rand.Rand, c *trial)
	wrong func(observation) string // describes an error of the verdict; nil checks the errors only
	proxy bool                     // the server cannot know the delay of the proxy
	needs string                   // program without which the kind is skipped
}

// kinds are all classes of runs.
var kinds = slices.Concat([]kind{
	{name: "steady", of: func(*rand.Rand, *trial) {}},
	{name: "few streams", of: func(r *rand.Rand, c *trial) { c.streams = between(r, 1, 10) }},
	{name: "many streams", of: func(r *rand.Rand, c *trial) {
		c.streams, c.answerPattern.Gap, c.tokens, c.answerPattern.TTFT = between(r, 800, 1500), 60*time.Millisecond, 30, time.Second
	}},
	{name: "uneven gaps", of: func(_ *rand.Rand, c *trial) { c.answerPattern.Jitter = 1.5 }},
	{name: "bursts", of: func(r *rand.Rand, c *trial) { c.answerPattern.Burst = between(r, 2, 10) }},
	{name: "bursts in one write", of: func(r *rand.Rand, c *trial) {
		c.answerPattern.Burst, c.answerPattern.Together = between(r, 2, 10), true
	}},
	{name: "saturated server", of: func(_ *rand.Rand, c *trial) {
		c.answerPattern.Spin = 2 * c.answerPattern.Gap / time.Duration(c.streams)
		c.tokens /= 2
	}},
	{name: "late burst", of: func(r *rand.Rand, c *trial) {
		c.answerPattern.HoldAt, c.answerPattern.Hold = between(r, 1, c.tokens-1), millis(r, 200, 800)
	}},
	{name: "starved", of: func(_ *rand.Rand, c *trial) { c.busy = 2 }},
	{name: "starved, bursts", of: func(r *rand.Rand, c *trial) { c.busy, c.answerPattern.Burst = 2, between(r, 2, 10) }},
	{name: "starved, many streams", of: func(r *rand.Rand, c *trial) {
		c.busy, c.streams, c.answerPattern.Gap, c.tokens, c.answerPattern.TTFT = 2, between(r, 600, 1000), 50*time.Millisecond, 40, time.Second
	}},
	{name: "beside a build", of: func(_ *rand.Rand, c *trial) { c.churn = 2 }},
	{name: "starved beside a compiler", needs: "go", of: func(r *rand.Rand, c *trial) {
		c.busy, c.build, c.streams, c.answerPattern.Gap, c.tokens, c.answerPattern.TTFT = 2, true, between(r, 800, 1000), 50*time.Millisecond, 100, time.Second
	}},
	{name: "stopped", of: func(r *rand.Rand, c *trial) {
		c.stops, c.stopAt, c.stopFor = 1, c.answerPattern.TTFT+millis(r, 300, 1500), millis(r, 20, 600)
	}},
	{name: "stopped often", of: func(r *rand.Rand, c *trial) {
		c.stops, c.stopAt, c.stopFor = between(r, 5, 15), c.answerPattern.TTFT, millis(r, 5, 60)
	}},
	{name: "stopped at the end", of: func(r *rand.Rand, c *trial) {
		c.stops, c.stopAt, c.stopFor = 1, c.lasts()+200*time.Millisecond, millis(r, 200, 500)
		c.answerPattern.EndLate = millis(r, 0, 30)
	}},
	{name: "stopped, late end", of: func(r *rand.Rand, c *trial) {
		c.tokens = 10
		c.stops, c.stopAt, c.stopFor = 20, 0, millis(r, 20, 60)
		c.answerPattern.EndLate = millis(r, 20, 50)
	}},
	{name: "TLS", of: func(_ *rand.Rand, c *trial) { c.answerPattern.TLS = true }},
	{name: "TLS, bursts", of: func(r *rand.Rand, c *trial) { c.answerPattern.TLS, c.answerPattern.Burst = true, between(r, 2, 10) }},
	{name: "TLS, starved", of: func(_ *rand.Rand, c *trial) { c.answerPattern.TLS, c.busy = true, 2 }},
	{name: "Nagle", of: func(_ *rand.Rand, c *trial) { c.answerPattern.Nagle = true }},
	{name: "IPv6", of: func(_ *rand.Rand, c *trial) { c.answerPattern.IPv6 = true }},
	{name: "open loop", of: func(r *rand.Rand, c *trial) {
		rate := between(r, 100, 400)
		c.streams, c.tokens, c.answerPattern.TTFT = 4*rate, 5, millis(r, 30, 100)
		c.flags = []string{"--request-rate", strconv.Itoa(rate)}
	}},
	{name: "open loop, starved", of: func(r *rand.Rand, c *trial) {
		rate := between(r, 50, 200)
		c.streams, c.tokens, c.busy, c.answerPattern.TTFT = 4*rate, 5, 2, millis(r, 30, 100)
		c.flags = []string{"--request-rate", strconv.Itoa(rate)}
	}},
	{name: "closed loop", of: func(r *rand.Rand, c *trial) {
		limit := between(r, 10, 100)
		c.streams, c.tokens, c.answerPattern.TTFT, c.limit = 10*limit, 5, millis(r, 30, 100), limit
		c.flags = []string{"--max-concurrency", strconv.Itoa(limit)}
	}},
	{name: "closed loop, stopped", of: func(r *rand.Rand, c *trial) {
		limit := between(r, 10, 100)
		c.streams, c.tokens, c.answerPattern.TTFT, c.limit = 10*limit, 5, millis(r, 30, 100), limit
		c.flags = []string{"--max-concurrency", strconv.Itoa(limit)}
		c.stops, c.stopAt, c.stopFor = 3, 500*time.Millisecond, millis(r, 20, 300)
	}},
	{name: "open loop, stopped", of: func(r *rand.Rand, c *trial) {
		rate := between(r, 50, 200)
		c.streams, c.tokens, c.answerPattern.TTFT = 4*rate, 5, millis(r, 30, 100)
		c.flags = []string{"--request-rate", strconv.Itoa(rate)}
		c.stops, c.stopAt, c.stopFor = 2, 800*time.Millisecond, millis(r, 20, 800)
	}},
	{name: "burst that leaves late", of: func(r *rand.Rand, c *trial) {
		c.streams, c.tokens, c.busy, c.answerPattern.TTFT = between(r, 1000, 2000), 5, between(r, 0, 2), millis(r, 50, 200)
	}},
	{name: "one core for both", of: func(_ *rand.Rand, c *trial) { c.shared = true }},
}, disturbed, shapes)

// Limits for a wrong verdict.
const (
	validMost    = 0.02  // largest error of a VALID run, as a fraction of the value
	invalidLeast = 0.002 // smallest error of an INVALID run, unless its load was wrong:
	rateMost     = 0.10  // rate error,
	stoppedMost  = 0.50  // fraction of a paced load for which the client was stopped,
	spreadMost   = 1.00  // or spread of a burst in multiples of TTFT
)

// The verdict is correct for many classes of runs, compared with kernel
// timestamps of the server's segments. VERDICT is the number of runs.
func TestRealVerdictIsTrue(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("VERDICT"))
	if runs == 0 {
		t.Skip("make test-verdict does it: minutes, and a core of its own for each end")
	}
	chosen := chosenKinds(t, os.Getenv("VERDICT_KIND"))
	first, _ := strconv.Atoi(os.Getenv("VERDICT_FROM"))
	table := map[string]*tally{}
	for i := first; i < first+runs; i++ {
		kind, clock := chosen[i/2%len(chosen)], []string{"kernel", "wire"}[i%2]
		r := rand.New(rand.NewPCG(uint64(i), 12))
		c := steady(r)
		kind.of(r, &c)
		o := c.run(t, clock)
		wrong := kind.mistake(o)
		if wrong != "" {
			wrong = "WRONG " + wrong
			t.Fail()
		}
		fmt.Printf("%s%-22s %-6s %4d x %3d: %s %s\n", wrong, kind.name, clock, c.streams, c.tokens, o, o.said)
		if table[kind.name] == nil {
			table[kind.name] = &tally{causes: map[string]int{}, accurate: map[string]int{}}
		}
		table[kind.name].add(o, wrong != "")
	}
	printTally(chosen, table)
}

// chosenKinds returns the kinds whose names begin with one of the given words, and whose programs are installed.
func chosenKinds(t *testing.T, words string) (out []kind) {
	t.Helper()
	for _, k := range kinds {
		if !slices.ContainsFunc(strings.Split(words, ","), func(word string) bool { return strings.HasPrefix(k.name, word) }) {
			continue
		}
		if k.needs != "" {
			if _, err := exec.LookPath(k.needs); err != nil {
				fmt.Printf("%s is skipped: %v\n", k.name, err)
				continue
			}
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		t.Fatalf("no kind begins with %q", words)
	}
	return out
}

// mistake describes an error of the verdict, or returns "".
func (k *kind) mistake(o observation) string {
	names := func(code string) bool { return strings.Contains(o.said, " "+code+":") }
	switch {
	case o.stopped && slices.ContainsFunc([]string{"buffered", "lumps", "unexplained-lumps", "held-back"}, names):
		return "names a proxy for a stopped client; "
	case o.word == "VALID" && o.figure.share > validMost && !k.proxy:
		return "VALID, but " + o.figure.String() + "; "
	case k.wrong != nil:
		return k.wrong(o)
	case o.word == "VALID" && (o.worst() > validMost || o.idle > idleMost):
		return "VALID; "
	case o.word == "INVALID" && o.worst() < invalidLeast && o.figure.share < invalidLeast && o.load < 1 && o.idle < idleMost &&
		(!o.bursts || !names("buffered")):
		return "INVALID without a cause; "
	case o.missing > 0:
		return "missing; "
	}
	return ""
}

// A tally sums up the runs of a kind.
type tally struct {
	verdicts [3]int // VALID, DEGRADED, INVALID
	small    [3]int // errors below invalidLeast
	large    [3]int // errors above validMost
	wrong    int
	worst    wrongFigure // of VALID runs
	causes   map[string]int
	accurate map[string]int // causes of verdicts below VALID with errors below invalidLeast: all causes of a run
}

var words = []string{"VALID", "DEGRADED", "INVALID"}

func (c *tally) add(o observation, wrong bool) {
	at := slices.Index(words, o.word)
	if at < 0 {
		return
	}
	c.verdicts[at]++
	switch off := max(o.worst(), o.figure.share); {
	case off < invalidLeast:
		c.small[at]++
	case off > validMost:
		c.large[at]++
	}
	if at == 0 && o.figure.share > c.worst.share {
		c.worst = o.figure
	}
	if wrong {
		c.wrong++
	}
	var codes []string
	for reason := range strings.SplitSeq(o.said, "; ") {
		if severity, rest, ok := strings.Cut(reason, " "); ok && (severity == "degraded" || severity == "invalid") {
			code, _, _ := strings.Cut(strings.TrimSpace(rest), ":")
			c.causes[code]++
			codes = append(codes, code)
		}
	}
	if at > 0 && max(o.worst(), o.figure.share) < invalidLeast {
		c.accurate[o.word+" "+strings.Join(codes, ", ")]++
	}
}

// printTally prints a line for each kind, and the verdicts by error.
func printTally(chosen []kind, table map[string]*tally) {
	all := tally{accurate: map[string]int{}}
	fmt.Printf("\n%-40s %5s %5s %8s %7s  %-32s %s\n", "kind", "wrong", "VALID", "DEGRADED", "INVALID", "largest error of VALID", "causes")
	for _, k := range chosen {
		c := table[k.name]
		if c == nil {
			continue
		}
		var causes []string
		for _, code := range slices.Sorted(maps.Keys(c.causes)) {
			causes = append(causes, fmt.Sprintf("%s %d", code, c.causes[code]))
		}
		worst := ""
		if c.verdicts[0] > 0 {
			worst = c.worst.String()
		}
		fmt.Printf("%-40s %5d %5d %8d %7d  %-32s %s\n", k.name, c.wrong, c.verdicts[0], c.verdicts[1], c.verdicts[2], worst, strings.Join(causes, ", "))
		for i := range words {
			all.verdicts[i], all.small[i], all.large[i] = all.verdicts[i]+c.verdicts[i], all.small[i]+c.small[i], all.large[i]+c.large[i]
		}
		all.wrong += c.wrong
		for causes, n := range c.accurate {
			all.accurate[causes+" ("+k.name+")"] += n
		}
	}
	fmt.Printf("\n%-10s %10s %10s %10s\n", "error", "< 0.2 %", "", "> 2 %")
	for i, word := range words {
		fmt.Printf("%-10s %10d %10d %10d\n", word, all.small[i], all.verdicts[i]-all.small[i]-all.large[i], all.large[i])
	}
	fmt.Printf("wrong: %d\n\nerrors below 0.2 %%, not VALID:\n", all.wrong)
	for _, causes := range slices.Sorted(maps.Keys(all.accurate)) {
		fmt.Printf("%4d %s\n", all.accurate[causes], causes)
	}
}

// An observation contains the errors of a run as fractions of the true p99.
type observation struct {
	word    string
	said    string
	ttft    deviation
	itl     deviation
	load    float64 // distance from the requested load; 1 or more is a wrong load
	idle    float64 // fraction of time in which slots of a closed loop were idle
	missing int
	stopped bool        // the client was stopped
	bursts  bool        // the server sent many answers in bursts
	figure  wrongFigure // published figure with the largest error
}

// A deviation contains the errors of values and of their p99.
type deviation struct {
	p99    float64 // true value, in milliseconds
	values float64 // p99 of |reported - true|, in milliseconds
	off    float64 // error of the p99 itself
}

// leastMillis is the verdict's limit: shorter times need no better accuracy.
const leastMillis = 5

func (d deviation) part() float64 { return max(d.values, d.off) / max(d.p99, leastMillis) }

func (d deviation) String() string {
	return fmt.Sprintf("%7.2f ms off by %6.3f, p99 itself by %6.3f", d.p99, d.values, d.off)
}

func (o observation) worst() float64 { return max(o.ttft.part(), o.itl.part()) }

func (o observation) String() string {
	return fmt.Sprintf("%-8s %6.2f %%; TTFT %v; ITL %v; load %.2f; idle %.1f %%; %d missing; %v;", o.word, 100*o.worst(), o.ttft, o.itl, o.load, 100*o.idle, o.missing, o.figure)
}

// deviate compares reported with true values.
func deviate(reported, truth []float64) deviation {
	if len(truth) == 0 {
		return deviation{p99: math.Inf(1)} // answers of one token have no gaps
	}
	apart := make([]float64, len(truth))
	for i := range truth {
		apart[i] = max(reported[i]-truth[i], truth[i]-reported[i])
	}
	told, was := stat.New(reported).Quantile(.99), stat.New(truth).Quantile(.99)
	return deviation{p99: was, values: stat.New(apart).Quantile(.99), off: max(told-was, was-told)}
}

func (c *trial) run(t *testing.T, clock string) observation {
	t.Helper()
	here, there := ends()
	if c.shared {
		there = here
	}
	file := filepath.Join(t.TempDir(), "serverRecord")
	words := must.Get(json.Marshal(c.answerPattern))(t)
	var w *child
	onCore(here, func() { w = start(t, "witness", string(words), file) })
	scheme, flags := "http://", append(c.flags, "--clock", clock, "--num-prompts", strconv.Itoa(c.streams), "--random-output-len", strconv.Itoa(c.tokens))
	if c.answerPattern.TLS {
		scheme, flags = "https://", append(flags, "--insecure")
	}
	url := scheme + w.line()
	if c.proxy != "" {
		var address string
		onCore(here, func() { address = c.nginx(t, strings.TrimPrefix(url, scheme)) })
		url = scheme + address
	}
	if c.page {
		flags = append(flags, "--metrics-url", url+"/metrics")
	}
	if c.relay != "" {
		onCore(here, func() { url = scheme + start(t, "relay", strings.TrimPrefix(url, scheme), c.relay).line() })
	}
	if c.http2 {
		url, flags = "https://"+strings.TrimPrefix(url, scheme), append(flags, "--insecure", "--http2")
	}
	if c.build {
		defer start(t, "compile", t.TempDir()).stop()
	}
	onCore(there, func() {
		for range c.busy {
			defer start(t, "busy").stop()
		}
		for range c.churn {
			defer start(t, "churn", t.TempDir()).stop()
		}
	})
	u := commandWith(t, func(cmd *exec.Cmd) (err error) {
		onCore(there, func() { err = cmd.Start() })
		if err == nil && c.stops > 0 {
			go c.stop(cmd.Process.Pid)
		}
		if err == nil && c.quota > 0 {
			c.throttle(t, cmd.Process.Pid)
		}
		if err == nil && c.kill {
			go c.killOne(cmd.Process.Pid)
		}
		return err
	}, []string{url}, flags...)
	w.stop()
	truth := must.Get(readServerRecords(file))(t)
	o := heldAgainst(u, truth, c.uneven())
	o.stopped, o.bursts = c.stops > 0, inBursts(truth)
	o.idle = idleSlots(u.records, truth, c.limit)
	if !c.uneven() {
		o.load = c.otherLoad(u.records, truth, o.ttft.p99)
	}
	return o
}

// heldAgainst compares a run with the server's records.
// uneven is set if the client may take other events for tokens than the server.
func heldAgainst(u used, truth map[string]serverRecord, uneven bool) observation {
	var ttft, itl, trueTTFT, trueITL []float64
	o := observation{said: u.verdict(), figure: published(u.records, truth)}
	o.word, o.said, _ = strings.Cut(o.said, "; ")
	ms := func(nanos int64) float64 { return float64(nanos) / 1e6 }
	for i := range u.records {
		r := &u.records[i]
		w, ok := truth[r.ID]
		if uneven && ok && r.OK() {
			continue
		}
		if !ok || len(w.Left) != len(r.Events) || !r.OK() {
			o.missing++
			o.said += fmt.Sprintf("; %s: %d events, the server sent %d, %v", r.ID, len(r.Events), len(w.Left), r.Failure)
			continue
		}
		for k, e := range r.Events {
			if k == 0 {
				ttft, trueTTFT = append(ttft, ms(int64(e.At-r.Sent))), append(trueTTFT, ms(w.Left[0]-w.Received))
			} else {
				itl, trueITL = append(itl, ms(int64(e.At-r.Events[k-1].At))), append(trueITL, ms(w.Left[k]-w.Left[k-1]))
			}
		}
	}
	if uneven {
		return o
	}
	o.ttft, o.itl = deviate(ttft, trueTTFT), deviate(itl, trueITL)
	return o
}

// otherLoad returns the distance of the received load from the requested load;
// 1 or more is a wrong load.
func (c *trial) otherLoad(records records, truth map[string]serverRecord, ttft float64) float64 {
	var due, received []float64 // in milliseconds
	for i := range records {
		if w, ok := truth[records[i].ID]; ok {
			due, received = append(due, float64(records[i].Due)/1e6), append(received, float64(w.Received)/1e6)
		}
	}
	asked, was := stat.New(due), stat.New(received)
	lasted, took := asked.Max()-asked.Min(), was.Max()-was.Min()
	switch {
	case len(was) < 2 || took <= 0:
		return 0
	case len(c.flags) == 0:
		return took / ttft / spreadMost
	}
	load := float64(time.Duration(c.stops)*c.stopFor) / 1e6 / took / stoppedMost
	if slices.Contains(c.flags, "--request-rate") {
		load = max(load, math.Abs(lasted/took-1)/rateMost)
	}
	return load
}

// stop repeatedly stops and continues a process.
func (c *trial) stop(pid int) {
	time.Sleep(300*time.Millisecond + c.stopAt) // until it has started
	for range c.stops {
		if unix.Kill(pid, unix.SIGSTOP) != nil {
			return
		}
		time.Sleep(c.stopFor)
		_ = unix.Kill(pid, unix.SIGCONT) // may have exited
		time.Sleep(c.stopFor + 20*time.Millisecond)
	}
}

// busyLoop is the role of a process that uses a processor.
func busyLoop([]string) error { //nolint:unparam // a role may fail
	end := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(end)
	}()
	for x := 1.0; ; x *= 1.0000001 {
		select {
		case <-end:
			return nil
		default:
		}
	}
}

// compile is the role of a heavy build: the standard library, repeatedly,
// without a cache.
func compile(args []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	for i := 0; ctx.Err() == nil; i++ {
		cache := filepath.Join(args[0], strconv.Itoa(i))
		cmd := exec.CommandContext(ctx, "go", "build", "net/http", "go/types", "encoding/json")
		cmd.Dir, cmd.Env = args[0], append(os.Environ(), "GOCACHE="+cache, roleVar+"=")
		cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true} // includes the compilers
		cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
		if out, err := cmd.CombinedOutput(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		_ = os.RemoveAll(cache) // the rest is removed with the test
	}
	return nil
}

// churn is the role of a process that resembles a compiler: it touches new
// memory, writes files and starts processes.
func churn(args []string) error {
	end := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(end)
	}()
	for {
		select {
		case <-end:
			return nil
		default:
		}
		b, err := unix.Mmap(-1, 0, 32<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		f, err := os.Create(filepath.Join(args[0], "object"))
		if err != nil {
			return err
		}
		_, err = f.Write(b[:8<<20])
		if err == nil {
			err = f.Sync()
		}
		_ = f.Close()
		_ = unix.Munmap(b)
		_ = exec.Command("/bin/true").Run()
		if err != nil {
			return err
		}
	}
}
