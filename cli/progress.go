package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"tacho/engine"
	"tacho/internal/visible"
	"tacho/plan"
	"tacho/run"
)

// progress is the line that moves while a run goes on. Without a terminal
// there is none.
type progress struct {
	env *Env
	on  bool

	mu    sync.Mutex
	shown bool
	quit  chan struct{}
	done  chan struct{}
	last  time.Time
}

func newProgress(env *Env, wanted bool) *progress {
	return &progress{env: env, on: wanted && env.Terminal}
}

const progressPeriod = 200 * time.Millisecond

// ready shows prompts being made ready.
func (p *progress) ready(done, all int) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); done < all && now.Sub(p.last) < progressPeriod {
		return
	}
	p.last = time.Now()
	p.draw(fmt.Sprintf("Preparing prompts %s %d/%d", bar(done, all), done, all))
	if done == all {
		p.erase()
	}
}

// fetch shows a file being downloaded.
func (p *progress) fetch(file string, done, all int64) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); done != all && now.Sub(p.last) < progressPeriod {
		return
	}
	p.last = time.Now()
	line := fmt.Sprintf("Downloading %s %.1f MB", file, float64(done)/1e6)
	if all > 0 {
		line = fmt.Sprintf("Downloading %s %s %.1f/%.1f MB", file, bar(int(done), int(all)), float64(done)/1e6, float64(all)/1e6)
	}
	p.draw(line)
	if done == all {
		p.erase()
	}
}

// begin shows a level as it runs, until end.
func (p *progress) begin(l plan.Level, epoch time.Time, speed run.Speed, live *engine.Live) {
	if !p.on {
		return
	}
	p.quit, p.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.done)
		tick := time.NewTicker(progressPeriod)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.mu.Lock()
				p.draw(progressLine(l, live, speed.Stretch(time.Since(epoch))))
				p.mu.Unlock()
			case <-p.quit:
				return
			}
		}
	}()
}

// progressLine is what is known of a level that runs.
func progressLine(l plan.Level, live *engine.Live, passed time.Duration) string {
	done, failed := int(live.Finished.Load()), live.Failed.Load()
	inFlight := max(live.Started.Load()-int64(done), 0)
	secs := max(passed.Seconds(), 1e-3)
	line := fmt.Sprintf("%d done, %d running, %.1f req/s, %.0f tok/s, %s",
		done, inFlight, float64(done)/secs, float64(live.Tokens.Load())/secs, passed.Truncate(time.Second))
	if failed > 0 {
		line += fmt.Sprintf(", %d FAILED", failed)
	}
	if l.Prompts > 0 {
		over := int(live.Sessions.Load())
		line = fmt.Sprintf("%s %d/%d  ", bar(over, l.Prompts), over, l.Prompts) + line
	}
	if l.Name != "" {
		line = l.Name + " " + line
	}
	return line
}

func bar(done, all int) string {
	const width = 20
	n := 0
	if all > 0 {
		n = min(width*done/all, width)
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat(" ", width-n) + "]"
}

// end stops showing the level.
func (p *progress) end() {
	if p.quit != nil {
		close(p.quit)
		<-p.done
		p.quit = nil
	}
	p.clear()
}

func (p *progress) stop() { p.end() }

// clear takes the line away, to make room for other words.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

func (p *progress) draw(line string) {
	line = visible.Line(line)
	if w := p.env.Width() - 1; len(line) > w && w > 0 {
		line = line[:w]
	}
	_, _ = fmt.Fprint(p.env.line, "\r\x1b[K"+line) // a broken terminal stops nothing
	p.shown = true
}

func (p *progress) erase() {
	if p.shown {
		_, _ = fmt.Fprint(p.env.line, "\r\x1b[K")
		p.shown = false
	}
}
