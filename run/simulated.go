package run

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"tacho"
	"tacho/instrument"
	"tacho/internal/target"
	"tacho/metric"
)

// A Speed is how many times faster than the real thing a simulated engine runs.
// What it is asked is squeezed in time, and what it did is stretched again, so
// that plan and report are in the engine's own time and say what they would say
// at speed 1.
type Speed float64

// Speed is that of the engine, which is 1 unless it is simulated.
func (j *setting) Speed() Speed {
	if j.Plan.Sim == "" {
		return 1
	}
	return Speed(j.Plan.SimSpeedup)
}

// Squeeze is how long something takes by our clock. What is below zero has a
// meaning of its own.
func (f Speed) Squeeze(d time.Duration) time.Duration {
	if d <= 0 || f == 1 {
		return d
	}
	return time.Duration(float64(d) / float64(f))
}

// Stretch is how long something took by the engine's clock.
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

// squeezed is a workload whose pauses are squeezed.
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

// record is one with its times stretched. What the server measured itself is in
// its own time already.
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
	out.Events = slices.Clone(r.Events)
	for i := range out.Events {
		e := &out.Events[i]
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

// The shares of the time from one token to the next by which a simulated engine
// may be late on average.
const (
	simLateDegraded = 0.1
	simLateInvalid  = 0.5
)

// simulated is what is known of a level that a simulated engine served.
func (j *setting) simulated(before, after target.Lateness) []metric.Reason {
	if j.Plan.Sim == "" {
		return nil
	}
	name, speed := j.Plan.Sim, float64(j.Speed())
	if speed != 1 {
		name = fmt.Sprintf("%s, %g times faster than the real thing; all times and rates are in its own time", name, speed)
	}
	out := []metric.Reason{{
		Code: "simulated", Severity: metric.Note, Text: "the server was a simulated engine (" + name + "): these are not figures of any hardware: measure a real server for those",
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
			Text: fmt.Sprintf("this machine could not keep the simulated engine's time: its tokens were %.1f ms late on average, of %.1f ms from one to the next: lower --sim-speedup or the load",
				1e3*late, 1e3*gap),
		})
	}
	return out
}
