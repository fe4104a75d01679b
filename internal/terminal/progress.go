package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/live/view"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/outcome"
)

// A Kind is a way to show progress.
type Kind int

// The kinds of progress.
const (
	None  Kind = iota
	Plain      // lines of text
	JSON       // lines of JSON
	Live       // the live view
)

// Options configure a Progress.
type Options struct {
	Kind     Kind
	Every    time.Duration // between two lines
	Stderr   io.Writer
	Screen   *AltScreen
	Width    func() int
	Height   func() int
	Colour   bool
	Pen      termtext.Pen
	Sweep    func(string) string // removes secrets
	Keyboard *os.File            // a terminal that sends keys; nil if there is none
	Quit     func()              // called for the key q
}

// A Runner runs the levels that are shown.
type Runner interface {
	EndLevel() bool           // ends the running level early, if that is possible
	Watched(n int) live.Level // describes the running level, number n of the run
}

// A Progress shows a run in progress, as a full-screen view or as lines. It polls
// the run and never blocks it: a slow terminal loses frames, and the run loses
// nothing.
type Progress struct {
	live.NopObserver // of a run without levels
	State            live.State

	o    Options
	keep func(snapshot any) // publishes snapshots for other processes; may be nil

	mu     sync.Mutex
	count  int           // levels started
	level  *watchedLevel // nil before the first level
	runner Runner        // nil before it can run levels
	quit   chan struct{} // ends the polling; nil if not running
	done   chan struct{}
	shown  bool // a progress bar is on the screen
	last   time.Time

	budget            time.Duration // of a search; 0 without one
	setting, settings int           // of a sweep of server settings
	before            int           // levels of earlier settings

	pad keypad
}

// NewProgress returns a Progress that shows nothing yet.
func NewProgress(o Options) *Progress {
	p := &Progress{o: o}
	if o.Keyboard != nil {
		p.pad.on = true
		o.Screen.listen = func() func() { return readKeys(o.Keyboard, p.Press) }
	}
	return p
}

// On reports whether progress is shown.
func (p *Progress) On() bool { return p.o.Kind != None }

// Message prints a line.
func (p *Progress) Message(text string) {
	p.clear()
	_, _ = fmt.Fprintln(p.o.Stderr, text) // errors of stderr are ignored
}

// Progress shows the progress of creating prompts, or of a download.
func (p *Progress) Progress(file string, done, all int64) {
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
func (p *Progress) bar(over bool, line func() string) {
	if p.o.Kind != Live {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); !over && now.Sub(p.last) < 200*time.Millisecond {
		return
	}
	p.last = time.Now()
	if p.quit != nil {
		p.State.SetActivity(line())
		return
	}
	if p.erase(); !over {
		p.write("\r\x1b[K" + termtext.Cut(sanitize.Line(line()), p.o.Width()-1))
		p.shown = true
	}
}

func bar(done, all int64) string {
	return "[" + termtext.Pen{ASCII: true}.Bar(float64(done)/float64(max(all, 1)), 20) + "]"
}

// clear erases the progress bar before other output.
func (p *Progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

func (p *Progress) erase() {
	if p.shown {
		p.write("\r\x1b[K")
		p.shown = false
	}
}

func (p *Progress) write(text string) { _, _ = io.WriteString(p.o.Screen.terminal, text) } // errors of the terminal are ignored

// Begin shows a running level until end.
func (p *Progress) Begin(r Runner, stretch func(time.Duration) time.Duration, l *outcome.Level, feed *live.Feed) {
	p.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	watched := p.plan(r)
	watched.Config = l.Summary.Config
	p.State.Begin(watched)
	p.level = &watchedLevel{feed: feed, epoch: l.Epoch, stretch: stretch}
	if p.quit == nil {
		p.quit, p.done, p.last = make(chan struct{}), make(chan struct{}), time.Now()
		go p.watch(p.quit, p.done)
	}
}

// plan describes the level that begins, and the time that the later ones take.
func (p *Progress) plan(r Runner) live.Level {
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

// KeepWith sets the function that stores the state of the run.
func (p *Progress) KeepWith(keep func(any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = keep
}

// Search tells how long a search still takes at most.
func (p *Progress) Search(left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = left
}

// Setting tells that one of several settings begins, counted from 1. Each setting has the
// same levels.
func (p *Progress) Setting(setting, settings int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.setting, p.settings = p.count, setting, settings
}

// A watchedLevel is the running level.
type watchedLevel struct {
	feed    *live.Feed
	epoch   time.Time
	stretch func(time.Duration) time.Duration // from the time here to the time of the level
}

// watch polls the run.
func (p *Progress) watch(quit, done chan struct{}) {
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
			if n%2 == 0 && keep != nil {
				keep(p.State.Snapshot())
			}
		case <-quit:
			return
		}
	}
}

// look updates the state.
func (p *Progress) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.level; l != nil {
		p.State.Add(l.feed.Tick(l.stretch(time.Since(l.epoch))))
	}
}

// show prints the state of the run after the given time.
func (p *Progress) show(passed time.Duration) {
	if !p.On() {
		return
	}
	if p.o.Kind == Live {
		if passed >= 800*time.Millisecond { // a view that disappears immediately is confusing
			p.Draw()
		}
		return
	}
	p.mu.Lock()
	due := p.level != nil && time.Since(p.last) >= p.o.Every
	if due {
		p.last = time.Now()
	}
	p.mu.Unlock()
	if due {
		p.say(view.Line)
	}
}

// say prints the state as one line of text or JSON.
func (p *Progress) say(words func(*live.Snapshot) string) {
	s := p.State.Snapshot()
	if p.o.Kind != JSON {
		_, _ = fmt.Fprintln(p.o.Stderr, words(&s)) // errors of stderr are ignored
		return
	}
	s.History, s.Earlier, s.Past, s.Notes = nil, nil, nil, nil // earlier lines contain these
	line, err := json.Marshal(s)
	if err != nil {
		line = fmt.Appendf(nil, "{%q:%q}", "error", err)
	}
	_, _ = fmt.Fprintln(p.o.Stderr, string(line)) // errors of stderr are ignored
}

// Draw shows the view.
func (p *Progress) Draw() {
	p.o.Screen.enter(p.State.Note)
	s := p.State.Snapshot()
	wide, high := p.o.Width(), p.o.Height()
	screen := view.Screen{Wide: wide, High: high, Colour: p.o.Colour, Pen: p.o.Pen}
	p.pad.apply(&screen)
	lines := screen.Frame(&s)
	for i := range lines {
		lines[i] = p.o.Sweep(lines[i])
	}
	p.o.Screen.draw(lines, wide, high)
}

// End adds the results of the level.
func (p *Progress) End(l *outcome.Level) {
	p.look()
	p.mu.Lock()
	shown := p.level != nil
	p.level = nil
	p.mu.Unlock()
	if !shown {
		return
	}
	p.State.End(l)
	switch p.o.Kind {
	case JSON:
		p.say(nil)
	case Plain:
		if s := p.State.Snapshot(); s.Level.Of != 1 && !s.Level.Probe { // a search prints its own line of each probe
			_, _ = fmt.Fprintln(p.o.Stderr, view.PastLine(&s.Past[len(s.Past)-1])) // errors of stderr are ignored
		}
	}
}

// Stop closes the view and prints all text held back.
func (p *Progress) Stop() {
	p.mu.Lock()
	quit, done := p.quit, p.done
	p.quit, p.level = nil, nil
	p.mu.Unlock()
	if quit != nil {
		close(quit)
		<-done
	}
	p.clear()
	p.o.Screen.Leave()
}
