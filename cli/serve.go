package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"tacho/bench"
	"tacho/outcome"
	"tacho/plan"
)

// A serverCommand is how a server is started, with holes for its settings.
type serverCommand struct {
	text  string
	shell bool
	names []string // of the settings
	lists [][]string
}

// hole is where a setting goes. What else has braces, as JSON, is left alone.
var hole = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// portHole is where a port goes that is free, unless it is a setting.
const portHole = "{port}"

// parseServe reads a command and its settings, each as NAME=VALUE,VALUE.
func parseServe(text string, shell bool, params []string) (*serverCommand, error) {
	c := &serverCommand{text: text, shell: shell}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New(`--serve-cmd: how is the server started? as in --serve-cmd "vllm serve MODEL --max-num-seqs {max_num_seqs}"`)
	}
	for _, p := range params {
		name, values, ok := strings.Cut(p, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || values == "" {
			return nil, fmt.Errorf("--serve-param %q: write NAME=VALUE,VALUE", p)
		}
		if slices.Contains(c.names, name) {
			return nil, fmt.Errorf("--serve-param %s is given twice: write all its values in one list", name)
		}
		if !strings.Contains(text, "{"+name+"}") {
			return nil, fmt.Errorf("--serve-param %s: the command has no {%s}, so that it would change nothing", name, name)
		}
		c.names, c.lists = append(c.names, name), append(c.lists, strings.Split(values, ","))
	}
	for _, h := range hole.FindAllString(text, -1) {
		if h != portHole && !slices.Contains(c.names, strings.Trim(h, "{}")) {
			return nil, fmt.Errorf("--serve-cmd has %s, and no --serve-param gives its values", h)
		}
	}
	if _, err := splitWords(text); err != nil && !shell {
		return nil, fmt.Errorf("--serve-cmd: %w", err)
	}
	return c, nil
}

// settings are all combinations of the values, the last list the fastest.
func (c *serverCommand) settings() []outcome.Coordinates {
	out := []outcome.Coordinates{nil}
	for i, list := range c.lists {
		var next []outcome.Coordinates
		for _, at := range out {
			for _, v := range list {
				next = append(next, append(slices.Clone(at), outcome.Coordinate{Name: bench.ServePrefix + c.names[i], Value: strings.TrimSpace(v)}))
			}
		}
		out = next
	}
	return out
}

// words are the command with its holes filled. A value is one word, or a part of
// one, whatever is in it.
func (c *serverCommand) words(at outcome.Coordinates, port int) ([]string, error) {
	fill := func(text string) string {
		return hole.ReplaceAllStringFunc(text, func(h string) string {
			if v, ok := at.Of(bench.ServePrefix + strings.Trim(h, "{}")); ok {
				return v
			}
			return strconv.Itoa(port) // the only other that is let through
		})
	}
	if c.shell {
		return []string{"/bin/sh", "-c", fill(c.text)}, nil
	}
	words, err := splitWords(c.text)
	for i, w := range words {
		words[i] = fill(w)
	}
	return words, err
}

// choosesPort says whether we choose the port.
func (c *serverCommand) choosesPort() bool {
	return strings.Contains(c.text, portHole) && !slices.Contains(c.names, "port")
}

// splitWords splits a command as a shell does: at spaces, but for those in quotes
// or behind a backslash. Nothing else has a meaning.
func splitWords(text string) (words []string, err error) {
	var word strings.Builder
	in, quote, escaped := false, rune(0), false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			in, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			in, quote = true, r
		case quote == 0 && strings.ContainsRune(" \t\n", r):
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("a quote is not closed in %s", text)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// A served is a server that we started.
type served struct {
	guard *exec.Cmd
	tie   io.Closer // closed, it ends
	log   *os.File
	ended chan struct{}
	ours  atomic.Bool // its end is
}

// start starts the server, under a guard that ends it when we are gone. What it
// says goes to a file in dir. Died is told if it ends by itself.
func (c *serverCommand) start(env *Env, p *plan.Plan, at outcome.Coordinates, dir string, died context.CancelCauseFunc) (*served, error) {
	port := 0
	if c.choosesPort() {
		var err error
		if port, err = freePort(); err != nil {
			return nil, err
		}
		p.BaseURL = []string{"http://127.0.0.1:" + strconv.Itoa(port)}
	}
	words, err := c.words(at, port)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &served{ended: make(chan struct{})}
	if s.log, err = os.CreateTemp(dir, ".serve-*.log"); err != nil {
		return nil, err
	}
	s.guard = exec.Command(self, append([]string{"guard", "--"}, words...)...) //nolint:gosec,noctx // it ends with its standard input
	s.guard.Stdout, s.guard.Stderr = s.log, s.log
	detach(s.guard)
	if s.tie, err = s.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.guard.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	_, _ = fmt.Fprintf(env.Stderr, "Starting %s\n", strings.Join(words, " ")) // for information
	go func() {
		err := s.guard.Wait()
		said := s.tail() // while the log is open
		close(s.ended)
		if s.ours.Load() {
			return
		}
		died(&serverDied{fmt.Errorf("the server ended by itself (%w). %s", cmpErr(err), said)})
	}()
	return s, nil
}

// cmpErr is an error where there was none.
func cmpErr(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// A serverDied is why a run was ended.
type serverDied struct{ error }

// tail is the end of what the server said, in a sentence.
func (s *served) tail() string {
	info, err := s.log.Stat()
	if err != nil {
		return err.Error()
	}
	const most = 16 << 10 // a log may be long
	b, err := io.ReadAll(io.NewSectionReader(s.log, max(info.Size()-most, 0), most))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if lines[0] == "" {
		return "It said nothing."
	}
	return "The end of what it said:\n" + strings.Join(lines[max(len(lines)-15, 0):], "\n")
}

// stop ends the server and all it started, and returns when they are gone.
func (s *served) stop() {
	s.ours.Store(true)
	_ = s.tie.Close() // which ends it
	<-s.ended
	_ = s.log.Close() // it is written
}

// keep puts the log where the run is; it may be done while the server runs.
func (s *served) keep(path string) error { return os.Rename(s.log.Name(), path) }

// drop forgets the log of a server that was never measured.
func (s *served) drop() { _ = os.Remove(s.log.Name()) }

// freePort is a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// logName is the file of the log of a setting.
func logName(dir string, setting int) string {
	return filepath.Join(dir, fmt.Sprintf("serve-%d.log", setting))
}
