package terminal

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/termtext"
)

// A Writer sanitizes all printed text, because servers and files contribute to
// it: it removes secrets and makes control characters visible. It works on
// lines and holds back incomplete ones.
type Writer struct {
	To    io.Writer
	Sweep func(string) string // removes secrets
	Paint bool                // add colours
	Width func() int          // of the terminal, to wrap sentences; nil does not wrap

	mu   sync.Mutex
	held []byte
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, p...)
	end := bytes.LastIndexByte(w.held, '\n') + 1
	if len(w.held)-end > 1<<20 { // such a line is a document, not text
		end = len(w.held)
	}
	return len(p), w.show(end)
}

// Flush prints the incomplete line.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.show(len(w.held))
}

func (w *Writer) show(end int) error {
	if end == 0 {
		return nil
	}
	text := sanitize.Text(w.Sweep(string(w.held[:end])))
	if w.Width != nil {
		text = wrapLines(text, w.Width())
	}
	if w.Paint {
		text = paint(text)
	}
	_, err := io.WriteString(w.To, text)
	w.held = append(w.held[:0], w.held[end:]...)
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
