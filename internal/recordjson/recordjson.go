// Package recordjson writes records as lines of JSON and reads them.
//
// Most of a stored run is token times, and encoding/json takes several times as long for them, so this package has
// its own encoder and decoder. They can go when encoding/json/v2 is no longer experimental.
package recordjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
)

// Events are tacho.Events stored in columns. Columns with only default values are left out, so a stream of a thousand
// tokens is a thousand small integers instead of a thousand objects.
type Events tacho.Events

// MarshalJSON implements json.Marshaler.
func (es Events) MarshalJSON() ([]byte, error) {
	return es.append(make([]byte, 0, 16+12*len(es))), nil
}

func (es Events) append(b []byte) []byte {
	b = append(b, `{"at_ns":[`...)
	prev := time.Duration(0)
	var seen struct{ lag, tokens, kind, slack int64 } // columns with a value other than 0
	for i := range es {
		e := &es[i]
		b = appendNumber(b, int64(e.At-prev))
		prev = e.At
		seen.lag |= int64(e.ReadLag)
		seen.tokens |= int64(e.Tokens)
		seen.kind |= int64(e.Kind)
		seen.slack |= int64(e.Slack)
	}
	b = closeList(b)
	if seen.lag != 0 {
		b = es.column(b, "read_lag_ns", func(e *tacho.Event) int64 { return int64(e.ReadLag) })
	}
	if seen.tokens != 0 {
		b = es.column(b, "tokens", func(e *tacho.Event) int64 { return int64(e.Tokens) })
	}
	if seen.kind != 0 {
		b = es.column(b, "kind", func(e *tacho.Event) int64 { return int64(e.Kind) })
	}
	if seen.slack != 0 {
		b = es.coalesced(b, "coalesced", func(i int) int64 { return int64(i) })
		b = es.coalesced(b, "slack_ns", func(i int) int64 { return int64(es[i].Slack.Duration()) })
	}
	return append(b, '}')
}

// coalesced appends a list with one number for each coalesced event.
func (es Events) coalesced(b []byte, name string, of func(i int) int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":[`...)
	for i, e := range es {
		if e.Coalesced() {
			b = appendNumber(b, of(i))
		}
	}
	return closeList(b)
}

func (es Events) column(b []byte, name string, of func(*tacho.Event) int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":[`...)
	for i := range es {
		b = appendNumber(b, of(&es[i]))
	}
	return closeList(b)
}

// appendNumber appends a number and a comma. Most of a stored run is numbers with few digits, so their digits are
// computed in parallel.
func appendNumber(b []byte, n int64) []byte {
	switch {
	case uint64(n) < 10:
		return append(b, byte('0'+n), ',')
	case uint64(n) >= 1e8:
		return append(strconv.AppendInt(b, n, 10), ',')
	}
	d := digits(uint32(n))
	zeros := bits.TrailingZeros64(d) / 8 // leading zeros
	b = binary.LittleEndian.AppendUint64(b, (d|0x3030303030303030)>>(8*zeros))
	return append(b[:len(b)-zeros], ',')
}

// digits returns the eight decimal digits of a number below 1e8, one in each byte, the first digit in the lowest
// byte. It splits the number three times, all parts in parallel: n/100 is n*10486>>20 for all n below 1e4, and n/10
// is n*103>>10 below 100.
func digits(n uint32) uint64 {
	high := n / 1e4
	v := uint64(high) | uint64(n-high*1e4)<<32
	hundreds := v * 10486 >> 20 & 0x7f0000007f
	v = hundreds | (v-100*hundreds)<<16
	tens := v * 103 >> 10 & 0x000f000f000f000f
	return tens | (v-10*tens)<<8
}

// closeList replaces the comma after the last number by a bracket.
func closeList(b []byte) []byte {
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	return append(b, ']')
}

// UnmarshalJSON implements json.Unmarshaler.
func (es *Events) UnmarshalJSON(b []byte) error {
	var plain bytes.Buffer
	if err := json.Compact(&plain, b); err != nil {
		return err
	}
	if plain.String() == "null" {
		*es = nil
		return nil
	}
	return es.read(plain.Bytes())
}

// read parses the columns without encoding/json, which takes several times as long.
func (es *Events) read(b []byte) error {
	columns, err := readColumns(b)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	times := columns.named("at_ns") // the first is absolute, the others are gaps
	if len(times) > limit.Events {
		return fmt.Errorf("events: more than %d", limit.Events)
	}
	*es = make(Events, len(times))
	at := time.Duration(0)
	for i, gap := range times {
		at += time.Duration(gap)
		(*es)[i].At = at
	}
	for _, c := range []struct {
		name string
		most int64
		set  func(*tacho.Event, int64)
	}{
		{"read_lag_ns", math.MaxInt32, func(e *tacho.Event, v int64) { e.ReadLag = int32(v) }},
		{"tokens", math.MaxInt16, func(e *tacho.Event, v int64) { e.Tokens = int16(v) }},
		{"kind", math.MaxUint8, func(e *tacho.Event, v int64) { e.Kind = tacho.TokenKind(v) }},
	} {
		column := columns.named(c.name)
		if len(column) != 0 && len(column) != len(times) {
			return fmt.Errorf("events: %s has %d values for %d times", c.name, len(column), len(times))
		}
		for i, v := range column {
			if v > c.most || v < -c.most-1 {
				return fmt.Errorf("events: %s: %d is out of range", c.name, v)
			}
			c.set(&(*es)[i], v)
		}
	}
	return es.readSlack(columns.named("coalesced"), columns.named("slack_ns"))
}

// readSlack sets the slack of the coalesced events.
func (es *Events) readSlack(indices, nanos []int64) error {
	if len(nanos) != len(indices) {
		return fmt.Errorf("events: slack_ns has %d values for %d coalesced events", len(nanos), len(indices))
	}
	for k, i := range indices {
		if i < 0 || i >= int64(len(*es)) {
			return fmt.Errorf("events: coalesced event %d of %d is out of range", i, len(*es))
		}
		(*es)[i].Slack = tacho.SlackOf(time.Duration(nanos[k]))
	}
	return nil
}

// columns are named lists of whole numbers.
type columns []column

type column struct {
	name    []byte
	numbers []int64
}

// named returns the last column with the given name, or nil if there is none.
func (cs columns) named(name string) []int64 {
	for _, c := range slices.Backward(cs) {
		if string(c.name) == name {
			return c.numbers
		}
	}
	return nil
}

// mostColumns is the number of columns of events.
const mostColumns = 6

// readColumns reads a compact object whose values are lists of whole numbers.
func readColumns(b []byte) (columns, error) {
	rest, begun := bytes.CutPrefix(b, []byte("{"))
	rest, ended := bytes.CutSuffix(rest, []byte("}"))
	if !begun || !ended {
		return nil, errors.New("not columns of numbers")
	}
	out := make(columns, 0, 4)
	count := bytes.Count(rest, []byte(",")) + 1
	if count > mostColumns*limit.Events {
		return nil, fmt.Errorf("more than %d numbers", mostColumns*limit.Events)
	}
	numbers := make([]int64, 0, count) // capacity for all columns
	for more := len(rest) > 0; more; {
		name, after, named := memberName(rest)
		list, opened := bytes.CutPrefix(after, []byte("["))
		list, after, closed := bytes.Cut(list, []byte("]"))
		if !named || !opened || !closed || bytes.ContainsFunc(name, notInColumnName) {
			return nil, errors.New("not a list of numbers")
		}
		begin := len(numbers)
		var err error
		if numbers, err = readNumbers(numbers, list); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, column{name, numbers[begin:]})
		if rest, more = bytes.CutPrefix(after, []byte(",")); !more && len(rest) > 0 {
			return nil, errors.New("not columns of numbers")
		}
	}
	return out, nil
}

func notInColumnName(c rune) bool { return (c < 'a' || c > 'z') && c != '_' }

// readNumbers parses whole numbers separated by commas and appends them to out.
func readNumbers(out []int64, list []byte) ([]int64, error) {
	if len(list) == 0 {
		return out, nil
	}
	n, digits, sign := int64(0), 0, int64(1)
	for _, c := range list {
		switch {
		case c >= '0' && c <= '9' && digits < 18 && (n > 0 || digits == 0):
			n, digits = 10*n+int64(c-'0'), digits+1
		case c == ',' && digits > 0:
			out = append(out, sign*n)
			n, digits, sign = 0, 0, 1
		case c == '-' && digits == 0 && sign > 0:
			sign = -1
		default:
			return nil, fmt.Errorf("%q is not a list of whole numbers", list[:min(len(list), 40)])
		}
	}
	if digits == 0 {
		return nil, fmt.Errorf("%q ends with an incomplete number", list[max(len(list)-40, 0):])
	}
	return append(out, sign*n), nil
}

// eventsName precedes the events of a record. JSON escapes quotes inside a text, so these bytes only occur as the
// name of a member.
var eventsName = []byte(`"events":`)

// Encode returns r as one line of JSON.
func Encode(r *tacho.Record) ([]byte, error) { return Append(nil, r) }

// Append appends r to a buffer, as one line of JSON.
func Append(to []byte, r *tacho.Record) ([]byte, error) { return recordMembers.append(to, r) }

// Decode parses a line without encoding/json if possible. Otherwise encoding/json parses the line, with a short
// stand-in for the token times, so that the token times are parsed only once.
func Decode(line []byte, r *tacho.Record) error {
	if recordMembers.read(r, bytes.TrimRight(line, "\n")) {
		return nil
	}
	before, rest, named := bytes.Cut(line, eventsName)
	end := bytes.IndexByte(rest, '}') + 1
	var events Events
	if !named || end == 0 || events.read(rest[:end]) != nil {
		return decode(line, r, nil) // to get its error message
	}
	return decode(slices.Concat(before, eventsName, standInText, rest[end:]), r, events)
}

// decode parses a line with encoding/json. If the line contains standInText, the events are taken.
func decode(line []byte, r *tacho.Record, taken Events) error {
	all := struct {
		*tacho.Record
		// These fields hide the fields of the record.
		Labels  Labels  `json:"labels"`
		Clock   Clock   `json:"clock"`
		Opening Events  `json:"opening"`
		Events  standIn `json:"events"`
	}{r, Labels(r.Labels), Clock(r.Clock), Events(r.Opening), standIn{Events(r.Events), taken}}
	err := json.Unmarshal(line, &all)
	r.Labels, r.Clock, r.Opening, r.Events = tacho.Labels(all.Labels), tacho.Clock(all.Clock), tacho.Events(all.Opening), tacho.Events(all.Events.Events)
	return err
}

// A standIn unmarshals to the taken events if the text is standInText.
type standIn struct {
	Events
	taken Events
}

var standInText = []byte(`{"taken_out":[]}`)

// UnmarshalJSON implements json.Unmarshaler.
func (s *standIn) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, standInText) {
		s.Events = s.taken
		return nil
	}
	return s.Events.UnmarshalJSON(b)
}

// Clock is a tacho.Clock written as its name.
type Clock tacho.Clock

// MarshalText implements encoding.TextMarshaler.
func (c Clock) MarshalText() ([]byte, error) { return []byte(tacho.Clock(c).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Clock) UnmarshalText(b []byte) error {
	clock, err := tacho.ParseClock(string(b))
	if err == nil {
		*c = Clock(clock)
	}
	return err
}

// Labels are tacho.Labels written as one object, in their order.
type Labels tacho.Labels

// MarshalJSON implements json.Marshaler.
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

// UnmarshalJSON implements json.Unmarshaler. It keeps the order of the labels.
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
		l := tacho.Label{Key: key.(string)}
		if err := d.Decode(&l.Value); err != nil {
			return err
		}
		*ls = append(*ls, l)
	}
	return nil
}
