package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"tacho/internal/cells"
	"tacho/internal/visible"
	"tacho/live"
	"tacho/live/view"
	"tacho/outcome"
	"tacho/plan"
	"tacho/run"
)

// progress shows a run as it goes on: as a view that has the whole terminal, or
// as lines. It looks at the run from time to time and takes no part in it, so that
// a slow terminal misses frames and the run misses nothing.
type progress struct {
	env   *Env
	how   string        // one of plan.Progresses, but not auto
	every time.Duration // between two lines
	board live.Board
	keep  func(snapshot any) // puts it where other processes see it; nil is nowhere

	mu    sync.Mutex
	count int           // levels that have begun
	level *watchedLevel // nil is none
	quit  chan struct{} // ends the watch; nil is none
	done  chan struct{}
	shown bool // a line that moves
	last  time.Time
}

func newProgress(env *Env, p *plan.Plan) *progress {
	return &progress{env: env, how: howToShow(env, p), every: p.ProgressInterval.Duration()}
}

// howToShow settles how progress is shown. Only a terminal that somebody watches,
// and that knows more than to go on with the next line, has a view.
func howToShow(env *Env, p *plan.Plan) string {
	switch {
	case p.DisableProgress:
		return plan.NoProgress
	case p.Plain:
		return plan.PlainProgress
	case p.Progress != plan.AutoProgress && p.Progress != plan.LiveProgress:
		return p.Progress
	case !env.able() || p.Progress == plan.AutoProgress && env.Getenv("CI") != "":
		return plan.PlainProgress
	}
	return plan.LiveProgress
}

// able says whether somebody watches a terminal on which text can be put anywhere.
func (e *Env) able() bool {
	kind := e.Getenv("TERM")
	return e.Terminal && kind != "" && kind != "dumb"
}

// on says whether anything is shown.
func (p *progress) on() bool { return p.how != plan.NoProgress }

const (
	barPeriod = 200 * time.Millisecond
	// viewAfter is how long a run takes at least to be worth a view: a screen that
	// comes and goes at once is worse than none.
	viewAfter = 800 * time.Millisecond
	keepEvery = 2 // ticks
)

// ready shows prompts being made ready.
func (p *progress) ready(done, all int) {
	p.bar(done == all, func() string { return fmt.Sprintf("Preparing prompts %s %d/%d", bar(done, all), done, all) })
}

// fetch shows a file being downloaded.
func (p *progress) fetch(file string, done, all int64) {
	p.bar(done == all, func() string {
		if all <= 0 {
			return fmt.Sprintf("Downloading %s %.1f MB", file, float64(done)/1e6)
		}
		return fmt.Sprintf("Downloading %s %s %.1f/%.1f MB", file, bar(int(done), int(all)), float64(done)/1e6, float64(all)/1e6)
	})
}

// bar shows something that has an end: in the view, where there is one, else as a
// line that moves.
func (p *progress) bar(over bool, line func() string) {
	if p.how != plan.LiveProgress {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); !over && now.Sub(p.last) < barPeriod {
		return
	}
	p.last = time.Now()
	if p.quit != nil {
		p.board.Do(line())
		return
	}
	if p.erase(); !over {
		p.write("\r\x1b[K" + cells.Cut(visible.Line(line()), p.env.Width()-1))
		p.shown = true
	}
}

func bar(done, all int) string {
	return "[" + cells.Pen{ASCII: true}.Bar(float64(done)/float64(max(all, 1)), 20) + "]"
}

// clear takes the line that moves away, to make room for other words.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

func (p *progress) erase() {
	if p.shown {
		p.write("\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) write(text string) { _, _ = io.WriteString(p.env.curtain.terminal, text) } // a broken terminal stops nothing

// describe says what is measured.
func (p *progress) describe(about live.About) { p.board.Describe(about) }

// begin shows a level as it runs, until end.
func (p *progress) begin(r *run.Runner, epoch time.Time, feed *live.Feed) {
	p.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	p.board.Begin(r.Watched(p.count))
	p.level = &watchedLevel{feed: feed, epoch: epoch, speed: r.Speed()}
	if p.quit == nil {
		p.quit, p.done, p.last = make(chan struct{}), make(chan struct{}), time.Now()
		go p.watch(p.quit, p.done)
	}
}

// A watchedLevel is the level that runs.
type watchedLevel struct {
	feed  *live.Feed
	epoch time.Time
	speed run.Speed
}

// watch looks at the run again and again.
func (p *progress) watch(quit, done chan struct{}) {
	defer close(done)
	began := time.Now()
	tick := time.NewTicker(live.Period)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			p.look()
			p.show(time.Since(began))
			if n%keepEvery == 0 && p.keep != nil {
				p.keep(p.board.Snapshot())
			}
		case <-quit:
			return
		}
	}
}

// look takes in what has happened.
func (p *progress) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.level; l != nil {
		p.board.Add(l.feed.Tick(l.speed.Stretch(time.Since(l.epoch))))
	}
}

// show shows how the run stands, so long after it began.
func (p *progress) show(passed time.Duration) {
	if !p.on() {
		return
	}
	if p.how == plan.LiveProgress {
		if passed >= viewAfter {
			p.draw()
		}
		return
	}
	p.mu.Lock()
	due := p.level != nil && time.Since(p.last) >= p.every
	if due {
		p.last = time.Now()
	}
	p.mu.Unlock()
	if due {
		p.say(view.Line)
	}
}

// say prints how the run stands as a line: that of words, or JSON.
func (p *progress) say(words func(*live.Snapshot) string) {
	s := p.board.Snapshot()
	if p.how != plan.JSONProgress {
		_, _ = fmt.Fprintln(p.env.Stderr, words(&s)) // a broken stderr stops nothing
		return
	}
	s.History, s.Past, s.Notes = nil, nil, nil // which those have who read all lines
	line, err := json.Marshal(s)
	if err != nil {
		line = fmt.Appendf(nil, "{%q:%q}", "error", err)
	}
	_, _ = fmt.Fprintln(p.env.Stderr, string(line)) // likewise
}

// draw shows the view.
func (p *progress) draw() {
	p.env.curtain.close(p.board.Note)
	s := p.board.Snapshot()
	wide, high := p.env.Width(), p.env.Height()
	screen := view.Screen{Wide: wide, High: high, Colour: p.env.Getenv("NO_COLOR") == "", Pen: p.env.pen()}
	lines := screen.Frame(&s)
	for i := range lines {
		lines[i] = p.env.secrets.Sweep(lines[i])
	}
	p.env.curtain.draw(lines, wide, high)
}

// pen draws with what the terminal can show: block characters, unless the language
// of the environment says that it has none.
func (e *Env) pen() cells.Pen {
	language := cmp.Or(e.Getenv("LC_ALL"), e.Getenv("LC_CTYPE"), e.Getenv("LANG"))
	return cells.Pen{ASCII: language != "" && !strings.Contains(strings.ToUpper(strings.ReplaceAll(language, "-", "")), "UTF8")}
}

// end takes in what the level came to.
func (p *progress) end(l *outcome.Level) {
	p.look()
	p.mu.Lock()
	shown := p.level != nil
	p.level = nil
	p.mu.Unlock()
	if !shown {
		return
	}
	p.board.End(l)
	switch p.how {
	case plan.JSONProgress:
		p.say(nil)
	case plan.PlainProgress:
		if s := p.board.Snapshot(); s.Level.Of != 1 {
			_, _ = fmt.Fprintln(p.env.Stderr, view.PastLine(&s.Past[len(s.Past)-1])) // as above
		}
	}
}

// stop ends the view, and what was said behind it is printed.
func (p *progress) stop() {
	p.mu.Lock()
	quit, done := p.quit, p.done
	p.quit, p.level = nil, nil
	p.mu.Unlock()
	if quit != nil {
		close(quit)
		<-done
	}
	p.clear()
	p.env.curtain.open()
}
