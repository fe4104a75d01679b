package bench

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/store"
)

// manifest describes the run: the original plan and its resolved form.
func (b *Bench) manifest() store.Manifest {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := b.Runner
	m := store.Manifest{
		Tool: "tacho", Version: Build(), Started: time.Now(), Label: r.Plan.Label,
		Args: b.o.Args, Seed: r.Seed,
		Host: store.Host{
			Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			GoVersion: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		},
		Varies: b.varies(), Swept: r.Asked.Swept(),
		Plan:   b.given,
		Target: store.Target{Backend: r.Plan.Backend, Model: r.Target.ModelID, Dataset: r.Plan.Prompts(), Counter: r.Counter().Name(), IDPrefix: r.Plan.RequestIDPrefix},
	}
	m.Cluster = b.o.Cluster
	prefix := ""
	if r.Plan.Virtual {
		prefix = "predicted-" // predictions must not be mistaken for measurements
	}
	if m.Label == "" {
		m.Label = b.name(nameLength - len(prefix))
	}
	m.Label = b.o.Env.Secrets.Sweep(prefix + m.Label) // part of the directory's name
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

// name returns the name of the run if the plan has no label.
func (b *Bench) name(limit int) string {
	r := b.Runner
	load, engine := loadName(&r.Asked), r.Plan.Backend
	if b.terse {
		load = "find"
	}
	if len(r.Target.Servers) > 0 {
		engine = cmp.Or(r.Target.Servers[0].Name, engine)
	}
	return runName(b.o.Env.Secrets.Sweep(r.Target.ModelID), load, engine, limit)
}

// varies returns the names of the options that differ between levels.
func (b *Bench) varies() string {
	var names []string
	for _, c := range b.outer {
		names = append(names, c.Name)
	}
	return strings.TrimSpace(strings.Join(names, " ") + " " + b.Runner.Asked.Varies())
}

// LevelStarted records the start of a level.
func (b *Bench) LevelStarted(l *outcome.Level, feed *live.Feed) error {
	b.showLevel(l, &feed.Counts)
	return errors.Join(b.shown.LevelStarted(l, feed), b.Keep.Level(keptLevel(b.placed(l))))
}

func keptLevel(l *outcome.Level) store.Level {
	return store.Level{Setting: l.Setting, Config: l.Summary.Config}
}

// A DiskFull reports a run that ended because it could not be stored.
type DiskFull struct{ error }

// diskIsFull informs the user when the disk is full or has space again. It
// stops the run if the plan says so, or if the buffer is full too.
func (b *Bench) diskIsFull(err error) {
	const more = "free some space or choose another directory with --runs-dir"
	switch lost := errors.Is(err, store.ErrLost); {
	case err == nil:
		b.Message("The disk has space again. All buffered records are written, and nothing is lost.")
	case lost || b.Runner.Plan.OnDiskFull == plan.StopOnFullDisk:
		b.Message(fmt.Sprintf("Stopping because the run cannot be stored: %v. The run is in %s; %s.", err, b.Keep.Dir(), more))
		b.stop(DiskFull{fmt.Errorf("stopped because the run could not be stored: %w", err)})
	default:
		b.Message(fmt.Sprintf("The run cannot be stored: %v. It continues and buffers records in memory until there is space in %s; %s.", err, b.Keep.Dir(), more))
	}
}

// LevelPrepared creates the run directory just before the first level, so that a
// failed start leaves no files.
func (b *Bench) LevelPrepared() error {
	if b.Keep == nil {
		keep, err := store.Create(b.Runner.Plan.RunsDir, b.manifest(), b.o.Env.Secrets.SweepJSON)
		if err != nil {
			return err
		}
		if err := b.keepIn(keep); err != nil {
			return err
		}
	}
	return b.shown.LevelPrepared()
}

// keepIn sets the store of the run.
func (b *Bench) keepIn(keep *store.Writer) error {
	b.Keep = keep
	keep.Full = b.diskIsFull
	if b.Runner.Plan.Virtual {
		keep.Batch()
	}
	kept, err := keep.Read()
	if err != nil {
		return err
	}
	b.Outcome.About, b.Outcome.Records = archive.About(keep.Dir(), &kept.Manifest), b.recordsOf(archive.Requests)
	if b.board != nil {
		b.board.Name(b.Outcome.Name)
	}
	b.Message("Run directory: " + keep.Dir())
	return nil
}

// AddAll implements engine.Batcher.
func (b *Bench) AddAll(rs []*tacho.Record) error {
	for _, r := range rs {
		r.Stage += b.base
		if b.board != nil {
			_ = b.board.Add(r) // cannot fail
		}
	}
	return b.Keep.AddAll(rs)
}

// Close implements tacho.Sink.
func (b *Bench) Close() error { return b.Keep.Close() }

// recordsOf returns an iterator over stored records selected by of.
func (b *Bench) recordsOf(of func(*store.Run) iter.Seq2[*tacho.Record, error]) func() iter.Seq2[*tacho.Record, error] {
	return func() iter.Seq2[*tacho.Record, error] {
		kept, err := b.Keep.Read()
		if err != nil {
			return func(yield func(*tacho.Record, error) bool) { yield(nil, err) }
		}
		return of(kept)
	}
}

// placed returns the level with the coordinates of the server settings added.
func (b *Bench) placed(l *outcome.Level) *outcome.Level {
	if len(b.outer) == 0 {
		return l
	}
	out := *l
	out.Index += b.base
	out.Coordinates = slices.Concat(b.outer, l.Coordinates)
	var names, values []string
	for _, c := range b.outer {
		names, values = append(names, "--serve-param "+strings.TrimPrefix(c.Name, ServePrefix)+"="+c.Value), append(values, c.Value)
	}
	out.Name = strings.TrimSpace(strings.Join(names, " ") + " " + l.Name)
	out.Value = strings.TrimSpace(strings.Join(values, " ") + " " + l.Value)
	return &out
}
