package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/live/view"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// progress shows a run in progress, as a full-screen view or as lines. It polls
// the run and never blocks it: a slow terminal loses frames, and the run loses
// nothing.
type progress struct {
	live.NopObserver // of a run without levels
	env              *Env
	how              string        // one of plan.Progresses, except auto
	every            time.Duration // between two lines
	board            live.State
	keep             func(snapshot any) // publishes snapshots for other processes; may be nil

	mu     sync.Mutex
	count  int           // levels started
	level  *watchedLevel // nil before the first level
	runner *run.Runner   // runs the levels; nil before they can run
	quit   chan struct{} // ends the polling; nil if not running
	done   chan struct{}
	shown  bool // a progress bar is on the screen
	last   time.Time

	budget            time.Duration // of a search; 0 without one
	setting, settings int           // of a sweep of server settings
	before            int           // levels of earlier settings

	pad keypad
}

func newProgress(env *Env, p *plan.Plan) *progress {
	out := &progress{env: env, how: progressKind(env, p), every: p.ProgressInterval.Duration()}
	if tty, is := env.Stdin.(*os.File); is && out.how == plan.LiveProgress && term.IsTerminal(int(tty.Fd())) {
		out.pad.on = true
		env.altScreen.listen = func() func() { return readKeys(tty, out.pressed) }
	}
	return out
}

// progressKind chooses the kind of progress. The view needs a terminal with cursor
// movement.
func progressKind(env *Env, p *plan.Plan) string {
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

// able reports whether stderr is a terminal with cursor movement.
func (e *Env) able() bool {
	kind := e.Getenv("TERM")
	return e.Terminal && kind != "" && kind != "dumb"
}

// on reports whether progress is shown.
func (p *progress) on() bool { return p.how != plan.NoProgress }

const (
	barPeriod = 200 * time.Millisecond
	// viewAfter is the minimum duration of a run with a view, because a view
	// that disappears immediately is confusing.
	viewAfter = 800 * time.Millisecond
	keepEvery = 2 // ticks
)

// Message prints a line.
func (p *progress) Message(text string) {
	p.clear()
	_, _ = fmt.Fprintln(p.env.Stderr, text) // errors of stderr are ignored
}

// Progress shows the progress of creating prompts, or of a download.
func (p *progress) Progress(file string, done, all int64) {
	p.bar(done == all, func() string {
		switch {
		case file == "":
			return fmt.Sprintf("Preparing prompts %s %d/%d", bar(done, all), done, all)
		case all <= 0:
			return fmt.Sprintf("Downloading %s %.1f MB", file, float64(done)/1e6)
		}
		return fmt.Sprintf("Downloading %s %s %.1f/%.1f MB", file, bar(done, all), float64(done)/1e6, float64(all)/1e6)
	})
}

// bar shows a progress bar, in the view if there is one, otherwise on the
// current line.
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
		p.board.SetActivity(line())
		return
	}
	if p.erase(); !over {
		p.write("\r\x1b[K" + termtext.Cut(sanitize.Line(line()), p.env.Width()-1))
		p.shown = true
	}
}

func bar(done, all int64) string {
	return "[" + termtext.Pen{ASCII: true}.Bar(float64(done)/float64(max(all, 1)), 20) + "]"
}

// clear erases the progress bar before other output.
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

func (p *progress) write(text string) { _, _ = io.WriteString(p.env.altScreen.terminal, text) } // errors of the terminal are ignored

// describe sets the description of the run.
func (p *progress) describe(about live.About) { p.board.Describe(about) }

// begin shows a running level until end.
func (p *progress) begin(r *run.Runner, l *outcome.Level, feed *live.Feed) {
	p.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	watched := p.plan(r)
	watched.Config = l.Summary.Config
	p.board.Begin(watched)
	p.level = &watchedLevel{feed: feed, epoch: l.Epoch, speed: r.Speed()}
	if p.quit == nil {
		p.quit, p.done, p.last = make(chan struct{}), make(chan struct{}), time.Now()
		go p.watch(p.quit, p.done)
	}
}

// plan describes the level that begins, and the time that the later ones take.
func (p *progress) plan(r *run.Runner) live.Level {
	l := r.Watched(p.count - p.before)
	l.Number = p.count
	switch {
	case p.budget > 0:
		l.Probe, l.AtMost, l.Seconds = true, true, p.budget.Seconds()
	case p.settings > 1 && l.Of > 0:
		l.LaterS = laterSettings(l.LaterS, r.Watched(0).LaterS, p.settings-p.setting)
		l.Of *= p.settings
	}
	return l
}

// laterSettings adds the time of later settings, each of which takes each, to the time of this setting's later levels.
// It is nil if one of both is unknown.
func laterSettings(later, each *float64, settings int) *float64 {
	if later == nil || each == nil {
		return nil
	}
	return new(*later + float64(settings)**each)
}

// keepWith sets the function that stores the state of the run.
func (p *progress) keepWith(keep func(any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = keep
}

// search tells how long a search still takes at most.
func (p *progress) search(left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = left
}

// begins tells that one of several settings begins, counted from 1. Each setting has the
// same levels.
func (p *progress) begins(setting, settings int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.setting, p.settings = p.count, setting, settings
}

// A watchedLevel is the running level.
type watchedLevel struct {
	feed  *live.Feed
	epoch time.Time
	speed run.Speed
}

// watch polls the run.
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
			p.mu.Lock()
			keep := p.keep
			p.mu.Unlock()
			if n%keepEvery == 0 && keep != nil {
				keep(p.board.Snapshot())
			}
		case <-quit:
			return
		}
	}
}

// look updates the state.
func (p *progress) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.level; l != nil {
		p.board.Add(l.feed.Tick(l.speed.Stretch(time.Since(l.epoch))))
	}
}

// show prints the state of the run after the given time.
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

// say prints the state as one line of text or JSON.
func (p *progress) say(words func(*live.Snapshot) string) {
	s := p.board.Snapshot()
	if p.how != plan.JSONProgress {
		_, _ = fmt.Fprintln(p.env.Stderr, words(&s)) // errors of stderr are ignored
		return
	}
	s.History, s.Earlier, s.Past, s.Notes = nil, nil, nil, nil // earlier lines contain these
	line, err := json.Marshal(s)
	if err != nil {
		line = fmt.Appendf(nil, "{%q:%q}", "error", err)
	}
	_, _ = fmt.Fprintln(p.env.Stderr, string(line)) // errors of stderr are ignored
}

// draw shows the view.
func (p *progress) draw() {
	p.env.altScreen.enter(p.board.Note)
	s := p.board.Snapshot()
	wide, high := p.env.Width(), p.env.Height()
	screen := view.Screen{Wide: wide, High: high, Colour: p.env.Getenv("NO_COLOR") == "", Pen: p.env.pen()}
	p.pad.apply(&screen)
	lines := screen.Frame(&s)
	for i := range lines {
		lines[i] = p.env.secrets.Sweep(lines[i])
	}
	p.env.altScreen.draw(lines, wide, high)
}

// pen returns the characters the terminal supports: block characters, unless
// the locale lacks them.
func (e *Env) pen() termtext.Pen {
	language := cmp.Or(e.Getenv("LC_ALL"), e.Getenv("LC_CTYPE"), e.Getenv("LANG"))
	return termtext.Pen{ASCII: language != "" && !strings.Contains(strings.ToUpper(strings.ReplaceAll(language, "-", "")), "UTF8")}
}

// end adds the results of the level.
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
		if s := p.board.Snapshot(); s.Level.Of != 1 && !s.Level.Probe { // a search prints its own line of each probe
			_, _ = fmt.Fprintln(p.env.Stderr, view.PastLine(&s.Past[len(s.Past)-1])) // errors of stderr are ignored
		}
	}
}

// stop closes the view and prints all text held back.
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
	p.env.altScreen.leave()
}
