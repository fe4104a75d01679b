package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"tacho/internal/redact"
	"tacho/internal/visible"
	"tacho/report"
)

// A screen is where the program prints: all that any command says goes through
// one. Others have a say in it (servers, files), so secrets are taken out and
// what a terminal would obey is made visible. It works by lines; what has no end
// yet is held back.
type screen struct {
	to      io.Writer
	secrets *redact.Secrets

	mu   sync.Mutex
	held []byte
}

// mostHeld bounds what is held back: a document of a single line is not text.
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

// flush shows what was held back.
func (s *screen) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.show(len(s.held))
}

func (s *screen) show(end int) error {
	if end == 0 {
		return nil
	}
	_, err := io.WriteString(s.to, visible.Text(s.secrets.Sweep(string(s.held[:end]))))
	s.held = append(s.held[:0], s.held[end:]...)
	return err
}

// print shows a report. What is no text goes past the screen, which would spell it
// out, and never to a terminal, which would obey it.
func (e *Env) print(f report.Format, r *report.Report) error {
	if !f.Binary {
		return f.Render(e.Stdout, r)
	}
	if file, is := e.bare.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		return usage(fmt.Errorf("%s is no text: write it to a file, with --report %[1]s=PATH", f.Name))
	}
	return f.Render(e.bare, r)
}
