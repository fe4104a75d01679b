//go:build real || netns

package cluster_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
)

// roleVariable selects the role of this program when a test starts it again.
const roleVariable = "FIELD_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "tacho":
		os.Exit(cli.Main(cli.System()))
	case "nats":
		os.Exit(node(os.Args[1:]))
	case "server":
		fmt.Fprintln(os.Stderr, simulate(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// node runs one NATS server of a cluster. Its arguments are name, address, cluster address
// and all cluster addresses.
func node(args []string) int {
	name, at, route, all := args[0], args[1], args[2], args[3]
	host, port := splitPort(at)
	routeHost, routePort := splitPort(route)
	o := &server.Options{
		ServerName: name, Host: host, Port: port, Authorization: token, AuthTimeout: patient.Seconds(), NoLog: true,
		Cluster: server.ClusterOpts{Name: "c", Host: routeHost, Port: routePort},
	}
	for r := range strings.SplitSeq(all, ",") {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.Start()
	others := strings.Count(all, ",")
	if s.ReadyForConnections(longest) && eventually(context.Background(), func() bool { return s.NumRoutes() >= others }) {
		fmt.Println("ready")
	}
	s.WaitForShutdown()
	return 0
}

func splitPort(address string) (host string, port int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.Atoi(text)
	return host, port
}

// simulate runs the simulated server. Its arguments are the host, the file with the number of
// requests it may answer, the file for the number of waiting requests, and the truth log.
func simulate(args []string) error {
	host, gate, waiting, truth := args[0], args[1], args[2], args[3]
	file, err := os.Create(truth)
	if err != nil {
		return err
	}
	engine, err := sim.New(sim.Options{TTFT: 50 * time.Millisecond, ITL: 5 * time.Millisecond, TruthLog: file})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	g := &gated{engine: engine, changed: make(chan struct{})}
	go g.watch(gate, waiting)
	return http.Serve(l, g)
}

// gated is an engine that answers only requests with numbers below the one in a file; another
// file has the number of waiting requests. Without the first file it answers all.
type gated struct {
	engine http.Handler

	mu      sync.Mutex
	below   int
	changed chan struct{} // closed when below changes
	waiting int
}

// watch reads the first file and writes the second.
func (g *gated) watch(gate, tells string) {
	told := -1
	for range time.Tick(pollEvery) {
		below := math.MaxInt
		if text, err := os.ReadFile(gate); err == nil {
			below, _ = strconv.Atoi(string(text))
		}
		g.mu.Lock()
		if below != g.below {
			g.below = below
			close(g.changed)
			g.changed = make(chan struct{})
		}
		waiting := g.waiting
		g.mu.Unlock()
		if waiting != told && atomicfile.Write(tells, []byte(strconv.Itoa(waiting))) == nil {
			told = waiting
		}
	}
}

// ServeHTTP implements http.Handler.
func (g *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // net/http notices a disconnected client only after the body is read
	r.Body = io.NopCloser(bytes.NewReader(body))
	n, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get("X-Request-Id"), "r-"))
	if err != nil || g.pass(r.Context(), n) {
		g.engine.ServeHTTP(w, r)
	}
}

// pass waits until a request may be answered. It returns false if the client disconnects.
func (g *gated) pass(ctx context.Context, n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	defer func() { g.waiting-- }()
	for n >= g.below && ctx.Err() == nil {
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
	return ctx.Err() == nil
}

// A field is a set of machines with addresses: network namespaces, or addresses of this
// machine.
type field struct {
	t      *testing.T
	dir    string
	within func(machine string) (address string, prefix []string) // the prefix runs a command on that machine

	token   string
	natsURL string
	target  string
	truth   string
	spool   string // disk limit of an agent's spool
	orphan  string // seconds that an agent sends the load of a silent coordinator
}

// here returns a field on this machine. Each machine has its own loopback address, so other
// programs cannot take its free ports.
func here() func(machine string) (string, []string) {
	known := map[string]string{}
	return func(machine string) (string, []string) {
		if known[machine] == "" {
			known[machine] = privateAddress()
		}
		return known[machine], nil
	}
}

// addresses counts the loopback addresses in use.
var addresses atomic.Uint32

// privateAddress returns a loopback address that no other test uses. Only Linux has more than
// one by default.
func privateAddress() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	n := uint32(os.Getpid())<<8 + addresses.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 1+n>>16%250, n>>8%256, 1+n%250)
}

// newField returns a field without processes.
func newField(t *testing.T, within func(string) (string, []string)) *field {
	t.Helper()
	f := &field{t: t, dir: t.TempDir(), within: within, token: token}
	f.truth = filepath.Join(f.dir, "truth.jsonl")
	return f
}

// A process is a process of a field.
type process struct {
	cmd    *exec.Cmd
	out    output
	exited chan struct{}
	killed bool
}

// output collects standard output and standard error of a process.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts this program in a role on a machine.
func (f *field) start(machine, role string, args ...string) *process {
	f.t.Helper()
	self := must.Get(os.Executable())(f.t)
	_, prefix := f.within(machine)
	words := append(append(prefix, self), args...)
	p := &process{cmd: exec.Command(words[0], words[1:]...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, "TACHO_NATS_TOKEN="+f.token, "XDG_CONFIG_HOME="+f.dir, "XDG_CACHE_HOME="+f.dir)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	must.Do(f.t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.exited) }()
	f.t.Cleanup(func() {
		p.kill()
		if f.t.Failed() {
			f.t.Logf("%s on %s: %v\n%s", role, machine, args, p.out.String())
		}
	})
	return p
}

// kill kills a process with SIGKILL.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill() // may have exited already
	<-p.exited
}

// await waits for a line of a process and returns it.
func (p *process) await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	found, ended := "", false
	eventually(t.Context(), func() bool {
		select {
		case <-p.exited:
			ended = true
		default:
		}
		found = re.FindString(p.out.String())
		return found != "" || ended
	})
	if found == "" {
		t.Fatalf("it did not say %q; it ended: %v", pattern, ended)
	}
	return found
}

// nats starts a cluster of three NATS servers.
func (f *field) nats() (nodes []*process) {
	f.t.Helper()
	var at, routes []string
	for i := range 3 {
		host, _ := f.within(fmt.Sprintf("nats-%d", i))
		at = append(at, freeAddress(f.t, host))
		routes = append(routes, freeAddress(f.t, host))
	}
	for i := range 3 {
		name := fmt.Sprintf("nats-%d", i)
		nodes = append(nodes, f.start(name, "nats", name, at[i], routes[i], strings.Join(routes, ",")))
	}
	for _, n := range nodes {
		n.await(f.t, "ready")
	}
	f.natsURL = "nats://" + strings.Join(at, ",nats://")
	return nodes
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil { // the host is in another namespace, where any port is free
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	must.Do(t, err)
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must.Do(t, err)
	return net.JoinHostPort(host, port)
}

// serve starts the simulated server, which writes the truth log.
func (f *field) serve() {
	f.t.Helper()
	host, _ := f.within("server")
	f.target = f.start("server", "server", host, f.gate(), f.waiting(), f.truth).await(f.t, `http://\S+`)
}

// gate is the file with the number of requests that the server may answer.
func (f *field) gate() string { return filepath.Join(f.dir, "answer") }

// waiting is the file with the number of waiting requests.
func (f *field) waiting() string { return filepath.Join(f.dir, "waiting") }

// awaitWaiting waits until n requests wait for the server.
func (f *field) awaitWaiting(n int) {
	f.t.Helper()
	var text []byte
	if !eventually(f.t.Context(), func() bool { text, _ = os.ReadFile(f.waiting()); return string(text) == strconv.Itoa(n) }) {
		f.t.Fatalf("%s requests wait, want %d", text, n)
	}
}

// answer lets the server answer the first n requests.
func (f *field) answer(n int) {
	f.t.Helper()
	must.Do(f.t, atomicfile.Write(f.gate(), []byte(strconv.Itoa(n))))
}

// agent starts an agent on its own machine.
func (f *field) agent(name string) *process {
	f.t.Helper()
	p := f.start(name, "tacho", "agent", "--join", f.natsURL, "--name", name, "--allow-target", f.target,
		"--spool", filepath.Join(f.dir, "spool", name), "--spool-limit", cmp.Or(f.spool, "1G"), "--orphan-timeout", cmp.Or(f.orphan, "600"))
	p.await(f.t, "is ready")
	return p
}

// Number of requests of a run in these tests, number that is answered before a part of the
// cluster is killed, and number that is answered before it returns.
const (
	requests = 120
	before   = 40
	away     = 80
)

// bench starts a run with agents.
func (f *field) bench(agents int, more ...string) *process {
	f.t.Helper()
	if f.natsURL != "" {
		more = append([]string{"--nats", f.natsURL}, more...)
	}
	if !slices.Contains(more, "--num-prompts") { // two values are an error
		more = append(more, "--num-prompts", strconv.Itoa(requests))
	}
	return f.start("coordinator", "tacho", append(strings.Fields(fmt.Sprintf(
		"bench --agents %d --random-input-len 20 --random-output-len 10 --seed 1 --request-id-prefix r- --no-html --no-trial --trust-agent any --base-url %s --runs-dir %s",
		agents, f.target, filepath.Join(f.dir, "runs"))), more...)...)
}

// benchWithNATS starts a run whose coordinator contains NATS, and its agents.
func (f *field) benchWithNATS(at string, agents int, more ...string) *process {
	f.t.Helper()
	f.natsURL = ""
	p := f.bench(agents, append(more, "--nats-listen", at)...)
	_, pin, _ := strings.Cut(p.await(f.t, `--join 'tls://[^']+`), "#")
	f.natsURL = "tls://" + at + "#" + pin
	for i := range agents {
		f.agent(fmt.Sprintf("agent-%d", i))
	}
	return p
}

// awaitKept waits until the first requests of a run are stored. The server answers no others
// yet.
func (f *field) awaitKept() {
	f.t.Helper()
	if !eventually(f.t.Context(), func() bool { return len(f.kept()) >= before }) {
		f.t.Fatalf("%d requests are kept, and %d were answered", len(f.kept()), before)
	}
}

// awaitSpooled waits until the spools of the agents contain the first n requests. Small spools
// keep delivered records until the level ends.
func (f *field) awaitSpooled(n int) {
	f.t.Helper()
	if !eventually(f.t.Context(), func() bool { return len(f.spooled()) >= n }) {
		f.t.Fatalf("%d requests are in the spools, and %d were answered", len(f.spooled()), n)
	}
}

// spooled returns the ids of the records in all spools.
func (f *field) spooled() map[string]bool {
	files, _ := filepath.Glob(filepath.Join(f.dir, "spool", "*", "*", "*.jsonl"))
	ids := map[string]bool{}
	for _, name := range files {
		for _, r := range readLines[fieldRecord](f.t, name) {
			ids[r.ID] = true
		}
	}
	return ids
}

// runDir returns the directory of the only run.
func (f *field) runDir() string {
	f.t.Helper()
	dirs := must.Get(filepath.Glob(filepath.Join(f.dir, "runs", "2*")))(f.t)
	if len(dirs) != 1 {
		f.t.Fatalf("runs: %v", dirs)
	}
	return dirs[0]
}

// fieldRecord is the part of a record that the tests use.
type fieldRecord struct {
	ID    string
	Agent string
	Due   time.Duration `json:"due_ns"`
	Sent  time.Duration `json:"sent_ns"`
}

// kept returns the records stored so far.
func (f *field) kept() (out []fieldRecord) {
	files, _ := filepath.Glob(filepath.Join(f.dir, "runs", "2*", "records.jsonl"))
	if len(files) != 1 {
		return nil
	}
	return readLines[fieldRecord](f.t, files[0])
}

// readLines reads the complete lines of a file.
func readLines[T any](t *testing.T, name string) (out []T) {
	t.Helper()
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil // deleted meanwhile
	}
	must.Do(t, err)
	defer func() { _ = file.Close() }()
	for r := bufio.NewReader(file); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return out // an incomplete line is being written
		}
		var v T
		must.Do(t, json.Unmarshal(line, &v))
		out = append(out, v)
	}
}

// check compares the stored records with the truth log: no completely answered request is
// missing or duplicated.
func (f *field) check() (kept map[string]int) {
	f.t.Helper()
	kept = map[string]int{}
	for _, r := range f.kept() {
		kept[r.ID]++
	}
	known := map[string]bool{}
	for _, a := range readLines[struct{ ID, Finish string }](f.t, f.truth) {
		known[a.ID] = true
		if a.Finish != "" && kept[a.ID] == 0 {
			f.t.Errorf("%s was answered to its end, and is not kept", a.ID)
		}
	}
	for id, n := range kept {
		if n != 1 || !known[id] {
			f.t.Errorf("%s is kept %d times, and the server knows of it: %v", id, n, known[id])
		}
	}
	return kept
}

// complete fails unless each request of the run is stored once.
func (f *field) complete() {
	f.t.Helper()
	if kept := f.check(); len(kept) != requests {
		f.t.Errorf("%d of %d requests are kept", len(kept), requests)
	}
}

// end waits for the end of a run and checks its output.
func (f *field) end(p *process, words ...string) {
	f.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(longest):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // prints all goroutines
		<-p.exited
		f.t.Fatal("the run does not end")
	}
	for _, w := range words {
		if !strings.Contains(p.out.String(), w) {
			f.t.Errorf("it does not say %q:\n%s", w, p.out.String())
		}
	}
}
