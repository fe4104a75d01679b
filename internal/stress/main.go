//go:build unix

// Command stress runs tests many times under conditions that expose dependence on timing:
// a busy machine, one core, a CPU quota, a machine with pauses. It prints a table of
// failed tests.
//
//	bin/stress [FLAGS] PACKAGE ...
//
// The exit status is 1 if a test failed, and 2 if the tests could not be run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// errFailed is returned if at least one test failed.
var errFailed = errors.New("tests failed")

// options are the flags and arguments.
type options struct {
	runs       int
	run        string // a regular expression, as for go test -run
	tags       string
	race       bool
	conditions []condition
	timeout    time.Duration
	out        string // the directory for the output of failed tests
	patterns   []string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == helperArgument {
		help(os.Args[2:])
		return
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		err = stress(ctx, o, os.Stdout, os.Stderr)
		stop()
	}
	switch {
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(2)
	}
}

// parse parses the command line.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("stress", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.runs, "n", 20, "runs of every test under every condition")
	flags.StringVar(&o.run, "run", "", "run only tests that match this regular expression")
	flags.StringVar(&o.tags, "tags", "", "build tags, separated by commas")
	flags.BoolVar(&o.race, "race", false, "compile with the race detector")
	names := flags.String("cond", "", "conditions, separated by commas (default all: "+conditionNames()+")")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "a test hangs if no test starts or ends for this long")
	flags.StringVar(&o.out, "out", filepath.Join(".cache", "stress"), "directory for the output of failed tests")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.patterns = flags.Args()
	if len(o.patterns) == 0 {
		return o, errors.New("no package: name one or more, such as ./run")
	}
	if o.runs < 1 || o.timeout <= 0 {
		return o, errors.New("-n and -timeout must be positive")
	}
	var err error
	o.conditions, err = chooseConditions(*names)
	return o, err
}

// suite is the compiled tests of one package.
type suite struct {
	pkg    string // relative to the module
	dir    string
	binary string
}

// compile compiles the tests of every package once.
func compile(ctx context.Context, o options, dir string, stderr io.Writer) ([]suite, error) {
	list := []string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{with .Module}}{{.Path}}{{end}}", "-tags", o.tags}
	listed, err := output(ctx, stderr, append(list, o.patterns...)...)
	if err != nil {
		return nil, err
	}
	var suites []suite
	for line := range strings.Lines(listed) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("go list printed %q", line)
		}
		s := suite{pkg: fields[0], dir: fields[1], binary: filepath.Join(dir, fmt.Sprintf("%d.test", len(suites)))}
		if inside, ok := strings.CutPrefix(s.pkg, fields[2]+"/"); ok {
			s.pkg = inside
		}
		logf(stderr, "compiling the tests of %s", s.pkg)
		args := []string{"test", "-c", "-o", s.binary, "-tags", o.tags, fmt.Sprintf("-race=%t", o.race), fields[0]}
		if _, err := output(ctx, stderr, args...); err != nil {
			return nil, fmt.Errorf("%s: %w", s.pkg, err)
		}
		if _, err := os.Stat(s.binary); err != nil {
			logf(stderr, "%s has no tests", s.pkg)
			continue
		}
		suites = append(suites, s)
	}
	return suites, nil
}

// output runs the go command.
func output(ctx context.Context, stderr io.Writer, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), err
}

func logf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
