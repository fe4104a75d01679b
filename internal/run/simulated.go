package run

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/metric"
)

// A Speed is the speed-up factor of a simulated engine. The load is compressed
// in time and the results are stretched, so that plan and report use engine
// time and are independent of the factor.
type Speed float64

// Speed returns the speed-up factor of the engine, 1 for a real server.
func (j *setting) Speed() Speed {
	if j.Plan.Sim == "" {
		return 1
	}
	return Speed(j.Plan.SimSpeedup)
}

// Squeeze converts engine time to local time. Negative values are special and
// stay unchanged.
func (f Speed) Squeeze(d time.Duration) time.Duration {
	if d <= 0 || f == 1 {
		return d
	}
	return time.Duration(float64(d) / float64(f))
}

// Stretch converts local time to engine time.
func (f Speed) Stretch(d time.Duration) time.Duration {
	if d == tacho.Never || f == 1 {
		return d
	}
	return time.Duration(float64(d) * float64(f))
}

func (f Speed) arrivals(offsets iter.Seq[time.Duration]) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for d := range offsets {
			if !yield(f.Squeeze(d)) {
				return
			}
		}
	}
}

// squeezed is a workload with compressed pauses.
type squeezed struct {
	tacho.Source
	speed Speed
}

func (s squeezed) Session(i uint64) (tacho.Session, error) {
	session, err := s.Source.Session(i)
	session.Turns = slices.Clone(session.Turns)
	for k := range session.Turns {
		t := &session.Turns[k]
		t.Think, t.At = s.speed.Squeeze(t.Think), s.speed.Squeeze(t.At)
	}
	return session, err
}

func (f Speed) source(s tacho.Source) tacho.Source {
	if f == 1 {
		return s
	}
	return squeezed{s, f}
}

// record stretches the times of a record. Times reported by the server are
// already engine time.
func (f Speed) record(r *tacho.Record) *tacho.Record {
	if f == 1 {
		return r
	}
	out := *r
	for _, at := range []*time.Duration{
		&out.Due, &out.Slot, &out.Start, &out.Conn, &out.Sent, &out.Wrote, &out.Head, &out.End, &out.ClockStep,
	} {
		*at = f.Stretch(*at)
	}
	out.Opening, out.Events = slices.Clone(r.Opening), slices.Clone(r.Events)
	for e := range out.Arrivals() {
		e.At = f.Stretch(e.At)
		e.ReadLag = int32(min(float64(e.ReadLag)*float64(f), 1<<31-1))
	}
	return &out
}

func (f Speed) samples(samples []instrument.Sample) []instrument.Sample {
	for i := range samples {
		samples[i].At = f.Stretch(samples[i].At)
	}
	return samples
}

// Limits of the average lateness of a simulated engine, as a fraction of the
// time between tokens.
const (
	simLateDegraded = 0.1
	simLateInvalid  = 0.5
)

// simulated returns reasons for a level served by a simulated engine.
func (j *setting) simulated(before, after target.Lateness) []metric.Reason {
	if j.Plan.Sim == "" {
		return nil
	}
	name, speed := j.Plan.Sim, float64(j.Speed())
	if speed != 1 {
		name = fmt.Sprintf("%s, sped up %g times, in engine time", name, speed)
	}
	out := []metric.Reason{{
		Code: "simulated", Severity: metric.Note, Text: "the server was a simulated engine (" + name + "), not real hardware: measure a real server before relying on the results",
	}}
	if after.Writes == before.Writes || after.Gaps == before.Gaps {
		return out
	}
	late := (after.LateS - before.LateS) / float64(after.Writes-before.Writes)
	gap := (after.GapS - before.GapS) / float64(after.Gaps-before.Gaps)
	severity := metric.Valid
	switch {
	case late > simLateInvalid*gap:
		severity = metric.Invalid
	case late > simLateDegraded*gap:
		severity = metric.Degraded
	}
	if severity != metric.Valid {
		out = append(out, metric.Reason{
			Code: "simulated-late", Severity: severity,
			Text: fmt.Sprintf("the simulated engine was too slow on this machine, so tokens were %s late at %s per token: lower --sim-speedup or the load",
				metric.Duration(1e3*late), metric.Duration(1e3*gap)),
		})
	}
	return out
}
