package recordjson

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// members describe how to read and write the members of a JSON object, in the order in which encoding/json writes
// them. Most lines of a stored run contain only whole numbers, booleans and short texts. encoding/json takes several
// times as long for these lines.
type members[O any] []member[O]

// A member reads and writes one value. read returns false if encoding/json must read the line.
type member[O any] struct {
	name string
	read func(s *jsonscan.Scanner, to *O) bool
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
	byJSON("labels", func(r *tacho.Record) any { return (*Labels)(&r.Labels) }, func(r *tacho.Record) bool { return len(r.Labels) == 0 }),
	plainText("agent", func(r *tacho.Record) *string { return &r.Agent }).omitEmpty(),
	truth("probe", func(r *tacho.Record) *bool { return &r.Probe }).omitEmpty(),
	number("input_tokens", func(r *tacho.Record) *int { return &r.Input }),
	number("asked_tokens", func(r *tacho.Record) *int { return &r.Asked }),
	truth("exact", func(r *tacho.Record) *bool { return &r.Exact }),
	number("inputs", func(r *tacho.Record) *int { return &r.Inputs }).omitEmpty(),
	byJSON("audio_s", func(r *tacho.Record) any { return &r.AudioS }, func(r *tacho.Record) bool { return r.AudioS == 0 }),
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
	{name: "clock", read: readClock, put: func(b []byte, r *tacho.Record) ([]byte, error) { return appendText(b, r.Clock.String()) }},
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
	byJSON("tool_calls", func(r *tacho.Record) any { return &r.Calls }, func(r *tacho.Record) bool { return len(r.Calls) == 0 }),
	byJSON("failure", func(r *tacho.Record) any { return &r.Failure }, func(r *tacho.Record) bool { return r.Failure == nil }),
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

// read reads an object. If read returns false, encoding/json reads the line and overwrites the fields set so far.
func (m members[O]) read(s *jsonscan.Scanner, to *O) bool {
	next, ok := 0, true
	return s.Object(func(key []byte) {
		at := m.find(key, next)
		ok = ok && at >= 0 && m[at].read(s, to)
		next = at + 1
	}) && ok
}

// find returns the index of a member, or -1. The search begins at next, the usual place.
func (m members[O]) find(name []byte, next int) int {
	for i := range m {
		if at := (next + i) % len(m); m[at].name == string(name) {
			return at
		}
	}
	return -1
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

func number[O any, T ~int | ~int64 | ~uint64](name string, of func(*O) *T) member[O] {
	return member[O]{
		name: name,
		read: func(s *jsonscan.Scanner, to *O) bool {
			n, ok := s.Int()
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

func truth[O any](name string, of func(*O) *bool) member[O] {
	return member[O]{
		name: name,
		read: func(s *jsonscan.Scanner, to *O) bool {
			value := s.Skip()
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
		read: func(s *jsonscan.Scanner, to *O) bool {
			value := s.Skip()
			text, ok := unquoted(value)
			if !ok {
				return json.Unmarshal(value, of(to)) == nil
			}
			if old := of(to); string(*old) != string(text) {
				if *old = T(commonTexts[string(text)]); *old == "" {
					*old = T(text)
				}
			}
			return true
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
		read:  func(s *jsonscan.Scanner, to *O) bool { return json.Unmarshal(s.Skip(), of(to)) == nil },
		put:   func(b []byte, from *O) ([]byte, error) { return appendJSON(b, of(from)) },
		empty: empty,
		omit:  true,
	}
}

// columnsOf returns a member of token times.
func columnsOf(name string, of func(*tacho.Record) *tacho.Events) member[tacho.Record] {
	return member[tacho.Record]{
		name:  name,
		read:  func(s *jsonscan.Scanner, r *tacho.Record) bool { return (*Events)(of(r)).read(s) == nil },
		put:   func(b []byte, r *tacho.Record) ([]byte, error) { return Events(*of(r)).append(b), nil },
		empty: func(r *tacho.Record) bool { return len(*of(r)) == 0 },
	}
}

func readClock(s *jsonscan.Scanner, r *tacho.Record) bool {
	text, ok := unquoted(s.Skip())
	return ok && (*Clock)(&r.Clock).UnmarshalText(text) == nil
}

// object returns a member for a nested object, left out if the pointer is nil.
func object[O, P any](name string, m members[P], of func(*O) **P) member[O] {
	return member[O]{
		name: name,
		read: func(s *jsonscan.Scanner, to *O) bool {
			at := of(to)
			if *at == nil {
				*at = new(P)
			}
			return m.read(s, *at)
		},
		put:   func(b []byte, from *O) ([]byte, error) { return m.append(b, *of(from)) },
		empty: func(from *O) bool { return *of(from) == nil },
		omit:  true,
	}
}
