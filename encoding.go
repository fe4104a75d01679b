package tacho

import (
	"bytes"
	"encoding/json"
	"errors"
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

// UnmarshalJSON implements json.Unmarshaler. A kept run is mostly columns of
// numbers, so they are read by hand: encoding/json takes several times as long.
func (es *Events) UnmarshalJSON(b []byte) error {
	columns, err := readColumns(b)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	times := columns["at_ns"] // first absolute, then gaps
	*es = make(Events, len(times))
	at := time.Duration(0)
	for i, gap := range times {
		at += time.Duration(gap)
		(*es)[i].At = at
	}
	for _, c := range []struct {
		name string
		most int64
		set  func(*Event, int64)
	}{
		{"read_lag_ns", math.MaxInt32, func(e *Event, v int64) { e.ReadLag = int32(v) }},
		{"tokens", math.MaxInt16, func(e *Event, v int64) { e.Tokens = int16(v) }},
		{"kind", math.MaxUint8, func(e *Event, v int64) { e.Kind = TokenKind(v) }},
	} {
		column := columns[c.name]
		if len(column) != 0 && len(column) != len(times) {
			return fmt.Errorf("events: a column of %d beside %d times", len(column), len(times))
		}
		for i, v := range column {
			if v > c.most || v < -c.most-1 {
				return fmt.Errorf("events: %s: %d is out of range", c.name, v)
			}
			c.set(&(*es)[i], v)
		}
	}
	for _, i := range columns["coalesced"] { // indices
		if i < 0 || i >= int64(len(times)) {
			return fmt.Errorf("events: coalesced event %d of %d", i, len(times))
		}
		(*es)[i].Coalesced = true
	}
	return nil
}

// readColumns reads an object whose values are lists of whole numbers.
func readColumns(b []byte) (map[string][]int64, error) {
	rest := bytes.TrimSpace(b)
	if bytes.Equal(rest, []byte("null")) {
		return nil, nil
	}
	if len(rest) == 0 || rest[0] != '{' {
		return nil, errors.New("not columns of numbers")
	}
	out := map[string][]int64{}
	for {
		_, after, ok := bytes.Cut(rest, []byte(`"`))
		if !ok {
			return out, nil
		}
		name, after, ok := bytes.Cut(after, []byte(`"`))
		if !ok {
			return nil, errors.New("not columns of numbers")
		}
		var column []int64
		var err error
		if column, rest, err = readNumbers(after); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[string(name)] = column
	}
}

// readNumbers reads the list that follows a name, and returns what is after it.
func readNumbers(b []byte) (out []int64, rest []byte, err error) {
	i := bytes.IndexByte(b, '[')
	end := bytes.IndexByte(b, ']')
	if i < 0 || end < i || len(bytes.Trim(b[:i], " \t\r\n:")) > 0 {
		return nil, nil, errors.New("not a list of numbers")
	}
	list := b[i+1 : end]
	out = make([]int64, 0, bytes.Count(list, []byte(","))+1)
	n, digits, sign := int64(0), 0, int64(1)
	flush := func() {
		if digits > 0 {
			out = append(out, sign*n)
		}
		n, digits, sign = 0, 0, 1
	}
	for _, c := range list {
		switch {
		case c >= '0' && c <= '9' && digits < 18:
			n, digits = 10*n+int64(c-'0'), digits+1
		case c == '-' && digits == 0:
			sign = -1
		case c == ',':
			flush()
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		default:
			return nil, nil, fmt.Errorf("%q is no whole number", list[:min(len(list), 40)])
		}
	}
	flush()
	return out, b[end+1:], nil
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
