package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

var otel = Kind{
	Name: "otel", Doc: "OpenTelemetry GenAI spans (OTLP JSON, or a list or lines of spans): each trace is a session at its own time, with its calls in the original order",
	Timed: true, Quotes: true, New: newOTel,
}

// otelSpan is a span in either of the two export formats.
type otelSpan struct {
	TraceID    string          `json:"traceId"`
	TraceID2   string          `json:"trace_id"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Start2     json.RawMessage `json:"start_time"`
	End2       json.RawMessage `json:"end_time"`
	Attributes json.RawMessage `json:"attributes"`
}

// otelCall is one call of a model.
type otelCall struct {
	trace      string
	start, end time.Duration // since 1970
	otelBody
}

// otelBody is the part of a call not kept in memory.
type otelBody struct {
	Input, Output int
	Messages      []tacho.Message
	Answer        string
}

// otelRef is the part of a call kept in memory: 32 bytes.
type otelRef struct {
	start, end time.Duration
	rows.Ref   // Tag is the trace number
}

// otelTrace replays the calls of each trace.
type otelTrace struct {
	tokenMaker
	Options
	kept      rows.Store // the spans
	calls     []otelRef  // calls grouped by session
	starts    []uint32   // first call of each session, then len(calls)
	origin    time.Duration
	readNotes []string
}

func newOTel(_ context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("otel: no trace; set a file or directory of spans with --dataset-path")
	}
	files, err := dataFiles(o.Path, o.Subset)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	w := &otelTrace{Options: o, tokenMaker: newTokenMaker(o)}
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	x := otelIndex{otelTrace: w, traces: map[uint64]uint32{}}
	for _, path := range files {
		if err := x.read(path, &bad); err != nil {
			return nil, fmt.Errorf("otel: %w", err)
		}
	}
	if len(w.calls) == 0 {
		return nil, fmt.Errorf("otel: %s has no span with gen_ai.usage tokens%s", o.Path, bad.Also())
	}
	w.readNotes = bad.Notes()
	if x.others > 0 {
		w.readNotes = append(w.readNotes, fmt.Sprintf("%d spans without gen_ai.usage tokens were left out; if some are model calls, export these attributes", x.others))
	}
	w.group(len(x.traces))
	if len(w.starts) < 2 {
		return nil, fmt.Errorf("otel: no session of %s starts in the window; choose another part with --trace-window", o.Path)
	}
	return w, nil
}

// otelIndex collects the calls while the files are read.
type otelIndex struct {
	*otelTrace
	traces map[uint64]uint32 // trace numbers by hash of the trace id
	others int               // spans that are not model calls
}

// read adds the calls of a file.
func (x *otelIndex) read(path string, bad *rows.Bad) error {
	return x.kept.Each(path, bad, func(row json.RawMessage, offset int64) error {
		n := 0
		ok, err := spansIn(row, func(raw []byte, from int, f *spanFields) error {
			n++
			ref, isCall, err := x.ref(raw, f)
			if err != nil {
				return fmt.Errorf("span %d: %w", n-1, err)
			}
			if !isCall {
				x.others++
				return nil
			}
			place, err := x.kept.Keep(raw, offset+int64(from))
			place.Tag = ref.Tag
			ref.Ref = place
			x.calls = append(x.calls, ref)
			return err
		})
		if ok || err != nil {
			return err
		}
		return fmt.Errorf("not spans: %w", firstError(json.Unmarshal(row, new(any)), errors.New("no JSON object")))
	})
}

// ref returns the reference of a span if the span is a call. A span in an unusual form is
// parsed completely, and so are all spans if bad spans should be skipped. Other errors in
// a span are reported when the call is due.
func (x *otelIndex) ref(raw []byte, f *spanFields) (ref otelRef, isCall bool, err error) {
	usual := !f.fallback && len(f.trace) > 0 && f.start > 0 && f.end >= f.start && checkTokens(f.input(), f.output()) == nil
	isCall = f.input() > 0 && f.output() > 0
	if !f.fallback && !isCall && f.attributes {
		return ref, false, nil
	}
	trace, start, end := hashOf(f.trace), time.Duration(f.start), time.Duration(f.end)
	if !usual || x.Trace.SkipBad {
		var c otelCall
		if c, isCall, err = callOf(raw); err != nil || !isCall {
			return ref, false, err
		}
		trace, start, end = hashOf(c.trace), c.start, c.end
	}
	number, ok := x.traces[trace]
	if !ok {
		number = uint32(len(x.traces))
		x.traces[trace] = number
	}
	return otelRef{start, end, rows.Ref{Tag: number}}, true, nil
}

// callOf parses a span. ok is false if the span is not a model call.
func callOf(raw []byte) (c otelCall, ok bool, err error) {
	var s otelSpan
	if err := json.Unmarshal(raw, &s); err != nil {
		return c, false, fmt.Errorf("not a span: %w", err)
	}
	return s.call()
}

// call converts a span. ok is false if the span is not a model call.
func (s *otelSpan) call() (c otelCall, ok bool, err error) {
	a, err := attributesOf(s.Attributes)
	if err != nil {
		return c, false, err
	}
	c.Input = a.number("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
	c.Output = a.number("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
	if c.Input == 0 || c.Output == 0 {
		return c, false, nil
	}
	if err := checkTokens(c.Input, c.Output); err != nil {
		return c, false, err
	}
	c.trace = cmp.Or(s.TraceID, s.TraceID2)
	if c.trace == "" {
		return c, false, errors.New("no trace id")
	}
	if err := firstError(spanTime(s.Start, s.Start2, &c.start), spanTime(s.End, s.End2, &c.end)); err != nil {
		return c, false, err
	}
	if c.end < c.start {
		return c, false, errors.New("the span ends before it starts")
	}
	if c.Messages, err = a.messages(); err != nil {
		return c, false, err
	}
	c.Answer, err = a.answer()
	return c, true, err
}

// spanTime parses nanoseconds since 1970, or a date.
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

// group assigns calls to sessions, ordered by the start of the session.
func (w *otelTrace) group(traces int) {
	slices.SortStableFunc(w.calls, func(a, b otelRef) int { return cmp.Compare(a.start, b.start) })
	w.origin = w.calls[0].start
	const unseen, left = math.MaxUint32, math.MaxUint32 - 1
	numbers := slices.Repeat([]uint32{unseen}, traces)
	sessions := uint32(0)
	var session []uint32
	kept := w.calls[:0]
	for _, c := range w.calls {
		n := &numbers[c.Tag]
		if *n == unseen {
			since := c.start - w.origin
			in := since >= w.Trace.Window.From && (w.Trace.Window.To == 0 || since < w.Trace.Window.To)
			full := w.Trace.Limit > 0 && int(sessions) >= w.Trace.Limit || w.Count > 0 && int(sessions) >= w.Count
			*n = left
			if in && !full {
				*n = sessions
				sessions++
			}
		}
		if *n != left {
			kept, session = append(kept, c), append(session, *n)
		}
	}
	w.calls, w.starts = bySession(kept, session, sessions)
}

// of returns the calls of session i.
func (w *otelTrace) of(i uint64) []otelRef { return w.calls[w.starts[i]:w.starts[i+1]] }

// Arrivals implements tacho.Pacer.
func (w *otelTrace) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for _, start := range w.starts[:len(w.starts)-1] {
			if !yield(w.Trace.scale(w.calls[start].start - w.origin - w.Trace.Window.From)) {
				return
			}
		}
	}
}

// bodies reads the messages of some calls.
func (w *otelTrace) bodies(calls []otelRef) ([]otelBody, error) {
	out := make([]otelBody, len(calls))
	for k, ref := range calls {
		text, err := w.kept.Read(ref.Ref)
		if err != nil {
			return nil, fmt.Errorf("otel: %w", err)
		}
		c, _, err := callOf(text)
		if err != nil {
			return nil, fmt.Errorf("otel: %s: %w (use --bad-lines skip to skip it)", w.kept.Location(ref.Ref, 0), err)
		}
		out[k] = c.otelBody
	}
	return out, nil
}

// Session implements tacho.Source.
func (w *otelTrace) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(len(w.starts)-1) {
		return tacho.Session{}, io.EOF
	}
	bodies, err := w.bodies(w.of(i))
	if err != nil {
		return tacho.Session{}, err
	}
	return w.session(i, w.of(i), bodies, w.Seed), nil
}

func (w *otelTrace) session(i uint64, calls []otelRef, bodies []otelBody, seed uint64) tacho.Session {
	s := tacho.Session{ID: i, Turns: make([]tacho.Turn, len(calls))}
	for k := range calls {
		b := &bodies[k]
		q := tacho.Request{Session: i, Turn: k, MaxTokens: b.Output, InputTokens: b.Input, IgnoreEOS: w.IgnoreEOS}
		var t tacho.Turn
		if k > 0 {
			t.After = waitsFor(calls, k)
		}
		from := calls[0].start
		for _, before := range t.After {
			from = max(from, calls[before].end)
		}
		t.Think = w.Trace.scale(calls[k].start - from)
		if len(b.Messages) > 0 {
			var answers int
			q.Input.Messages, answers = quoted(calls, bodies, k, t.After)
			q.Input.Plain, q.InputTokens = !w.Messages, max(b.Input-answers, 1)
		} else {
			w.fill(&q, turnKey(i, k), b.Input, nil, 1, seed)
		}
		t.Request = q
		s.Turns[k] = t
	}
	return s
}

// waitsFor returns the calls that call k may have waited for: calls that ended before k
// started, except those another of these calls waited for.
func waitsFor(calls []otelRef, k int) []int {
	out := []int{}
	for a := k - 1; a >= 0; a-- {
		if calls[a].end > calls[k].start {
			continue
		}
		// If a ended before b started, b waited for a, so k need not wait for a.
		if !slices.ContainsFunc(out, func(b int) bool { return calls[a].end <= calls[b].start }) {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return out
}

// quoted returns the messages of call k with the answers of the trace replaced by the
// answers of the server. tokens is the number of tokens replaced; the server's answers
// may have more or fewer.
func quoted(calls []otelRef, bodies []otelBody, k int, after []int) (messages []tacho.Message, tokens int) {
	messages = slices.Clone(bodies[k].Messages)
	for m := range messages {
		if messages[m].Role != "assistant" || messages[m].Raw != nil {
			continue
		}
		for a := range k {
			// Call a must have finished before call k starts.
			if answer := bodies[a].Answer; answer != "" && answer == messages[m].Content && isFinished(calls, a, after) {
				messages[m].Answer, messages[m].Content = a+1, ""
				tokens += bodies[a].Output
				break
			}
		}
	}
	return messages, tokens
}

// isFinished reports whether call a is in after, or ended before one of those calls
// started.
func isFinished(calls []otelRef, a int, after []int) bool {
	return slices.ContainsFunc(after, func(b int) bool { return a == b || calls[a].end <= calls[b].start })
}

// Warmup implements Workload.
func (w *otelTrace) Warmup(i uint64) (tacho.Session, error) {
	calls := w.of(i % uint64(len(w.starts)-1))[:1]
	bodies, err := w.bodies(calls)
	if err != nil {
		return tacho.Session{}, err
	}
	bodies[0].Messages = nil
	return w.session(warmupBase+i, calls, bodies, w.Seed), nil
}

// Notes implements Workload.
func (w *otelTrace) Notes() []string { return w.readNotes }
