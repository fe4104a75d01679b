package tacho

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Events are the token arrivals of one request, in order of time. They encode
// by columns, and columns that hold nothing special are left out: a stream of
// a thousand tokens is a thousand small integers and not a thousand objects.
type Events []Event

type eventColumns struct {
	At        []int64 `json:"at_ns"`                 // first absolute, then gaps, in nanoseconds
	ReadLag   []int32 `json:"read_lag_ns,omitempty"` // nanoseconds
	Tokens    []int16 `json:"tokens,omitempty"`      // absent: unknown for all
	Coalesced []int   `json:"coalesced,omitempty"`   // indices
}

// MarshalJSON implements json.Marshaler.
func (es Events) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 16+12*len(es)), `{"at_ns":[`...)
	prev := time.Duration(0)
	for i, e := range es {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(e.At-prev), 10)
		prev = e.At
	}
	b = append(b, ']')
	b = es.column(b, "read_lag_ns", func(e Event) int64 { return int64(e.ReadLag) })
	b = es.column(b, "tokens", func(e Event) int64 { return int64(e.Tokens) })
	b = es.column(b, "kind", func(e Event) int64 { return int64(e.Kind) })
	if slices.ContainsFunc(es, func(e Event) bool { return e.Coalesced }) {
		b = append(b, `,"coalesced":[`...)
		sep := ""
		for i, e := range es {
			if e.Coalesced {
				b = strconv.AppendInt(append(b, sep...), int64(i), 10)
				sep = ","
			}
		}
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

// column appends one column unless all its values are zero.
func (es Events) column(b []byte, name string, of func(Event) int64) []byte {
	if !slices.ContainsFunc(es, func(e Event) bool { return of(e) != 0 }) {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":[`...)
	for i, e := range es {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, of(e), 10)
	}
	return append(b, ']')
}

// UnmarshalJSON implements json.Unmarshaler.
func (es *Events) UnmarshalJSON(b []byte) error {
	// Kind is a byte, and encoding/json would take []TokenKind for base64.
	var c struct {
		eventColumns
		Kind []int `json:"kind"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	n := len(c.At)
	for _, col := range []int{len(c.ReadLag), len(c.Tokens), len(c.Kind)} {
		if col != 0 && col != n {
			return fmt.Errorf("events: a column of %d beside %d times", col, n)
		}
	}
	*es = make(Events, n)
	at := time.Duration(0)
	for i := range *es {
		e := &(*es)[i]
		at += time.Duration(c.At[i])
		e.At = at
		if c.ReadLag != nil {
			e.ReadLag = c.ReadLag[i]
		}
		if c.Tokens != nil {
			e.Tokens = c.Tokens[i]
		}
		if c.Kind != nil {
			e.Kind = TokenKind(c.Kind[i])
		}
	}
	for _, i := range c.Coalesced {
		if i < 0 || i >= n {
			return fmt.Errorf("events: coalesced event %d of %d", i, n)
		}
		(*es)[i].Coalesced = true
	}
	return nil
}

// MarshalJSON writes labels as one object, in their order.
func (ls Labels) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, l := range ls {
		if i > 0 {
			b = append(b, ',')
		}
		for _, s := range []string{l.Key, l.Value} {
			text, err := json.Marshal(s)
			if err != nil {
				return nil, err
			}
			b = append(append(b, text...), ':')
		}
		b = b[:len(b)-1]
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads them in the order in which they are written.
func (ls *Labels) UnmarshalJSON(b []byte) error {
	*ls = nil
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("labels: want an object, not %s", b)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		l := Label{Key: key.(string)}
		if err := d.Decode(&l.Value); err != nil {
			return err
		}
		*ls = append(*ls, l)
	}
	return nil
}

// SaturatedNanos is d as 32 bits of nanoseconds, for Event.ReadLag.
func SaturatedNanos(d time.Duration) int32 {
	return int32(min(max(int64(d), math.MinInt32), math.MaxInt32))
}

// MarshalText implements encoding.TextMarshaler.
func (c Clock) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Clock) UnmarshalText(b []byte) error {
	i := slices.Index(clockNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("unknown clock %q", b)
	}
	*c = Clock(i)
	return nil
}
