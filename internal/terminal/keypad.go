package terminal

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/internal/live/view"
)

// A keypad is the state of the keys of the live view.
type keypad struct {
	on bool // the terminal sends keys

	mu        sync.Mutex
	help      bool
	histogram bool
	paused    chan struct{} // closed when the pause ends; nil without a pause
}

// apply sets what the keys selected.
func (k *keypad) apply(s *view.Screen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Keys, s.Help, s.Histogram, s.Pause = k.on, k.help, k.histogram, k.paused != nil
}

// pause starts or ends a pause.
func (k *keypad) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused != nil {
		close(k.paused)
		k.paused = nil
		return
	}
	k.paused = make(chan struct{})
}

// Press handles a key of the live view and draws the view again.
func (p *Progress) Press(key byte) {
	k := &p.pad
	switch key {
	case '?':
		k.mu.Lock()
		k.help = !k.help
		k.mu.Unlock()
	case 'h':
		k.mu.Lock()
		k.histogram = !k.histogram
		k.mu.Unlock()
	case 'n':
		p.nextLevel()
	case 'p':
		k.pause()
	case 'q':
		p.o.Quit()
	default:
		return
	}
	p.Draw()
}

// nextLevel ends the running level.
func (p *Progress) nextLevel() {
	p.mu.Lock()
	runner := p.runner
	running := p.level != nil
	p.mu.Unlock()
	switch {
	case !running:
	case runner.EndLevel():
		p.State.Note("The level ends now: no more requests are sent, and those in flight finish.")
	default:
		p.State.Note("This level cannot be ended alone, because agents send its requests or it is computed. q ends the run.")
	}
}

// Hold waits before a level while the run is paused. It returns the time of the pause.
func (p *Progress) Hold(ctx context.Context) (time.Duration, error) {
	p.pad.mu.Lock()
	paused := p.pad.paused
	p.pad.mu.Unlock()
	if paused == nil {
		return 0, nil
	}
	from := time.Now()
	p.State.SetActivity("PAUSED before the next level: press p to continue")
	defer p.State.SetActivity("")
	select {
	case <-paused:
		took := time.Since(from)
		p.State.Note(fmt.Sprintf("The run was paused for %.0f s.", took.Seconds()))
		return took, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Control connects the keys with a runner.
func (p *Progress) Control(r Runner) {
	p.mu.Lock()
	p.runner = r
	p.mu.Unlock()
}
