package cli

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/terminal"
)

// viewWithKeys returns a view with keys on a terminal of 80 by 24.
func viewWithKeys() (*terminal.Progress, *fakeTerminal, chan os.Signal) {
	f := &fakeTerminal{wide: 80, high: 24}
	env := &Env{
		Getenv: func(name string) string { return map[string]string{"TERM": "xterm", "LC_ALL": "C.UTF-8"}[name] }, Terminal: true,
		Width: func() int { return f.wide }, Height: func() int { return f.high }, quit: make(chan os.Signal, 1),
	}
	p := newView(env, f)
	p.Draw()
	return p, f, env.quit
}

// Every key changes the screen or the run, and any other key changes nothing.
func TestKeys(t *testing.T) {
	p, f, quit := viewWithKeys()
	plain := f.screen()
	if !strings.Contains(plain, "? help") {
		t.Fatalf("no keys:\n%s", plain)
	}
	p.Press('x')
	for _, c := range []struct{ key, shown string }{{"?", "as --max-seconds would"}, {"h", "TTFT so far: "}, {"p", "PAUSE before the next level"}} {
		p.Press(c.key[0])
		if !strings.Contains(f.screen(), c.shown) {
			t.Errorf("after %s: no %q in\n%s", c.key, c.shown, f.screen())
		}
		if p.Press(c.key[0]); f.screen() != plain {
			t.Errorf("%s pressed twice changed\n%s\nto\n%s", c.key, plain, f.screen())
		}
	}
	p.Press('q')
	p.Press('q')
	if by := <-quit; by != os.Interrupt || len(quit) > 0 {
		t.Errorf("q sent %v", by)
	}
	p.Stop()
}

// A pause holds the next level until it ends, or the run does.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := viewWithKeys()
		defer p.Stop()
		if took, err := p.Hold(t.Context()); took != 0 || err != nil {
			t.Errorf("without a pause: held for %v, %v", took, err)
		}
		p.Press('p')
		go func() {
			time.Sleep(7 * time.Second)
			p.Press('p')
		}()
		if took, err := p.Hold(t.Context()); took != 7*time.Second || err != nil {
			t.Errorf("held for %v, %v", took, err)
		}
		p.Press('p')
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Hold(ctx); err == nil {
			t.Error("a stopped run stays paused")
		}
	})
}
