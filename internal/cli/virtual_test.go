package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recorded"
	"github.com/tacho-bench/tacho/sim"
)

// network connects the commands of these tests with their servers. Tests run in
// testing/synctest bubbles, where time advances only while all goroutines are
// blocked.
var network memnet.Network

// unstarted returns a server with an address on the in-memory network.
func unstarted(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	l := must.Get(network.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	return &httptest.Server{Listener: l, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}}
}

// listen starts a server on the in-memory network.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := unstarted(t, h)
	srv.Start()
	return srv
}

// simulated returns an engine that answers after 5 ms and then every
// millisecond.
func simulated(t *testing.T) *sim.Server {
	t.Helper()
	s := must.Get(sim.New(sim.Options{TTFT: 5 * time.Millisecond, ITL: time.Millisecond, Model: "tiny"}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// inside runs the program in this process on the in-memory network.
func inside(vars map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Main(&cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Network: &network,
		Getenv: func(name string) string { return vars[name] }, Width: func() int { return 200 },
	})
	return code, out.String(), errs.String()
}

// TestScripts runs the program in virtual time: each file of testdata/script is
// a session. $SERVER is a simulated server, $AUDIO one that transcribes, $CLOSED an address without a
// listener, $SEEDS the directory of the original reports.
func TestScripts(t *testing.T) {
	params := scripts(t, "testdata/script")
	params.Cmds["tacho"], params.Cmds["measure"], params.Cmds["seek"] = tachoInside, judged("bench"), judged("find")
	params.Cmds["exits"], params.Cmds["begin"], params.Cmds["interrupt"], params.Cmds["ended"] = exits, begin, interruptOne, ended
	params.Setup = inBubble(params.Setup)
	testscript.RunT(bubbles{t}, params)
}

// bubbles is a testscript.T that runs every script in its own bubble,
// sequentially, because scripts share the working directory.
type bubbles struct{ *testing.T }

func (b bubbles) Run(name string, script func(testscript.T)) {
	b.T.Run(name, func(t *testing.T) {
		t.Chdir(t.TempDir())
		synctest.Test(t, func(t *testing.T) { script(bubbles{t}) })
	})
}

func (bubbles) Parallel()     {}
func (bubbles) Verbose() bool { return testing.Verbose() }

// inBubble adds a server on the in-memory network to the setup of a script.
func inBubble(setup func(*testscript.Env) error) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		t := e.T().(bubbles).T
		s := simulated(t)
		l, err := network.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go func() { _ = s.Serve(l) }()
		e.Setenv("SERVER", "http://"+l.Addr().String())
		al, err := network.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		audio := &http.Server{Handler: recorded.Open("openai-audio")}
		t.Cleanup(func() { _ = audio.Close() })
		go func() { _ = audio.Serve(al) }()
		e.Setenv("AUDIO", "http://"+al.Addr().String())
		e.Values[running{}] = map[string]*command{}
		return setup(e)
	}
}

// tachoInside runs the program in this process.
func tachoInside(ts *testscript.TestScript, not bool, args []string) {
	if code := insideScript(ts, args...); (code != 0) != not {
		ts.Fatalf("tacho exits with %d", code)
	}
}

// judged runs a command that measures and accepts the verdict INVALID, because
// many scripts send only a few requests.
func judged(command string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		if code := insideScript(ts, append([]string{command}, args...)...); code != 0 && code != 4 {
			ts.Fatalf("tacho %s exits with %d", command, code)
		}
	}
}

// exits runs the program and checks its exit code: exits CODE ARGUMENT...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if code := insideScript(ts, args[1:]...); strconv.Itoa(code) != args[0] {
		ts.Fatalf("tacho exits with %d", code)
	}
}

// insideScript runs the program for a script and returns its exit code.
func insideScript(ts *testscript.TestScript, args ...string) int {
	return cli.Main(insideEnv(ts, ts.Stdout(), ts.Stderr(), args))
}

func insideEnv(ts *testscript.TestScript, out, errs io.Writer, args []string) *cli.Env {
	ts.Check(os.Chdir(ts.MkAbs(".")))
	return &cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Getenv: ts.Getenv, Network: &network,
		Width: func() int { return 80 }, Height: func() int { return 24 }, Kill: func(code int) { panic(fmt.Sprint("killed with ", code)) },
	}
}

// running is the key under which a script stores its background commands, by
// name.
type running struct{}

// A command runs in the background.
type command struct {
	out, errs bytes.Buffer
	interrupt chan os.Signal
	code      chan int
}

// begin starts the program in the background: begin NAME ARGUMENT...
func begin(ts *testscript.TestScript, _ bool, args []string) {
	c := &command{interrupt: make(chan os.Signal, 2), code: make(chan int, 1)}
	env := insideEnv(ts, &c.out, &c.errs, args[1:])
	env.Interrupt = c.interrupt
	go func() { c.code <- cli.Main(env) }()
	ts.Value(running{}).(map[string]*command)[args[0]] = c
	ts.Defer(func() { c.interrupt <- os.Interrupt }) // otherwise it would outlive a failed script
}

// interruptOne sends a signal to a command, SIGINT by default: interrupt NAME
// [SIGNAL].
func interruptOne(ts *testscript.TestScript, _ bool, args []string) {
	ts.Value(running{}).(map[string]*command)[args[0]].interrupt <- signals[append(args, "int")[1]]
}

// ended waits for a command and checks its exit code: ended NAME CODE.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	c := ts.Value(running{}).(map[string]*command)[args[0]]
	code := <-c.code
	_, _ = ts.Stdout().Write(c.out.Bytes())
	_, _ = ts.Stderr().Write(c.errs.Bytes())
	if strconv.Itoa(code) != args[1] {
		ts.Fatalf("tacho exits with %d, want %s", code, args[1])
	}
}
