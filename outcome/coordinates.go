package outcome

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Coordinates say where a level is in the space of all lists of a plan. Levels of
// several runs that have the same are the same level.
type Coordinates []Coordinate

// A Coordinate is the value of one option. It is written as a number or a truth
// value where it is one, else as text.
type Coordinate struct {
	Name  string // of the option: request-rate
	Value string // as its flag takes it
}

// Number is the value where it is a number; inf is one.
func (c Coordinate) Number() (float64, bool) {
	f, err := strconv.ParseFloat(c.Value, 64)
	return f, err == nil
}

// Of is the value of an option; false where it is no list.
func (cs Coordinates) Of(name string) (string, bool) {
	for _, c := range cs {
		if c.Name == name {
			return c.Value, true
		}
	}
	return "", false
}

// Without are all but that of one option.
func (cs Coordinates) Without(name string) (out Coordinates) {
	for _, c := range cs {
		if c.Name != name {
			out = append(out, c)
		}
	}
	return out
}

// Of is what a run was at one of its levels.
func (a About) Of(l *Level) *About {
	for _, c := range l.Coordinates {
		switch c.Name {
		case "backend":
			a.Backend = c.Value
		case "model":
			a.Model = c.Value
		case "dataset-name":
			a.Dataset = c.Value
		case "sim":
			a.URLs = []string{SimulatedEngine + c.Value}
		}
	}
	return &a
}

// Order brings the levels of a run into the order of their coordinates, whatever
// the order in which they ran: that of their indexes, and in a sweep that of its
// loads.
func (r *Run) Order() {
	slices.SortStableFunc(r.Levels, func(a, b Level) int { return cmp.Compare(a.Index, b.Index) })
	if r.Swept == "" {
		return
	}
	first := map[string]int{} // levels that differ in nothing but their load
	others := func(l Level) string { return fmt.Sprint(l.Coordinates.Without(r.Swept)) }
	load := func(l Level) float64 {
		value, _ := l.Coordinates.Of(r.Swept)
		f, _ := strconv.ParseFloat(value, 64) // a sweep has numbers only
		return f
	}
	for i, l := range slices.Backward(r.Levels) {
		first[others(l)] = i
	}
	slices.SortStableFunc(r.Levels, func(a, b Level) int {
		return cmp.Or(cmp.Compare(first[others(a)], first[others(b)]), cmp.Compare(load(a), load(b)), cmp.Compare(a.Repeat, b.Repeat))
	})
}

// SimulatedEngine begins the name of a server that was none.
const SimulatedEngine = "simulated engine "

type coordinate struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// MarshalJSON implements json.Marshaler.
func (c Coordinate) MarshalJSON() ([]byte, error) {
	value := json.RawMessage(c.Value)
	if kind := bytes.IndexAny(value, "-0123456789tf"); kind != 0 || !json.Valid(value) {
		text, err := json.Marshal(c.Value)
		if err != nil {
			return nil, err
		}
		value = text
	}
	return json.Marshal(coordinate{c.Name, value})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Coordinate) UnmarshalJSON(b []byte) error {
	var in coordinate
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	c.Name, c.Value = in.Name, string(in.Value)
	if len(in.Value) > 0 && in.Value[0] == '"' {
		return json.Unmarshal(in.Value, &c.Value)
	}
	return nil
}
