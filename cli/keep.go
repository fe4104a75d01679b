package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"tacho/engine"
	"tacho/run"
	"tacho/store"
)

// manifest says what the run is: the plan as it was given, and what became of it.
func (b *benchRun) manifest(given json.RawMessage) store.Manifest {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := b.runner
	m := store.Manifest{
		Tool: "tacho", Version: version(), Started: time.Now(), Label: r.Plan.Label,
		Args: b.env.Args, Seed: r.Seed,
		Host: store.Host{
			Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			GoVersion: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		},
		Plan:   given,
		Target: store.Target{Backend: r.Plan.Backend, Model: r.ModelID, Counter: r.Counter.Name(), IDPrefix: r.Plan.RequestIDPrefix},
	}
	if m.Label == "" {
		m.Label = r.Plan.Backend
	}
	m.Label = b.env.secrets.Sweep(m.Label) // it is a part of the directory's name
	if r.Model != r.ModelID {
		m.Target.Requested = r.Model
	}
	for _, s := range r.Servers {
		m.Target.Servers = append(m.Target.Servers, store.Server{URL: s.URL, Name: s.Name, Version: s.Version, MaxModelTokens: s.MaxLen, Settings: s.Settings})
	}
	for _, g := range r.GPUs {
		m.Target.GPUs = append(m.Target.GPUs, store.GPUs(g))
	}
	return m
}

// begin notes that a level has begun.
func (b *benchRun) begin(s run.Stage, live *engine.Live) error {
	b.progress.begin(s, live)
	return b.keepStage(s)
}

func (b *benchRun) keepStage(s run.Stage) error {
	config, err := json.Marshal(s.Config)
	if err != nil {
		return err
	}
	kept := store.Stage{
		Index: s.Index, Name: s.Name, Value: s.Value, Prompts: s.Inputs, Rate: s.Rate, Concurrency: s.Concurrency,
		Epoch: s.Epoch, Monotonic: s.Monotonic, Config: config,
	}
	if math.IsInf(s.Rate, 1) {
		kept.Rate = 0
	}
	return b.keep.Stage(kept)
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
	case lost || b.runner.Plan.OnDiskFull == run.StopOnFullDisk:
		b.say(fmt.Sprintf("Stopping, for the run cannot be kept: %v. It is in %s: %s.", err, b.keep.Dir(), more))
		b.stop(diskFull{fmt.Errorf("the run was stopped, for it could not be kept: %w", err)})
	default:
		b.say(fmt.Sprintf("The run cannot be written down: %v. It goes on, and what finishes waits in memory for room in %s: %s.", err, b.keep.Dir(), more))
	}
}
