// Package recordjson writes records as lines of JSON and reads them.
//
// Most of a stored run is token times, and encoding/json takes several times as long for them, so this package encodes
// by hand and decodes with package jsonscan. It can go when encoding/json/v2 is no longer experimental.
package recordjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/jsonscan"
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

// appendNumber appends a number and a comma.
func appendNumber(b []byte, n int64) []byte { return append(strconv.AppendInt(b, n, 10), ',') }

// closeList replaces the comma after the last number by a bracket.
func closeList(b []byte) []byte {
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	return append(b, ']')
}

// UnmarshalJSON implements json.Unmarshaler.
func (es *Events) UnmarshalJSON(b []byte) error {
	var s jsonscan.Scanner
	if s.Reset(b); s.Type() == 'n' {
		*es = nil
		return nil
	}
	return cmp.Or(es.read(&s), s.Err())
}

// columns are the names of the columns. The first time is absolute, the others are gaps.
var columns = [...]string{"at_ns", "read_lag_ns", "tokens", "kind", "coalesced", "slack_ns"}

// read reads the columns with the scanner. It ignores other members.
func (es *Events) read(s *jsonscan.Scanner) error {
	rest := s.Rest()
	count := bytes.Count(rest[:bytes.IndexByte(rest, '}')+1], []byte(",")) + 1
	if count > len(columns)*limit.Events {
		return fmt.Errorf("events: more than %d numbers", len(columns)*limit.Events)
	}
	numbers := make([]int64, 0, count) // capacity for all columns
	var lists [len(columns)][]int64
	var err error
	if !s.Object(func(key []byte) {
		i := slices.Index(columns[:], string(key))
		if i < 0 {
			return
		}
		var ok bool
		from := len(numbers)
		if numbers, ok = s.Ints(numbers); !ok {
			err = fmt.Errorf("events: %s is not a list of whole numbers", key)
		}
		lists[i] = numbers[from:]
	}) {
		return cmp.Or(s.Err(), errors.New("events: not columns of numbers"))
	}
	if err != nil {
		return err
	}
	times := lists[0]
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
		column int
		most   int64
		set    func(*tacho.Event, int64)
	}{
		{1, math.MaxInt32, func(e *tacho.Event, v int64) { e.ReadLag = int32(v) }},
		{2, math.MaxInt16, func(e *tacho.Event, v int64) { e.Tokens = int16(v) }},
		{3, math.MaxUint8, func(e *tacho.Event, v int64) { e.Kind = tacho.TokenKind(v) }},
	} {
		name, list := columns[c.column], lists[c.column]
		if len(list) != 0 && len(list) != len(times) {
			return fmt.Errorf("events: %s has %d values for %d times", name, len(list), len(times))
		}
		for i, v := range list {
			if v > c.most || v < -c.most-1 {
				return fmt.Errorf("events: %s: %d is out of range", name, v)
			}
			c.set(&(*es)[i], v)
		}
	}
	return es.readSlack(lists[4], lists[5])
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

// Encode returns r as one line of JSON.
func Encode(r *tacho.Record) ([]byte, error) { return Append(nil, r) }

// Append appends r to a buffer, as one line of JSON.
func Append(to []byte, r *tacho.Record) ([]byte, error) { return recordMembers.append(to, r) }

// Decode parses a line. encoding/json parses the lines and values that recordMembers cannot read.
func Decode(line []byte, r *tacho.Record) error {
	var s jsonscan.Scanner
	s.Reset(line)
	if recordMembers.read(&s, r) && s.Err() == nil {
		return nil
	}
	all := struct {
		*tacho.Record
		// These fields hide the fields of the record.
		Labels  Labels `json:"labels"`
		Clock   Clock  `json:"clock"`
		Opening Events `json:"opening"`
		Events  Events `json:"events"`
	}{r, Labels(r.Labels), Clock(r.Clock), Events(r.Opening), Events(r.Events)}
	err := json.Unmarshal(line, &all)
	r.Labels, r.Clock, r.Opening, r.Events = tacho.Labels(all.Labels), tacho.Clock(all.Clock), tacho.Events(all.Opening), tacho.Events(all.Events)
	return err
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
