package cluster_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tacho/cli"
)

// roleVariable says what this program is when a test starts it once more.
const roleVariable = "FIELD_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "tacho":
		os.Exit(cli.Main(cli.System()))
	case "nats":
		os.Exit(node(os.Args[1:]))
	}
	os.Exit(m.Run())
}

const token = "open sesame"

// node is a NATS server as a process of its own: one of a cluster. It is told its
// name, its address, the address for the others, those of all, and a directory.
func node(args []string) int {
	name, at, route, all, dir := args[0], args[1], args[2], args[3], args[4]
	host, port := splitPort(at)
	routeHost, routePort := splitPort(route)
	o := &server.Options{
		ServerName: name, Host: host, Port: port, Authorization: token, AuthTimeout: patient.Seconds(), NoLog: true, JetStream: true, StoreDir: dir,
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
	for s.ReadyForConnections(time.Minute) && !s.JetStreamIsCurrent() {
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Println("ready")
	s.WaitForShutdown()
	return 0
}

func splitPort(address string) (host string, port int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.Atoi(text)
	return host, port
}

// A field is machines of which each has an address: namespaces of their own, or
// all of them this one.
type field struct {
	t      *testing.T
	dir    string
	within func(machine string) (address string, prefix []string) // the command that enters it

	token   string
	natsURL string
	target  string
	truth   string
	spool   string // the limit of an agent's spool
}

// here is a field on one machine.
func here(string) (string, []string) { return "127.0.0.1", nil }

// newField starts three NATS servers, and a simulated engine that writes down the
// truth.
func newField(t *testing.T, within func(string) (string, []string)) *field {
	t.Helper()
	f := &field{t: t, dir: t.TempDir(), within: within, token: token}
	f.truth = filepath.Join(f.dir, "truth.jsonl")
	return f
}

// A process is one that a field runs.
type process struct {
	cmd    *exec.Cmd
	out    output
	over   chan struct{}
	killed bool
}

// output is what a process has said, on both of its ways.
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

// start starts this program in a role, on a machine.
func (f *field) start(machine, role string, args ...string) *process {
	f.t.Helper()
	self, err := os.Executable()
	must(f.t, err)
	_, prefix := f.within(machine)
	words := append(append(prefix, self), args...)
	p := &process{cmd: exec.Command(words[0], words[1:]...), over: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, "TACHO_NATS_TOKEN="+f.token, "XDG_CONFIG_HOME="+f.dir, "XDG_CACHE_HOME="+f.dir)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	must(f.t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.over) }()
	f.t.Cleanup(func() {
		p.kill()
		if f.t.Failed() {
			f.t.Logf("%s on %s: %v\n%s", role, machine, args, p.out.String())
		}
	})
	return p
}

// kill ends a process as nobody would wish to end.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill() // it may be over
	<-p.over
}

// await waits until a process has said something, and returns that.
func (p *process) await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(3 * patient); ; time.Sleep(5 * time.Millisecond) {
		if found := re.FindString(p.out.String()); found != "" {
			return found
		}
		select {
		case <-p.over:
			t.Fatalf("it ended, and never said %q", pattern)
		default:
			if time.Now().After(deadline) {
				t.Fatalf("it did not say %q in %v", pattern, 3*patient)
			}
		}
	}
}

// nats starts three NATS servers that are one.
func (f *field) nats() (nodes []*process) {
	f.t.Helper()
	var at, routes []string
	for i := range 3 {
		host, _ := f.within(fmt.Sprintf("nats-%d", i))
		at = append(at, net.JoinHostPort(host, freePort(f.t)))
		routes = append(routes, net.JoinHostPort(host, freePort(f.t)))
	}
	for i := range 3 {
		name := fmt.Sprintf("nats-%d", i)
		nodes = append(nodes, f.start(name, "nats", name, at[i], routes[i], strings.Join(routes, ","), filepath.Join(f.dir, name)))
	}
	for _, n := range nodes {
		n.await(f.t, "ready")
	}
	f.natsURL = "nats://" + strings.Join(at, ",nats://")
	return nodes
}

// freePort is a port that nobody has.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

// sim starts the engine that knows the truth.
func (f *field) sim() {
	f.t.Helper()
	host, _ := f.within("server")
	p := f.start("server", "tacho", "sim", "--host", host, "--port", "0", "--ttft", "50ms", "--itl", "5ms", "--truth", f.truth)
	f.target = p.await(f.t, `http://\S+`)
}

// agent starts an agent on a machine of its own.
func (f *field) agent(name string) *process {
	f.t.Helper()
	p := f.start(name, "tacho", "agent", "--join", f.natsURL, "--name", name, "--allow-target", f.target,
		"--spool", filepath.Join(f.dir, "spool", name), "--spool-limit", cmp.Or(f.spool, "1G"))
	p.await(f.t, "is ready")
	return p
}

// requests is how many a run of these tests has; it takes eight seconds.
const requests = 320

// bench starts a run with some agents.
func (f *field) bench(agents int, more ...string) *process {
	f.t.Helper()
	return f.start("coordinator", "tacho", append(strings.Fields(fmt.Sprintf(
		"bench --agents %d --num-prompts %d --request-rate 40 --random-input-len 20 --random-output-len 10 --seed 1 --request-id-prefix r- --no-html --no-trial --nats %s --base-url %s --runs-dir %s",
		agents, requests, f.natsURL, f.target, filepath.Join(f.dir, "runs"))), more...)...)
}

// midway waits until a good part of a run is kept.
func (f *field) midway() {
	f.t.Helper()
	for deadline := time.Now().Add(3 * patient); len(f.kept()) < requests/4; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatal("the run does not come to its middle")
		}
	}
}

// runDir is the directory of the one run.
func (f *field) runDir() string {
	f.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(f.dir, "runs", "2*"))
	must(f.t, err)
	if len(dirs) != 1 {
		f.t.Fatalf("runs: %v", dirs)
	}
	return dirs[0]
}

// fieldRecord is what a test looks at in a record.
type fieldRecord struct {
	ID    string
	Agent string
	Due   time.Duration `json:"due_ns"`
	Sent  time.Duration `json:"sent_ns"`
}

// kept are the records of the run so far.
func (f *field) kept() (out []fieldRecord) {
	files, _ := filepath.Glob(filepath.Join(f.dir, "runs", "2*", "records.jsonl"))
	if len(files) != 1 {
		return nil
	}
	return readLines[fieldRecord](f.t, files[0])
}

// readLines reads the whole lines of a file.
func readLines[T any](t *testing.T, name string) (out []T) {
	t.Helper()
	file, err := os.Open(name)
	must(t, err)
	defer func() { _ = file.Close() }()
	for r := bufio.NewReader(file); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return out // what has no end is being written
		}
		var v T
		must(t, json.Unmarshal(line, &v))
		out = append(out, v)
	}
}

// check holds what is kept against what the server knows: nothing that was
// answered to its end is lost, and nothing is there twice. Of an agent that was
// killed, the last byte of an answer may have been on its way.
func (f *field) check(most int) (kept map[string]int) {
	f.t.Helper()
	kept = map[string]int{}
	for _, r := range f.kept() {
		kept[r.ID]++
	}
	known, lost := map[string]bool{}, 0
	for _, a := range readLines[struct{ ID, Finish string }](f.t, f.truth) {
		known[a.ID] = true
		if a.Finish != "" && kept[a.ID] == 0 {
			lost++
		}
	}
	for id, n := range kept {
		if n != 1 || !known[id] {
			f.t.Errorf("%s is kept %d times, and the server knows of it: %v", id, n, known[id])
		}
	}
	if lost > most {
		f.t.Errorf("%d requests were answered to their end, and are not kept", lost)
	}
	return kept
}

// whole wants all requests of the run, once.
func (f *field) whole() {
	f.t.Helper()
	if kept := f.check(0); len(kept) != requests {
		f.t.Errorf("%d of %d requests are kept", len(kept), requests)
	}
}

// end waits for the end of a run, and wants it to have said something.
func (f *field) end(p *process, words ...string) {
	f.t.Helper()
	select {
	case <-p.over:
	case <-time.After(longest):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it says where it is
		<-p.over
		f.t.Fatal("the run does not end")
	}
	for _, w := range words {
		if !strings.Contains(p.out.String(), w) {
			f.t.Errorf("it does not say %q:\n%s", w, p.out.String())
		}
	}
}
