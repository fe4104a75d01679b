package cli

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// A curtain is in front of the screen while the live view is shown: the view has
// the whole terminal, and what is printed meanwhile waits behind it.
type curtain struct {
	terminal io.Writer

	mu      sync.Mutex
	closed  bool
	away    bool              // the shell has the terminal
	note    func(line string) // told what waits
	held    []heldText
	wide    int // of the frame that is shown
	high    int
	unwatch func() // ends the watch for Ctrl-Z
}

// heldText is something that waits to be printed.
type heldText struct {
	to   io.Writer
	text []byte
}

// What a terminal is told: to show its other page and no cursor, and to go back.
const (
	otherPage = "\x1b[?1049h\x1b[?25l\x1b[2J"
	firstPage = "\x1b[?25h\x1b[?1049l"
)

// before is a writer whose text comes through when the curtain is open.
// Where it is noted, the view tells what waits.
func (c *curtain) before(to io.Writer, noted bool) io.Writer { return curtained{c, to, noted} }

type curtained struct {
	c     *curtain
	to    io.Writer
	noted bool
}

// Write implements io.Writer.
func (w curtained) Write(p []byte) (int, error) {
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
		for line := range strings.Lines(string(p)) {
			if line = strings.TrimSpace(line); line != "" {
				note(line)
			}
		}
	}
	return len(p), nil
}

// close draws the curtain. Note is told of each line that waits behind it.
func (c *curtain) close(note func(line string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed, c.note, c.wide, c.high = true, note, 0, 0
	c.show(otherPage)
	c.unwatch = onSuspend(c.suspend, c.resumed)
}

// open takes the curtain away and prints what has waited.
func (c *curtain) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		return
	}
	c.unwatch()
	c.closed = false
	c.show(firstPage)
	for _, h := range c.held {
		_, _ = h.to.Write(h.text) // as with all that is only said, a broken stream stops nothing
	}
	c.held = nil
}

// suspend gives the terminal back to the shell; what waits goes on waiting.
func (c *curtain) suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.away = true
		c.show(firstPage)
	}
}

func (c *curtain) resumed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.away = false
		c.show(otherPage)
	}
}

// draw shows a frame on the curtain, in a terminal of some size. Lines are not
// broken where a terminal takes a character for wider than it is, and what was
// there before is wiped line by line, so that nothing flickers.
func (c *curtain) draw(lines []string, wide, high int) {
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

func (c *curtain) show(text string) { _, _ = io.WriteString(c.terminal, text) } // a broken terminal stops nothing
