package cli

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// viewWithKeys returns a view with keys on a terminal of 80 by 24.
func viewWithKeys() (*progress, *fakeTerminal) {
	f := &fakeTerminal{wide: 80, high: 24}
	env := &Env{
		Getenv: func(name string) string { return map[string]string{"TERM": "xterm", "LC_ALL": "C.UTF-8"}[name] }, Terminal: true,
		Width: func() int { return f.wide }, Height: func() int { return f.high }, quit: make(chan os.Signal, 1),
	}
	p := newView(env, f)
	p.draw()
	return p, f
}

// Every key changes the screen or the run, and any other key changes nothing.
func TestKeys(t *testing.T) {
	p, f := viewWithKeys()
	plain := f.screen()
	if !strings.Contains(plain, "? help") {
		t.Fatalf("no keys:\n%s", plain)
	}
	p.pressed('x')
	for _, c := range []struct{ key, shown string }{{"?", "as --max-seconds would"}, {"h", "TTFT so far: "}, {"p", "PAUSE before the next level"}} {
		p.pressed(c.key[0])
		if !strings.Contains(f.screen(), c.shown) {
			t.Errorf("after %s: no %q in\n%s", c.key, c.shown, f.screen())
		}
		if p.pressed(c.key[0]); f.screen() != plain {
			t.Errorf("%s pressed twice changed\n%s\nto\n%s", c.key, plain, f.screen())
		}
	}
	p.pressed('q')
	p.pressed('q')
	if by := <-p.env.quit; by != os.Interrupt || len(p.env.quit) > 0 {
		t.Errorf("q sent %v", by)
	}
	p.stop()
}

// A pause holds the next level until it ends, or the run does.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := viewWithKeys()
		defer p.stop()
		if took, err := p.hold(t.Context()); took != 0 || err != nil {
			t.Errorf("without a pause: held for %v, %v", took, err)
		}
		p.pressed('p')
		go func() {
			time.Sleep(7 * time.Second)
			p.pressed('p')
		}()
		if took, err := p.hold(t.Context()); took != 7*time.Second || err != nil {
			t.Errorf("held for %v, %v", took, err)
		}
		p.pressed('p')
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.hold(ctx); err == nil {
			t.Error("a stopped run stays paused")
		}
	})
}
