package tacho

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// members are how the members of a JSON object are read and written by hand, in
// the order in which encoding/json writes them.
//
// Most lines of a kept run hold whole numbers, truth values and short texts only.
// encoding/json takes several times as long over them; it gets the other lines.
type members[O any] []member[O]

// A member sets what a value says, and appends the value. Both are false at one
// that they leave to encoding/json.
type member[O any] struct {
	name string
	set  func(to *O, value []byte) bool
	put  func(b []byte, from *O) ([]byte, bool)

	empty func(from *O) bool
	omit  bool // where it is empty
}

// orNone is a member that is left out where it is empty.
func (m member[O]) orNone() member[O] {
	m.omit = true
	return m
}

var recordMembers = members[Record]{
	number("stage", func(r *Record) *int { return &r.Stage }),
	number("session", func(r *Record) *uint64 { return &r.Session }),
	number("turn", func(r *Record) *int { return &r.Turn }),
	number("turns", func(r *Record) *int { return &r.Turns }).orNone(),
	plainText("id", func(r *Record) *string { return &r.ID }).orNone(),
	plainText("agent", func(r *Record) *string { return &r.Agent }).orNone(),
	truth("probe", func(r *Record) *bool { return &r.Probe }).orNone(),
	number("input_tokens", func(r *Record) *int { return &r.Input }),
	number("asked_tokens", func(r *Record) *int { return &r.Asked }),
	truth("exact", func(r *Record) *bool { return &r.Exact }),
	number("due_ns", func(r *Record) *time.Duration { return &r.Due }),
	number("slot_ns", func(r *Record) *time.Duration { return &r.Slot }),
	number("start_ns", func(r *Record) *time.Duration { return &r.Start }),
	number("conn_ns", func(r *Record) *time.Duration { return &r.Conn }),
	number("sent_ns", func(r *Record) *time.Duration { return &r.Sent }),
	number("wrote_ns", func(r *Record) *time.Duration { return &r.Wrote }),
	number("head_ns", func(r *Record) *time.Duration { return &r.Head }),
	{
		name: "events",
		set:  func(r *Record, value []byte) bool { return r.Events.read(value) == nil },
		put:  func(b []byte, r *Record) ([]byte, bool) { return r.Events.append(b), true },
	},
	number("end_ns", func(r *Record) *time.Duration { return &r.End }),
	{name: "clock", set: readClock, put: func(b []byte, r *Record) ([]byte, bool) { return quoted(b, r.Clock.String()) }},
	number("fell_back", func(r *Record) *int { return &r.FellBack }).orNone(),
	number("conns", func(r *Record) *int { return &r.Conns }),
	truth("reused", func(r *Record) *bool { return &r.Reused }),
	number("sent_slack_ns", func(r *Record) *time.Duration { return &r.SentSlack }).orNone(),
	object("usage", usageMembers, func(r *Record) **Usage { return &r.Usage }),
	number("output_tokens", func(r *Record) *int { return &r.Output }),
	plainText("output_from", func(r *Record) *CountSource { return &r.OutputFrom }).orNone(),
	plainText("finish", func(r *Record) *string { return &r.Finish }).orNone(),
	object("server", serverMembers, func(r *Record) **ServerTimes { return &r.Server }),
	plainText("endpoint", func(r *Record) *string { return &r.Endpoint }).orNone(),
}

var usageMembers = members[Usage]{
	number("prompt_tokens", func(u *Usage) *int { return &u.Prompt }),
	number("completion_tokens", func(u *Usage) *int { return &u.Completion }),
	number("cached_tokens", func(u *Usage) *int { return &u.Cached }).orNone(),
	number("reasoning_tokens", func(u *Usage) *int { return &u.Reasoning }).orNone(),
	truth("tells_cached", func(u *Usage) *bool { return &u.TellsCached }).orNone(),
}

var serverMembers = members[ServerTimes]{
	number("queue_ns", func(s *ServerTimes) *time.Duration { return &s.Queue }).orNone(),
	number("ttft_ns", func(s *ServerTimes) *time.Duration { return &s.TTFT }).orNone(),
	number("prefill_ns", func(s *ServerTimes) *time.Duration { return &s.Prefill }).orNone(),
	number("decode_ns", func(s *ServerTimes) *time.Duration { return &s.Decode }).orNone(),
	number("total_ns", func(s *ServerTimes) *time.Duration { return &s.Total }).orNone(),
}

// read reads an object that has nothing between its parts. False leaves it to
// encoding/json, which sets again what was set.
func (m members[O]) read(to *O, text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("{"))
	next := 0
	for more := ok; more; rest, more = bytes.CutPrefix(rest, []byte(",")) {
		at, after := m.find(rest, next)
		end := valueEnd(after)
		if at < 0 || !m[at].set(to, after[:end]) {
			return false
		}
		rest, next = after[end:], at+1
	}
	return ok && string(rest) == "}"
}

// append writes an object. False leaves it to encoding/json.
func (m members[O]) append(b []byte, from *O) (_ []byte, ok bool) {
	n := len(b)
	if b, ok = m.list(b, '{', from); !ok {
		return b, false
	}
	if len(b) == n {
		b = append(b, '{')
	}
	return append(b, '}'), true
}

// list writes members, with a byte before the first.
func (m members[O]) list(b []byte, sep byte, from *O) (_ []byte, ok bool) {
	for i := range m {
		if m[i].omit && m[i].empty(from) {
			continue
		}
		b = append(append(append(b, sep, '"'), m[i].name...), '"', ':')
		if b, ok = m[i].put(b, from); !ok {
			return b, false
		}
		sep = ','
	}
	return b, true
}

// plain says whether recordMembers are all that r has.
func (r *Record) plain() bool {
	return r.Failure == nil && r.Text == "" && len(r.Labels) == 0 && r.Attempts == 0 && r.Inputs == 0 && r.AudioS == 0 &&
		r.Retransmits == 0 && r.OutOfOrder == 0 && r.ClockMoved == 0 && r.ClockStep == 0
}

// memberName cuts off a name that needs no escape, and the colon after it.
func memberName(b []byte) (name, after []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	name, after, _ = bytes.Cut(b[1:], []byte(`"`))
	after, ok = bytes.CutPrefix(after, []byte(":"))
	return name, after, ok
}

// find is which member text begins with, and what comes after its name; -1 if it
// is none. It is sought from next on, where it usually is.
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

// valueEnd is where a value ends that is plain, or an object of such.
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
		put: func(b []byte, from *O) ([]byte, bool) {
			v := *of(from)
			return strconv.AppendInt(b, int64(v), 10), (int64(v) < 0) == (v < 0)
		},
		empty: func(from *O) bool { return *of(from) == 0 },
	}
}

// wholeNumber is a number as JSON writes it, of at most 18 digits.
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
		put:   func(b []byte, from *O) ([]byte, bool) { return strconv.AppendBool(b, *of(from)), true },
		empty: func(from *O) bool { return !*of(from) },
	}
}

func plainText[O any, T ~string](name string, of func(*O) *T) member[O] {
	return member[O]{
		name: name,
		set: func(to *O, value []byte) bool {
			text, ok := unquoted(value)
			if old := of(to); string(*old) != string(text) {
				if *old = T(usual[string(text)]); *old == "" {
					*old = T(text)
				}
			}
			return ok
		},
		put:   func(b []byte, from *O) ([]byte, bool) { return quoted(b, string(*of(from))) },
		empty: func(from *O) bool { return *of(from) == "" },
	}
}

// usual are the texts that nearly all records have, so that each need not have
// its own.
var usual = map[string]string{"usage": "usage", "token_ids": "token_ids", "stop": "stop", "length": "length"}

// unquoted is a text that means what it says, letter by letter.
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

// quoted appends a text of which nothing is to be escaped.
func quoted(b []byte, text string) ([]byte, bool) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			return b, false
		}
	}
	return append(append(append(b, '"'), text...), '"'), true
}

func readClock(r *Record, value []byte) bool {
	text, ok := unquoted(value)
	return ok && r.Clock.UnmarshalText(text) == nil
}

// object is a member that is left out where there is none.
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
		put:   func(b []byte, from *O) ([]byte, bool) { return m.append(b, *of(from)) },
		empty: func(from *O) bool { return *of(from) == nil },
		omit:  true,
	}
}
