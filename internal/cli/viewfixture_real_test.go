//go:build real

package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tacho-bench/tacho/plan"
)

// ShowView is a program that shows a run with constant values until Ctrl-C. It
// draws only when the terminal is resized, and then sets the terminal title to
// the size. The title shows that the frame is complete.
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
	p.stop()
	_, _ = fmt.Println("the report")
	return exitOK
}
