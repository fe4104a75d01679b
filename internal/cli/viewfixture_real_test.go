//go:build real

package cli

import (
	"context"
	"fmt"
	"os"
	"time"
)

// ShowView is a program that shows a run with constant values until Ctrl-C. It
// draws only when the terminal is resized, and then sets the terminal title to
// the size. The title shows that the frame is complete.
func ShowView() int {
	env := System()
	p := newView(env, os.Stderr)
	ctx, stop := interruptible(context.Background(), env)
	defer stop()
	if !env.able() {
		_, _ = fmt.Println("no view")
		return exitFailed
	}
	size := func() string { return fmt.Sprintf("%dx%d", env.Width(), env.Height()) }
	p.Draw()
	sayHostile(env)
	for shown := ""; ctx.Err() == nil; {
		if now := size(); now != shown {
			p.Draw()
			if size() == now { // unchanged while the frame was drawn
				shown = now
				_, _ = fmt.Fprintf(os.Stderr, "\x1b]2;%s\a", shown)
			}
			continue
		}
		select {
		case <-time.After(10 * time.Millisecond): // to check the size again
		case <-ctx.Done():
		}
	}
	p.Stop()
	_, _ = fmt.Println("the report")
	return exitOK
}
