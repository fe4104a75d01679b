package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/report"
)

// A screen sanitizes all printed text, because servers and files contribute to
// it: it removes secrets and makes control characters visible. It works on
// lines and holds back incomplete ones.
type screen struct {
	to      io.Writer
	secrets *redact.Secrets
	paint   func(string) string // adds colours; nil adds none
	width   func() int          // of the terminal, to wrap sentences; nil does not wrap

	mu   sync.Mutex
	held []byte
}

// mostHeld is the maximum size of an incomplete line, because a document of a
// single line is not text.
const mostHeld = 1 << 20

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, p...)
	end := bytes.LastIndexByte(s.held, '\n') + 1
	if len(s.held)-end > mostHeld {
		end = len(s.held)
	}
	return len(p), s.show(end)
}

// flush prints the incomplete line.
func (s *screen) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.show(len(s.held))
}

func (s *screen) show(end int) error {
	if end == 0 {
		return nil
	}
	text := sanitize.Text(s.secrets.Sweep(string(s.held[:end])))
	if s.width != nil {
		text = wrapLines(text, s.width())
	}
	if s.paint != nil {
		text = s.paint(text)
	}
	_, err := io.WriteString(s.to, text)
	s.held = append(s.held[:0], s.held[end:]...)
	return err
}

// wrapLines breaks lines that are wider than the terminal between words, and keeps
// their indentation. Lines of JSON stay whole.
func wrapLines(text string, wide int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		if termtext.Width(bare) <= wide || strings.HasPrefix(bare, "{") {
			b.WriteString(line)
			continue
		}
		words := strings.TrimLeft(bare, " ")
		indent := bare[:len(bare)-len(words)]
		b.WriteString(strings.Join(termtext.Hang(indent, words, indent+"  ", wide), "\n") + line[len(bare):])
	}
	return b.String()
}

// unwrap joins the lines that wrapLines broke.
func unwrap(text string) string { return strings.ReplaceAll(text, "\n  ", " ") }

// print prints a report. Binary formats bypass the screen, which would escape
// them, and are never printed to a terminal.
func (e *Env) print(f report.Format, r *report.Report) error {
	if !f.Binary {
		return f.Render(e.Stdout, r)
	}
	if file, is := e.bare.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		return usage(fmt.Errorf("%s is binary, write it to a file with --report %[1]s=PATH", f.Name))
	}
	return f.Render(e.bare, r)
}
