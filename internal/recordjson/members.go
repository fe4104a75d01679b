package recordjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
)

// members describe how to read and write the members of a JSON object without encoding/json, in the order in which
// encoding/json writes them.
//
// Most lines of a stored run contain only whole numbers, booleans and short texts. encoding/json takes several times
// as long for these lines; it handles all other lines and values.
type members[O any] []member[O]

// A member reads and writes one value. set returns false for values left to encoding/json, and is nil if
// encoding/json reads all values.
type member[O any] struct {
	name string
	set  func(to *O, value []byte) bool
	put  func(b []byte, from *O) ([]byte, error)

	empty func(from *O) bool
	omit  bool // leave the member out if empty returns true
}

// omitEmpty returns m as a member that is left out if it is empty.
func (m member[O]) omitEmpty() member[O] {
	m.omit = true
	return m
}

var recordMembers = members[tacho.Record]{
	number("stage", func(r *tacho.Record) *int { return &r.Stage }),
	number("session", func(r *tacho.Record) *uint64 { return &r.Session }),
	number("turn", func(r *tacho.Record) *int { return &r.Turn }),
	number("turns", func(r *tacho.Record) *int { return &r.Turns }).omitEmpty(),
	plainText("id", func(r *tacho.Record) *string { return &r.ID }).omitEmpty(),
	byJSON("labels", func(r *tacho.Record) any { return Labels(r.Labels) }, func(r *tacho.Record) bool { return len(r.Labels) == 0 }),
	plainText("agent", func(r *tacho.Record) *string { return &r.Agent }).omitEmpty(),
	truth("probe", func(r *tacho.Record) *bool { return &r.Probe }).omitEmpty(),
	number("input_tokens", func(r *tacho.Record) *int { return &r.Input }),
	number("asked_tokens", func(r *tacho.Record) *int { return &r.Asked }),
	truth("exact", func(r *tacho.Record) *bool { return &r.Exact }),
	number("inputs", func(r *tacho.Record) *int { return &r.Inputs }).omitEmpty(),
	byJSON("audio_s", func(r *tacho.Record) any { return r.AudioS }, func(r *tacho.Record) bool { return r.AudioS == 0 }),
	number("due_ns", func(r *tacho.Record) *time.Duration { return &r.Due }),
	number("slot_ns", func(r *tacho.Record) *time.Duration { return &r.Slot }),
	number("start_ns", func(r *tacho.Record) *time.Duration { return &r.Start }),
	number("conn_ns", func(r *tacho.Record) *time.Duration { return &r.Conn }),
	number("sent_ns", func(r *tacho.Record) *time.Duration { return &r.Sent }),
	number("wrote_ns", func(r *tacho.Record) *time.Duration { return &r.Wrote }),
	number("head_ns", func(r *tacho.Record) *time.Duration { return &r.Head }),
	columnsOf("opening", func(r *tacho.Record) *tacho.Events { return &r.Opening }).omitEmpty(),
	columnsOf("events", func(r *tacho.Record) *tacho.Events { return &r.Events }),
	number("end_ns", func(r *tacho.Record) *time.Duration { return &r.End }),
	{name: "clock", set: readClock, put: func(b []byte, r *tacho.Record) ([]byte, error) { return appendText(b, r.Clock.String()) }},
	number("fell_back", func(r *tacho.Record) *int { return &r.FellBack }).omitEmpty(),
	number("conns", func(r *tacho.Record) *int { return &r.Conns }),
	truth("reused", func(r *tacho.Record) *bool { return &r.Reused }),
	number("retransmits", func(r *tacho.Record) *int { return &r.Retransmits }).omitEmpty(),
	number("out_of_order", func(r *tacho.Record) *int { return &r.OutOfOrder }).omitEmpty(),
	number("sent_slack_ns", func(r *tacho.Record) *time.Duration { return &r.SentSlack }).omitEmpty(),
	number("clock_moved_ns", func(r *tacho.Record) *time.Duration { return &r.ClockMoved }).omitEmpty(),
	number("clock_step_ns", func(r *tacho.Record) *time.Duration { return &r.ClockStep }).omitEmpty(),
	object("usage", usageMembers, func(r *tacho.Record) **tacho.Usage { return &r.Usage }),
	number("output_tokens", func(r *tacho.Record) *int { return &r.Output }),
	plainText("output_from", func(r *tacho.Record) *tacho.CountSource { return &r.OutputFrom }).omitEmpty(),
	plainText("finish", func(r *tacho.Record) *string { return &r.Finish }).omitEmpty(),
	object("server", serverMembers, func(r *tacho.Record) **tacho.ServerTimes { return &r.Server }),
	plainText("endpoint", func(r *tacho.Record) *string { return &r.Endpoint }).omitEmpty(),
	number("attempts", func(r *tacho.Record) *int { return &r.Attempts }).omitEmpty(),
	plainText("text", func(r *tacho.Record) *string { return &r.Text }).omitEmpty(),
	byJSON("failure", func(r *tacho.Record) any { return r.Failure }, func(r *tacho.Record) bool { return r.Failure == nil }),
}

var usageMembers = members[tacho.Usage]{
	number("prompt_tokens", func(u *tacho.Usage) *int { return &u.Prompt }),
	number("completion_tokens", func(u *tacho.Usage) *int { return &u.Completion }),
	number("cached_tokens", func(u *tacho.Usage) *int { return &u.Cached }).omitEmpty(),
	number("reasoning_tokens", func(u *tacho.Usage) *int { return &u.Reasoning }).omitEmpty(),
	truth("tells_cached", func(u *tacho.Usage) *bool { return &u.TellsCached }).omitEmpty(),
}

var serverMembers = members[tacho.ServerTimes]{
	number("queue_ns", func(s *tacho.ServerTimes) *time.Duration { return &s.Queue }).omitEmpty(),
	number("ttft_ns", func(s *tacho.ServerTimes) *time.Duration { return &s.TTFT }).omitEmpty(),
	number("prefill_ns", func(s *tacho.ServerTimes) *time.Duration { return &s.Prefill }).omitEmpty(),
	number("decode_ns", func(s *tacho.ServerTimes) *time.Duration { return &s.Decode }).omitEmpty(),
	number("total_ns", func(s *tacho.ServerTimes) *time.Duration { return &s.Total }).omitEmpty(),
}

// read reads a compact object, one without white space. If read returns false, encoding/json reads the object and
// overwrites the fields set so far.
func (m members[O]) read(to *O, text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("{"))
	next := 0
	for more := ok; more; rest, more = bytes.CutPrefix(rest, []byte(",")) {
		at, after := m.find(rest, next)
		end := valueEnd(after)
		if at < 0 || m[at].set == nil || !m[at].set(to, after[:end]) {
			return false
		}
		rest, next = after[end:], at+1
	}
	return ok && string(rest) == "}"
}

// append appends from as an object.
func (m members[O]) append(b []byte, from *O) (_ []byte, err error) {
	b = append(b, '{')
	begin := len(b)
	for i := range m {
		if m[i].omit && m[i].empty(from) {
			continue
		}
		if len(b) > begin {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), m[i].name...), '"', ':')
		if b, err = m[i].put(b, from); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// memberName splits off a name without escapes and the colon after it.
func memberName(b []byte) (name, after []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	name, after, _ = bytes.Cut(b[1:], []byte(`"`))
	after, ok = bytes.CutPrefix(after, []byte(":"))
	return name, after, ok
}

// find returns the index of the member that text begins with, and the text after the member's name. The index is -1
// if there is no such member. The search begins at next, the usual place.
func (m members[O]) find(text []byte, next int) (at int, after []byte) {
	if len(text) == 0 || text[0] != '"' {
		return -1, nil
	}
	for i := range m {
		if at = next + i; at >= len(m) {
			at -= len(m)
		}
		name := m[at].name
		if end := 1 + len(name); len(text) > end+1 && string(text[1:end]) == name && text[end] == '"' && text[end+1] == ':' {
			return at, text[end+2:]
		}
	}
	return -1, nil
}

// valueEnd returns the index after a plain value, or after an object of plain values.
func valueEnd(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return bytes.IndexByte(b[1:], '"') + 2
	case '{':
		return bytes.IndexByte(b, '}') + 1
	}
	for i, c := range b {
		if c == ',' || c == '}' {
			return i
		}
	}
	return len(b)
}

func number[O any, T ~int | ~int64 | ~uint64](name string, of func(*O) *T) member[O] {
	return member[O]{
		name: name,
		set: func(to *O, value []byte) bool {
			n, ok := wholeNumber(value)
			v := T(n)
			*of(to) = v
			return ok && int64(v) == n && (n < 0) == (v < 0)
		},
		put: func(b []byte, from *O) ([]byte, error) {
			v := *of(from)
			if v < 0 {
				return strconv.AppendInt(b, int64(v), 10), nil
			}
			return strconv.AppendUint(b, uint64(v), 10), nil
		},
		empty: func(from *O) bool { return *of(from) == 0 },
	}
}

// wholeNumber parses a JSON number without a fraction, of at most 18 digits.
func wholeNumber(b []byte) (n int64, ok bool) {
	digits, negative := bytes.CutPrefix(b, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

func truth[O any](name string, of func(*O) *bool) member[O] {
	return member[O]{
		name: name,
		set: func(to *O, value []byte) bool {
			*of(to) = string(value) == "true"
			return *of(to) || string(value) == "false"
		},
		put:   func(b []byte, from *O) ([]byte, error) { return strconv.AppendBool(b, *of(from)), nil },
		empty: func(from *O) bool { return !*of(from) },
	}
}

func plainText[O any, T ~string](name string, of func(*O) *T) member[O] {
	return member[O]{
		name: name,
		set: func(to *O, value []byte) bool {
			text, ok := unquoted(value)
			if old := of(to); string(*old) != string(text) {
				if *old = T(commonTexts[string(text)]); *old == "" {
					*old = T(text)
				}
			}
			return ok
		},
		put:   func(b []byte, from *O) ([]byte, error) { return appendText(b, string(*of(from))) },
		empty: func(from *O) bool { return *of(from) == "" },
	}
}

// commonTexts are values found in nearly all records. Sharing one string saves an allocation for each record.
var commonTexts = map[string]string{"usage": "usage", "token_ids": "token_ids", "stop": "stop", "length": "length"}

// unquoted returns the text between quotes if it contains no escapes and only printable ASCII.
func unquoted(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	text := value[1 : len(value)-1]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return nil, false
		}
	}
	return text, true
}

// appendText appends a text in quotes.
func appendText(b []byte, text string) ([]byte, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			return appendJSON(b, text)
		}
	}
	return append(append(append(b, '"'), text...), '"'), nil
}

func appendJSON(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(b, text...), err
}

// byJSON returns a member that encoding/json writes and reads. It is left out if it is empty.
func byJSON[O any](name string, of func(*O) any, empty func(*O) bool) member[O] {
	return member[O]{
		name:  name,
		put:   func(b []byte, from *O) ([]byte, error) { return appendJSON(b, of(from)) },
		empty: empty,
		omit:  true,
	}
}

// columnsOf returns a member of token times.
func columnsOf(name string, of func(*tacho.Record) *tacho.Events) member[tacho.Record] {
	return member[tacho.Record]{
		name:  name,
		set:   func(r *tacho.Record, value []byte) bool { return (*Events)(of(r)).read(value) == nil },
		put:   func(b []byte, r *tacho.Record) ([]byte, error) { return Events(*of(r)).append(b), nil },
		empty: func(r *tacho.Record) bool { return len(*of(r)) == 0 },
	}
}

func readClock(r *tacho.Record, value []byte) bool {
	text, ok := unquoted(value)
	return ok && (*Clock)(&r.Clock).UnmarshalText(text) == nil
}

// object returns a member for a nested object, left out if the pointer is nil.
func object[O, P any](name string, m members[P], of func(*O) **P) member[O] {
	return member[O]{
		name: name,
		set: func(to *O, value []byte) bool {
			at := of(to)
			if *at == nil {
				*at = new(P)
			}
			return m.read(*at, value)
		},
		put:   func(b []byte, from *O) ([]byte, error) { return m.append(b, *of(from)) },
		empty: func(from *O) bool { return *of(from) == nil },
		omit:  true,
	}
}
