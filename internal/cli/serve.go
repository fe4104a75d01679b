package cli

import (
	"cmp"
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

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// A serverCommand is a command that starts a server, with placeholders for its
// settings.
type serverCommand struct {
	text  string
	shell bool
	names []string // of the settings
	lists [][]string

	hidden map[string]map[string]string // values of secret settings by their numbers, by setting
}

// placeholder matches a setting in the command. Other braces, as in JSON, do
// not match.
var placeholder = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// portPlaceholder is replaced by a free port, unless port is a setting.
const portPlaceholder = "{port}"

// parseServe parses a command and its settings, each as NAME=VALUE,VALUE.
func parseServe(text string, shell bool, params []string) (*serverCommand, error) {
	c := &serverCommand{text: text, shell: shell}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New(`--serve-cmd: want the command of the server, as in --serve-cmd "vllm serve MODEL --max-num-seqs {max_num_seqs}"`)
	}
	for _, p := range params {
		name, values, ok := strings.Cut(p, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || values == "" {
			return nil, fmt.Errorf("--serve-param %q: want NAME=VALUE,VALUE", p)
		}
		if slices.Contains(c.names, name) {
			return nil, fmt.Errorf("--serve-param %s is given twice, write all values in one list", name)
		}
		if !strings.Contains(text, "{"+name+"}") {
			return nil, fmt.Errorf("--serve-param %s: --serve-cmd does not contain {%s}", name, name)
		}
		c.names, c.lists = append(c.names, name), append(c.lists, strings.Split(values, ","))
	}
	for _, h := range placeholder.FindAllString(text, -1) {
		if h != portPlaceholder && !slices.Contains(c.names, strings.Trim(h, "{}")) {
			return nil, fmt.Errorf("--serve-cmd contains %s, set its values with --serve-param", h)
		}
	}
	if _, err := splitWords(text); err != nil && !shell {
		return nil, fmt.Errorf("--serve-cmd: %w", err)
	}
	return c, nil
}

// settings returns all combinations of the values. The last list varies
// fastest.
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

// words returns the command with all placeholders replaced. A value is always
// one word, or part of one.
func (c *serverCommand) words(at outcome.Coordinates, port string) ([]string, error) {
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(h string) string {
			if v, ok := c.valueOf(at, strings.Trim(h, "{}")); ok {
				return v
			}
			return port // the only other placeholder
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

// choosesPort reports whether tacho chooses the port.
func (c *serverCommand) choosesPort() bool {
	return strings.Contains(c.text, portPlaceholder) && !slices.Contains(c.names, "port")
}

// splitWords splits a command at spaces, like a shell, with quotes and
// backslashes. Other shell syntax has no meaning.
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
		return nil, fmt.Errorf("missing closing quote in %s", text)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// A served is a server started by tacho.
type served struct {
	guard *exec.Cmd
	tie   io.Closer // closing it stops the server
	log   *os.File
	ended chan struct{}
	ours  atomic.Bool // stopped by tacho
}

// start starts the server under a guard that stops it when tacho exits. Its
// output goes to a file in dir. died is called if the server exits by itself.
func (c *serverCommand) start(env *Env, p *plan.Plan, at outcome.Coordinates, dir string, died context.CancelCauseFunc) (*served, error) {
	port := 0
	if c.choosesPort() {
		var err error
		if port, err = freePort(); err != nil {
			return nil, err
		}
		p.BaseURL = []string{"http://127.0.0.1:" + strconv.Itoa(port)}
	}
	words, err := c.words(at, strconv.Itoa(port))
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
	_, _ = fmt.Fprintf(env.Stderr, "Starting %s\n", env.secrets.Hide(strings.Join(words, " "))) // informational
	go func() {
		err := s.guard.Wait()
		said := env.secrets.Hide(s.tail()) // before the log is closed
		close(s.ended)
		if s.ours.Load() {
			return
		}
		died(fmt.Errorf("the server exited (%w). %s", cmp.Or(err, errors.New("exit status 0")), said))
	}()
	return s, nil
}

// tail returns the end of the server's output as a sentence.
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
		return "It printed nothing."
	}
	return "End of its output:\n" + strings.Join(lines[max(len(lines)-15, 0):], "\n")
}

// stop stops the server and all its processes, and returns after they have
// exited.
func (s *served) stop() {
	s.ours.Store(true)
	_ = s.tie.Close() // stops the server
	<-s.ended
	_ = s.log.Close() // already written
}

// keep moves the log to the run directory; the server may be running.
func (s *served) keep(path string) error { return os.Rename(s.log.Name(), path) }

// freePort returns an unused port.
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

// logName returns the log file of a setting.
func logName(dir string, setting int) string {
	return filepath.Join(dir, fmt.Sprintf("serve-%d.log", setting))
}
