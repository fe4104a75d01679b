package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/replay"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/store"
)

// openReplay reads the requests of a stored level: RUN, or RUN:INDEX.
func openReplay(env *Env, name string) (*run.Replay, error) {
	dir, index := name, -1
	if at := strings.LastIndexByte(name, ':'); at > 0 {
		if n, err := strconv.Atoi(name[at+1:]); err == nil {
			dir, index = name[:at], n
		}
	}
	kept, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	level, err := levelOf(kept, index)
	if err != nil {
		return nil, err
	}
	p := plan.Default()
	if err := p.Read(kept.Manifest.Plan, env.secrets); err != nil {
		return nil, fmt.Errorf("plan of the run: %w", err)
	}
	if p.Replay != "" {
		return nil, fmt.Errorf("the run is a replay of %s, use that run", p.Replay)
	}
	one, err := p.With(level.Coordinates)
	if err != nil {
		return nil, err
	}
	if err := target.Check(&one, nil); err != nil {
		return nil, fmt.Errorf("plan of the run: %w", err)
	}
	sessions, err := replay.New(archive.Level(kept, level.Index), level.Concurrency > 0)
	if err != nil {
		return nil, err
	}
	if m := kept.Mismatch(level); m != nil {
		return nil, fmt.Errorf("%v; use a complete run", m)
	}
	out := &run.Replay{Sessions: sessions, Dataset: one.Dataset, Seed: run.LevelSeed(kept.Manifest.Seed, level.Index), Inputs: level.Prompts}
	out.Endless = one.MaxSeconds > 0
	if level.Rate == 0 && level.Ramp == nil && !one.OwnTimes() {
		out.Loop = level.Concurrency
	}
	return out, nil
}

// levelOf returns the level with an index, or the only level.
func levelOf(kept *store.Run, index int) (*store.Level, error) {
	if len(kept.Levels) == 0 {
		return nil, errors.New("the run has no levels")
	}
	if index < 0 && len(kept.Levels) == 1 {
		return &kept.Levels[0], nil
	}
	i := slices.IndexFunc(kept.Levels, func(l store.Level) bool { return l.Index == index })
	if i < 0 {
		var names []string
		for _, l := range kept.Levels {
			name := fmt.Sprintf("%s:%d", kept.Dir, l.Index)
			if l.Name != "" {
				name += " (" + l.Name + ")"
			}
			names = append(names, name)
		}
		return nil, fmt.Errorf("choose a level: %s", strings.Join(names, ", "))
	}
	return &kept.Levels[i], nil
}
