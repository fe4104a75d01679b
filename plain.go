package tacho

import (
	"bytes"
	"time"
)

// members are how the members of a JSON object are read by hand, in the order in
// which they are usually written.
//
// Most lines of a kept run hold whole numbers, truth values and short texts only.
// encoding/json takes several times as long over them; it gets the other lines.
type members[O any] []member[O]

// A member sets what a value says. It is false at a value that it leaves to
// encoding/json.
type member[O any] struct {
	name string
	set  func(to *O, value []byte) bool
}

var recordMembers = members[Record]{
	{"stage", number(func(r *Record) *int { return &r.Stage })},
	{"session", number(func(r *Record) *uint64 { return &r.Session })},
	{"turn", number(func(r *Record) *int { return &r.Turn })},
	{"turns", number(func(r *Record) *int { return &r.Turns })},
	{"id", plainText(func(r *Record) *string { return &r.ID })},
	{"agent", plainText(func(r *Record) *string { return &r.Agent })},
	{"probe", truth(func(r *Record) *bool { return &r.Probe })},
	{"input_tokens", number(func(r *Record) *int { return &r.Input })},
	{"asked_tokens", number(func(r *Record) *int { return &r.Asked })},
	{"exact", truth(func(r *Record) *bool { return &r.Exact })},
	{"due_ns", number(func(r *Record) *time.Duration { return &r.Due })},
	{"slot_ns", number(func(r *Record) *time.Duration { return &r.Slot })},
	{"start_ns", number(func(r *Record) *time.Duration { return &r.Start })},
	{"conn_ns", number(func(r *Record) *time.Duration { return &r.Conn })},
	{"sent_ns", number(func(r *Record) *time.Duration { return &r.Sent })},
	{"wrote_ns", number(func(r *Record) *time.Duration { return &r.Wrote })},
	{"head_ns", number(func(r *Record) *time.Duration { return &r.Head })},
	{"events", func(r *Record, value []byte) bool { return r.Events.read(value) == nil }},
	{"end_ns", number(func(r *Record) *time.Duration { return &r.End })},
	{"clock", readClock},
	{"fell_back", number(func(r *Record) *int { return &r.FellBack })},
	{"conns", number(func(r *Record) *int { return &r.Conns })},
	{"reused", truth(func(r *Record) *bool { return &r.Reused })},
	{"sent_slack_ns", number(func(r *Record) *time.Duration { return &r.SentSlack })},
	{"usage", object(usageMembers, func(r *Record) **Usage { return &r.Usage })},
	{"output_tokens", number(func(r *Record) *int { return &r.Output })},
	{"output_from", plainText(func(r *Record) *CountSource { return &r.OutputFrom })},
	{"finish", plainText(func(r *Record) *string { return &r.Finish })},
	{"server", object(serverMembers, func(r *Record) **ServerTimes { return &r.Server })},
	{"endpoint", plainText(func(r *Record) *string { return &r.Endpoint })},
}

var usageMembers = members[Usage]{
	{"prompt_tokens", number(func(u *Usage) *int { return &u.Prompt })},
	{"completion_tokens", number(func(u *Usage) *int { return &u.Completion })},
	{"cached_tokens", number(func(u *Usage) *int { return &u.Cached })},
	{"reasoning_tokens", number(func(u *Usage) *int { return &u.Reasoning })},
	{"tells_cached", truth(func(u *Usage) *bool { return &u.TellsCached })},
}

var serverMembers = members[ServerTimes]{
	{"queue_ns", number(func(s *ServerTimes) *time.Duration { return &s.Queue })},
	{"ttft_ns", number(func(s *ServerTimes) *time.Duration { return &s.TTFT })},
	{"prefill_ns", number(func(s *ServerTimes) *time.Duration { return &s.Prefill })},
	{"decode_ns", number(func(s *ServerTimes) *time.Duration { return &s.Decode })},
	{"total_ns", number(func(s *ServerTimes) *time.Duration { return &s.Total })},
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

func number[O any, T ~int | ~int64 | ~uint64](of func(*O) *T) func(*O, []byte) bool {
	return func(to *O, value []byte) bool {
		n, ok := wholeNumber(value)
		v := T(n)
		*of(to) = v
		return ok && int64(v) == n && (n < 0) == (v < 0)
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

func truth[O any](of func(*O) *bool) func(*O, []byte) bool {
	return func(to *O, value []byte) bool {
		*of(to) = string(value) == "true"
		return *of(to) || string(value) == "false"
	}
}

func plainText[O any, T ~string](of func(*O) *T) func(*O, []byte) bool {
	return func(to *O, value []byte) bool {
		text, ok := unquoted(value)
		if old := of(to); string(*old) != string(text) {
			if *old = T(usual[string(text)]); *old == "" {
				*old = T(text)
			}
		}
		return ok
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

func readClock(r *Record, value []byte) bool {
	text, ok := unquoted(value)
	return ok && r.Clock.UnmarshalText(text) == nil
}

func object[O, P any](m members[P], of func(*O) **P) func(*O, []byte) bool {
	return func(to *O, value []byte) bool {
		at := of(to)
		if *at == nil {
			*at = new(P)
		}
		return m.read(*at, value)
	}
}
