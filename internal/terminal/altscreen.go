package terminal

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// An AltScreen shows the live view on the terminal's alternate screen and holds
// back all other output until the view is closed.
type AltScreen struct {
	terminal io.Writer

	mu      sync.Mutex
	closed  bool
	away    bool              // the process is suspended
	note    func(line string) // receives lines held back
	held    []heldText
	wide    int // width of the current frame
	high    int
	unwatch func()               // stops the handling of Ctrl-Z
	listen  func() (stop func()) // starts to read keys; nil without a keyboard
	unread  func()               // stops the reading of keys; nil if no keys are read
}

// heldText is output held back.
type heldText struct {
	to   io.Writer
	text []byte
}

// Escape sequences that switch to the alternate screen without a cursor, and
// back.
const (
	enterAltScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leaveAltScreen = "\x1b[?25h\x1b[?1049l"
)

// NewAltScreen returns the alternate screen of a terminal.
func NewAltScreen(terminal io.Writer) *AltScreen { return &AltScreen{terminal: terminal} }

// Before returns a writer whose text is held back while the view is shown. If
// noted is set, the view shows the text as a note.
func (c *AltScreen) Before(to io.Writer, noted bool) io.Writer { return heldWriter{c, to, noted} }

type heldWriter struct {
	c     *AltScreen
	to    io.Writer
	noted bool
}

// Write implements io.Writer.
func (w heldWriter) Write(p []byte) (int, error) {
	c := w.c
	c.mu.Lock()
	if !c.closed {
		defer c.mu.Unlock()
		return w.to.Write(p)
	}
	c.held = append(c.held, heldText{w.to, bytes.Clone(p)})
	note := c.note
	c.mu.Unlock()
	if w.noted {
		joined := strings.ReplaceAll(string(p), "\n  ", " ") // wrapLines broke these lines
		for line := range strings.SplitSeq(joined, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				note(line)
			}
		}
	}
	return len(p), nil
}

// enter switches to the alternate screen. note receives each line held back.
func (c *AltScreen) enter(note func(line string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed, c.note, c.wide, c.high = true, note, 0, 0
	c.show(enterAltScreen)
	c.unwatch = onSuspend(c.suspend, c.resumed)
	if c.listen != nil {
		c.unread = c.listen()
	}
}

// quiet stops the reading of keys. The lock must not be held, because a key may be
// waiting for it.
func (c *AltScreen) quiet() {
	c.mu.Lock()
	stop := c.unread
	c.unread = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Leave switches back to the main screen and prints all text held back.
func (c *AltScreen) Leave() {
	c.quiet()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		return
	}
	c.unwatch()
	c.closed = false
	c.show(leaveAltScreen)
	for _, h := range c.held {
		_, _ = h.to.Write(h.text) // errors are ignored, as for all messages
	}
	c.held = nil
}

// suspend returns the terminal to the shell and keeps holding text back.
func (c *AltScreen) suspend() {
	c.quiet()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.away = true
		c.show(leaveAltScreen)
	}
}

func (c *AltScreen) resumed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.away = false
		c.show(enterAltScreen)
		if c.listen != nil && c.unread == nil {
			c.unread = c.listen()
		}
	}
}

// draw shows a frame on a terminal of the given size. Lines are cut, not
// wrapped, because terminals disagree on the width of some characters. Old
// content is erased line by line to avoid flicker.
func (c *AltScreen) draw(lines []string, wide, high int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed || c.away {
		return
	}
	var b strings.Builder
	b.WriteString("\x1b[?7l\x1b[H")
	if wide != c.wide || high != c.high {
		b.WriteString("\x1b[2J")
		c.wide, c.high = wide, high
	}
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[K" + line)
	}
	if len(lines) < high {
		b.WriteString("\r\n\x1b[J")
	}
	b.WriteString("\x1b[?7h")
	c.show(b.String())
}

func (c *AltScreen) show(text string) { _, _ = io.WriteString(c.terminal, text) } // errors of the terminal are ignored
