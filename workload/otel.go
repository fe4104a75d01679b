package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"time"

	"tacho"
)

var otel = Kind{
	Name: "otel", Doc: "OpenTelemetry GenAI spans (OTLP JSON, or a list or lines of spans): each trace is a session, at its own time, whose calls follow one another as they did",
	Timed: true, Quotes: true, New: newOTel,
}

// otelSpan is a span in either of the forms in which it is exported.
type otelSpan struct {
	TraceID    string          `json:"traceId"`
	TraceID2   string          `json:"trace_id"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Start2     json.RawMessage `json:"start_time"`
	End2       json.RawMessage `json:"end_time"`
	Attributes json.RawMessage `json:"attributes"`
}

// otelFile is what a line or a file may hold.
type otelFile struct {
	Spans         []otelSpan `json:"spans"`
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []otelSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
	otelSpan
}

// An otelCall is one call of a model.
type otelCall struct {
	trace      string
	start, end time.Duration // since 1970
	input      int
	output     int
	messages   []tacho.Message
	said       string
}

// otelTrace replays the calls of each trace.
type otelTrace struct {
	tokenMaker
	Options
	sessions [][]otelCall
	dues     []time.Duration
	said     []string
}

func newOTel(_ context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("otel: no trace: give a file or directory of spans with --dataset-path")
	}
	files, err := dataFiles(o.Path, o.Subset)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	var calls []otelCall
	bad := badLines{skip: o.Trace.SkipBad}
	others := 0
	for _, path := range files {
		if err := eachRow(path, &bad, func(text json.RawMessage) error {
			more, skipped, err := callsOf(text)
			if err == nil {
				calls, others = append(calls, more...), others+skipped
			}
			return err
		}); err != nil {
			return nil, fmt.Errorf("otel: %w", err)
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("otel: %s has no span with gen_ai.usage tokens%s", o.Path, bad.also())
	}
	w := &otelTrace{Options: o, tokenMaker: newTokenMaker(o), said: bad.notes()}
	if others > 0 {
		w.said = append(w.said, fmt.Sprintf("%d spans are no calls of a model, and were left out", others))
	}
	w.group(calls)
	if len(w.sessions) == 0 {
		return nil, fmt.Errorf("otel: no session of %s begins in the window", o.Path)
	}
	return w, nil
}

// callsOf are the calls in a row, and how many spans are none.
func callsOf(text json.RawMessage) (calls []otelCall, others int, err error) {
	var f otelFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, 0, fmt.Errorf("not spans: %w", err)
	}
	spans := f.Spans
	for _, r := range f.ResourceSpans {
		for _, s := range r.ScopeSpans {
			spans = append(spans, s.Spans...)
		}
	}
	if f.Attributes != nil {
		spans = append(spans, f.otelSpan)
	}
	for i := range spans {
		call, ok, err := spans[i].call()
		if err != nil {
			return nil, others, fmt.Errorf("span %d: %w", i, err)
		}
		if !ok {
			others++
			continue
		}
		calls = append(calls, call)
	}
	return calls, others, nil
}

// call reads a span; false if it is no call of a model.
func (s *otelSpan) call() (c otelCall, ok bool, err error) {
	a, err := attributesOf(s.Attributes)
	if err != nil {
		return c, false, err
	}
	c.input = number(a, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
	c.output = number(a, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
	if c.input == 0 || c.output == 0 {
		return c, false, nil
	}
	if err := checkTokens(c.input, c.output); err != nil {
		return c, false, err
	}
	c.trace = cmp.Or(s.TraceID, s.TraceID2)
	if c.trace == "" {
		return c, false, errors.New("no trace id")
	}
	if err := cmpErr(spanTime(s.Start, s.Start2, &c.start), spanTime(s.End, s.End2, &c.end)); err != nil {
		return c, false, err
	}
	if c.end < c.start {
		return c, false, errors.New("it ends before it starts")
	}
	c.said = a["gen_ai.output.text"]
	if text := a["gen_ai.input.messages"]; text != "" {
		if err := json.Unmarshal([]byte(text), &c.messages); err != nil {
			return c, false, fmt.Errorf("gen_ai.input.messages: %w", err)
		}
	}
	return c, true, nil
}

func number(a map[string]string, names ...string) int {
	for _, name := range names {
		if n, err := strconv.Atoi(a[name]); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// attributesOf reads attributes as an object, or as OTLP's list of pairs.
func attributesOf(text json.RawMessage) (map[string]string, error) {
	out := map[string]string{}
	var object map[string]json.RawMessage
	if len(text) == 0 {
		return out, nil
	}
	if json.Unmarshal(text, &object) == nil {
		for k, v := range object {
			out[k] = plainText(v)
		}
		return out, nil
	}
	var list []struct {
		Key   string                     `json:"key"`
		Value map[string]json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	for _, a := range list {
		for _, v := range a.Value {
			out[a.Key] = plainText(v)
		}
	}
	return out, nil
}

// plainText is a string without its quotes, and anything else as it is.
func plainText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// spanTime reads nanoseconds since 1970, or a date.
func spanTime(nanos string, other json.RawMessage, d *time.Duration) error {
	text := nanos
	if text == "" {
		text = plainText(other)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*d = time.Duration(n)
		return nil
	}
	at, err := parseDate(text)
	if err != nil {
		return fmt.Errorf("time %q: write nanoseconds since 1970, or a date", text)
	}
	*d = at
	return nil
}

// group makes sessions of the calls, in the order in which they began.
func (w *otelTrace) group(calls []otelCall) {
	slices.SortStableFunc(calls, func(a, b otelCall) int { return cmp.Compare(a.start, b.start) })
	origin, of := calls[0].start, map[string]int{}
	for _, c := range calls {
		at, ok := of[c.trace]
		if !ok {
			since := c.start - origin
			in := since >= w.Trace.Window.From && (w.Trace.Window.To == 0 || since < w.Trace.Window.To)
			full := w.Trace.Limit > 0 && len(w.sessions) >= w.Trace.Limit || w.Count > 0 && len(w.sessions) >= w.Count
			at = -1
			if in && !full {
				at = len(w.sessions)
				w.sessions = append(w.sessions, nil)
				w.dues = append(w.dues, w.Trace.scale(since-w.Trace.Window.From))
			}
			of[c.trace] = at
		}
		if at >= 0 {
			w.sessions[at] = append(w.sessions[at], c)
		}
	}
}

// Arrivals implements tacho.Pacer.
func (w *otelTrace) Arrivals() iter.Seq[time.Duration] { return slices.Values(w.dues) }

// Session implements tacho.Source.
func (w *otelTrace) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(len(w.sessions)) {
		return tacho.Session{}, io.EOF
	}
	return w.session(i, w.sessions[i], w.Seed), nil
}

func (w *otelTrace) session(i uint64, calls []otelCall, seed uint64) tacho.Session {
	s := tacho.Session{ID: i, Turns: make([]tacho.Turn, len(calls))}
	for k := range calls {
		c := &calls[k]
		q := tacho.Request{Session: i, Turn: k, MaxTokens: c.output, InputTokens: c.input, IgnoreEOS: w.IgnoreEOS}
		t := tacho.Turn{After: waits(calls, k)}
		from := calls[0].start
		for _, before := range t.After {
			from = max(from, calls[before].end)
		}
		t.Think = w.Trace.scale(c.start - from)
		if len(c.messages) > 0 {
			q.Input.Messages, q.Input.Plain = quoted(calls, k, t.After), !w.Messages
		} else {
			w.fill(&q, i<<12|uint64(k), c.input, nil, 1, seed)
		}
		t.Request = q
		s.Turns[k] = t
	}
	return s
}

// waits are the calls that call k can have waited for: those that had ended,
// and that no other of them waited for.
func waits(calls []otelCall, k int) []int {
	out := []int{}
	for a := k - 1; a >= 0; a-- {
		if calls[a].end > calls[k].start {
			continue
		}
		// What ended before another of them began, that one waited for.
		if !slices.ContainsFunc(out, func(b int) bool { return calls[a].end <= calls[b].start }) {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return out
}

// quoted are the messages of call k, with what earlier calls answered taken
// from the server instead.
func quoted(calls []otelCall, k int, after []int) []tacho.Message {
	messages := slices.Clone(calls[k].messages)
	for m := range messages {
		if messages[m].Role != "assistant" || messages[m].Raw != nil {
			continue
		}
		for a := range k {
			// It must be over, and so must all that it is quoted through.
			if calls[a].said != "" && calls[a].said == messages[m].Content && isPast(calls, a, after) {
				messages[m].Answer, messages[m].Content = a+1, ""
				break
			}
		}
	}
	return messages
}

// isPast says whether call a is one of after or was over before one of them.
func isPast(calls []otelCall, a int, after []int) bool {
	return slices.ContainsFunc(after, func(b int) bool {
		return a == b || calls[a].end <= calls[b].start && isPast(calls, a, waits(calls, b))
	})
}

// Warmup implements Workload.
func (w *otelTrace) Warmup(i uint64) (tacho.Session, error) {
	calls := slices.Clone(w.sessions[i%uint64(len(w.sessions))][:1])
	calls[0].messages = nil
	return w.session(warmupBase+i, calls, w.Seed), nil
}

// Notes implements Workload.
func (w *otelTrace) Notes() []string { return w.said }
