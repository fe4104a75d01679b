package outcome

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Coordinates are the values of all list options for one level. Levels of several runs with equal
// coordinates are the same level.
type Coordinates []Coordinate

// A Coordinate is the value of one option. In JSON it is a number or boolean if possible, otherwise a
// text.
type Coordinate struct {
	Name  string // name of the option: request-rate
	Value string // as given to the flag
}

// Number returns the value as a number, if it is one. inf is a number.
func (c Coordinate) Number() (float64, bool) {
	f, err := strconv.ParseFloat(c.Value, 64)
	return f, err == nil
}

// Of returns the value of an option, or false if the option is not a list.
func (cs Coordinates) Of(name string) (string, bool) {
	for _, c := range cs {
		if c.Name == name {
			return c.Value, true
		}
	}
	return "", false
}

// Without returns all coordinates except one option.
func (cs Coordinates) Without(name string) (out Coordinates) {
	for _, c := range cs {
		if c.Name != name {
			out = append(out, c)
		}
	}
	return out
}

// Of returns the description of a run at one of its levels.
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

// Order sorts the levels of a run by their coordinates, whatever the order in which they ran: by index,
// and by load in a sweep.
func (r *Run) Order() {
	slices.SortStableFunc(r.Levels, func(a, b Level) int { return cmp.Compare(a.Index, b.Index) })
	if r.Swept == "" {
		return
	}
	first := map[string]int{} // index of the first level with the same coordinates except the load
	others := func(l Level) string { return fmt.Sprint(l.Coordinates.Without(r.Swept)) }
	load := func(l Level) float64 {
		value, _ := l.Coordinates.Of(r.Swept)
		f, _ := strconv.ParseFloat(value, 64) // a sweep has only numbers
		return f
	}
	for i, l := range slices.Backward(r.Levels) {
		first[others(l)] = i
	}
	slices.SortStableFunc(r.Levels, func(a, b Level) int {
		return cmp.Or(cmp.Compare(first[others(a)], first[others(b)]), cmp.Compare(load(a), load(b)), cmp.Compare(a.Repeat, b.Repeat))
	})
}

// SimulatedEngine is the prefix of a server name if the server was simulated.
const SimulatedEngine = "simulated engine "

// SimulatedWord marks the results of a simulated server, beside the verdict.
const SimulatedWord = "SIMULATED"

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

// mostCoordinates is the maximum number of coordinates of a level. A plan has at most 10,000 levels, and each list has
// two values or more, so at most 13 options are lists. Reports compare coordinates with each other, in quadratic time.
const mostCoordinates = 64

// UnmarshalJSON implements json.Unmarshaler.
func (cs *Coordinates) UnmarshalJSON(b []byte) error {
	var list []Coordinate
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if len(list) > mostCoordinates {
		return fmt.Errorf("a level has %d coordinates, more than %d: this is not a run of tacho", len(list), mostCoordinates)
	}
	*cs = list
	return nil
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
