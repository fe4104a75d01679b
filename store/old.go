package store

import (
	"bytes"
	"encoding/json"
	"time"

	"tacho"
)

// Runs of the time before formats had numbers have names without units, labels
// as lists, and probes that are known by a label. Here they become what they
// would be now. A field of an outer struct hides the one of the same name in the
// struct within.

func readOldManifest(b []byte, m *Manifest) error {
	var old struct{ Model, Counter string }
	err := json.Unmarshal(b, &old)
	m.Target.Model, m.Target.Counter = old.Model, old.Counter
	return err
}

func readOldLevel(b []byte, l *Level) error {
	old := struct {
		*Level
		Monotonic float64 `json:"monotonic_seconds"`
	}{Level: l}
	err := json.Unmarshal(b, &old)
	l.Monotonic = old.Monotonic
	return err
}

func readOldReading(b []byte, r *Reading) error {
	old := struct {
		*Reading
		At time.Duration `json:"at"`
	}{Reading: r}
	err := json.Unmarshal(b, &old)
	r.At = old.At
	return err
}

type oldRecord struct {
	*tacho.Record
	Labels                       []tacho.Label `json:"labels"`
	Input, Asked, Output         int
	Due, Slot, Start, Conn, Sent time.Duration
	Wrote, Head, End             time.Duration
	ClockStep                    time.Duration                                                `json:"clock_step"`
	Events                       oldEvents                                                    `json:"events"`
	Usage                        *struct{ Prompt, Completion, Cached, Reasoning int }         `json:"usage"`
	Server                       *struct{ Queue, TTFT, Prefill, Decode, Total time.Duration } `json:"server"`
}

func readOldRecord(b []byte, r *tacho.Record) error {
	old := oldRecord{Record: r}
	if err := json.Unmarshal(b, &old); err != nil {
		return err
	}
	r.Labels, r.Input, r.Asked, r.Output = old.Labels, old.Input, old.Asked, old.Output
	r.Due, r.Slot, r.Start, r.Conn, r.Sent = old.Due, old.Slot, old.Start, old.Conn, old.Sent
	r.Wrote, r.Head, r.End, r.ClockStep, r.Events = old.Wrote, old.Head, old.End, old.ClockStep, tacho.Events(old.Events)
	if u := old.Usage; u != nil {
		r.Usage = &tacho.Usage{Prompt: u.Prompt, Completion: u.Completion, Cached: u.Cached, Reasoning: u.Reasoning}
	}
	if s := old.Server; s != nil {
		r.Server = &tacho.ServerTimes{Queue: s.Queue, TTFT: s.TTFT, Prefill: s.Prefill, Decode: s.Decode, Total: s.Total}
	}
	if len(r.Labels) == 1 && r.Labels[0] == (tacho.Label{Key: "probe", Value: "1"}) && r.Asked == 1 {
		r.Probe, r.Labels = true, nil
	}
	return nil
}

type oldEvents tacho.Events

// UnmarshalJSON implements json.Unmarshaler. There is nothing but numbers beside
// the names.
func (es *oldEvents) UnmarshalJSON(b []byte) error {
	b = bytes.Replace(b, []byte(`"at":`), []byte(`"at_ns":`), 1)
	b = bytes.Replace(b, []byte(`"read_lag":`), []byte(`"read_lag_ns":`), 1)
	return (*tacho.Events)(es).UnmarshalJSON(b)
}
