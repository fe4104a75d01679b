//go:build real

package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"tacho/plan"
)

// ShowView is a program that shows a run whose figures never change, until Ctrl-C.
// It draws only when the terminal changes its size, and then sets the title of the
// terminal to that size: when the title is there, the frame is complete.
func ShowView() int {
	env := System()
	p := newView(env, os.Stderr)
	ctx, stop := interruptible(context.Background(), env)
	defer stop()
	if p.how != plan.LiveProgress {
		_, _ = fmt.Println("no view:", p.how)
		return exitFailed
	}
	size := func() string { return fmt.Sprintf("%dx%d", env.Width(), env.Height()) }
	p.draw()
	sayHostile(env)
	for shown := ""; ctx.Err() == nil; {
		if now := size(); now != shown {
			p.draw()
			if size() == now { // and so it was while the frame was drawn
				shown = now
				_, _ = fmt.Fprintf(os.Stderr, "\x1b]2;%s\a", shown)
			}
			continue
		}
		select {
		case <-time.After(10 * time.Millisecond): // to look at the size again
		case <-ctx.Done():
		}
	}
	p.stop()
	_, _ = fmt.Println("the report")
	return exitOK
}
