package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"tacho/live"
	"tacho/outcome"
	"tacho/plan"
	"tacho/store"
)

// manifest says what the run is: the plan as it was given, and what became of it.
func (b *benchRun) manifest() store.Manifest {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := b.runner
	m := store.Manifest{
		Tool: "tacho", Version: build(), Started: time.Now(), Label: r.Plan.Label,
		Args: b.env.Args, Seed: r.Seed,
		Host: store.Host{
			Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			GoVersion: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		},
		Varies: b.varies(), Swept: r.Asked.Swept(),
		Plan:   b.given,
		Target: store.Target{Backend: r.Plan.Backend, Model: r.Target.ModelID, Dataset: r.Plan.Datasets(), Counter: r.Counter().Name(), IDPrefix: r.Plan.RequestIDPrefix},
	}
	if b.agents != nil {
		m.Cluster = b.agents.name
	}
	if m.Label == "" {
		m.Label = r.Plan.Backend
	}
	if r.Plan.Virtual {
		m.Label = "predicted-" + m.Label // and never taken for measured
	}
	m.Label = b.env.secrets.Sweep(m.Label) // it is a part of the directory's name
	if r.Target.Model != r.Target.ModelID {
		m.Target.Requested = r.Target.Model
	}
	for _, s := range r.Target.Servers {
		m.Target.Servers = append(m.Target.Servers, store.Server{URL: s.URL, Name: s.Name, Version: s.Version, MaxModelTokens: s.MaxLen, Settings: s.Settings})
	}
	for _, g := range r.Target.GPUs {
		m.Target.GPUs = append(m.Target.GPUs, store.GPUs(g))
	}
	return m
}

// varies names what sets the levels apart.
func (b *benchRun) varies() string {
	var names []string
	for _, c := range b.outer {
		names = append(names, c.Name)
	}
	return strings.TrimSpace(strings.Join(names, " ") + " " + b.runner.Asked.Varies())
}

// begin notes that a level has begun.
func (b *benchRun) begin(l *outcome.Level, feed *live.Feed) error {
	b.live = feed
	b.showLevel(l.Name, &feed.Counts)
	b.progress.begin(b.runner, l.Epoch, feed)
	return b.keep.Level(keptLevel(b.placed(l)))
}

func keptLevel(l *outcome.Level) store.Level {
	return store.Level{Setting: l.Setting, Config: l.Summary.Config}
}

// A diskFull ended a run.
type diskFull struct{ error }

// diskIsFull tells, at once, that the run cannot be written down as it goes on,
// or that it can again; it stops the run where the plan says so, or where nothing
// else is left.
func (b *benchRun) diskIsFull(err error) {
	const more = "free some space there, or choose another place with --runs-dir"
	switch lost := errors.Is(err, store.ErrLost); {
	case err == nil:
		b.say("There is room for the run again: all that waited in memory is written, and nothing is lost.")
	case lost || b.runner.Plan.OnDiskFull == plan.StopOnFullDisk:
		b.say(fmt.Sprintf("Stopping, for the run cannot be kept: %v. It is in %s: %s.", err, b.keep.Dir(), more))
		b.stop(diskFull{fmt.Errorf("the run was stopped, for it could not be kept: %w", err)})
	default:
		b.say(fmt.Sprintf("The run cannot be written down: %v. It goes on, and what finishes waits in memory for room in %s: %s.", err, b.keep.Dir(), more))
	}
}
