package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// spanForms are the different ways to write spans.
var spanForms = []string{
	`{"traceId":"a","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"30"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":7}}]}`,
	` { "attributes" : { "gen_ai.usage.prompt_tokens" : 30 , "gen_ai.usage.completion_tokens":"7", "x":{"y":["}",{}]}}, "trace_id":"a","end_time":"2","start_time":1 } `,
	`{"resourceSpans":[{"resource":{"attributes":[{"key":"k","value":{"stringValue":"\"}\\"}}]},"scopeSpans":[{"scope":{"name":"spans"},"spans":[` +
		`{"traceId":"a","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[{"value":{"stringValue":"30"},"key":"gen_ai.usage.input_tokens"},{"key":"gen_ai.usage.output_tokens","value":{"doubleValue":7}}]},{"attributes":[]},{}]}]}]}`,
	`{"spans":[{"traceId":"a","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":{"gen_ai.usage.input_tokens":30,"gen_ai.usage.output_tokens":0,"gen_ai.usage.completion_tokens":7}}]}`,
	`{"traceId":"a","start_time":"1970-01-01T00:00:00.000000001Z","end_time":"1970-01-01T00:00:00.000000002Z","attributes":{"gen_ai.usage.\u0069nput_tokens":30,"gen_ai.usage.output_tokens":7}}`,
	`{"traceId":"b","traceId":"a","startTimeUnixNano":"9","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":{"gen_ai.usage.input_tokens":3,"gen_ai.usage.input_tokens":30,"gen_ai.usage.output_tokens":7}}`,
	`{"traceId":"a","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":{"gen_ai.usage.input_tokens":-3,"gen_ai.usage.prompt_tokens":30,"gen_ai.usage.output_tokens":7.0,"gen_ai.usage.completion_tokens":7}}`,
}

// TestSpansAreFoundInEveryForm checks that the scanner and the parser find the same spans
// in every form.
func TestSpansAreFoundInEveryForm(t *testing.T) {
	for _, row := range spanForms {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		must.Do(t, os.WriteFile(path, []byte("\n"+row+"\n"), 0o600))
		w, err := newOTel(t.Context(), Options{Path: path})
		if err != nil {
			t.Errorf("%s: %v", row, err)
			continue
		}
		s, err := w.Session(0)
		if err != nil || len(s.Turns) != 1 || s.Turns[0].Request.InputTokens != 30 || s.Turns[0].Request.MaxTokens != 7 {
			t.Errorf("%s: %+v, %v", row, s, err)
		}
		if c := w.(*otelTrace).calls; len(c) != 1 || c[0].start != 1 || c[0].end != 2 {
			t.Errorf("%s: %+v", row, c)
		}
	}
}

// TestBadSpans checks that an error names the position of the row: before the start if it
// is found then, otherwise when the call is due. With --bad-lines skip the row is skipped
// and counted.
func TestBadSpans(t *testing.T) {
	good := spanForms[0]
	messages := strings.Replace(good, `"attributes":[`, `"attributes":[{"key":"gen_ai.input.messages","value":{"stringValue":"[{"}},`, 1)
	for _, c := range []struct{ row, want string }{
		{good[:40], "s.jsonl:2: not spans: unexpected end of JSON input"},
		{good + "x", "s.jsonl:2: not spans: invalid character 'x'"},
		{`[` + good + `]`, "s.jsonl:2: not spans: no JSON object"},
		{strings.Replace(good, `"a"`, `""`, 1), "s.jsonl:2: span 0: no trace id"},
		{strings.Replace(good, `Nano":"2"`, `Nano":"0"`, 1), "s.jsonl:2: span 0: the span ends before it starts"},
		{strings.Replace(good, `Nano":"2"`, `Nano":"soon"`, 1), `s.jsonl:2: span 0: time "soon"`},
		{strings.Replace(good, `"30"`, `"300000000"`, 1), "s.jsonl:2: span 0: 300000000 prompt tokens"},
		{messages, "s.jsonl:2: gen_ai.input.messages: unexpected end of JSON input"},
		{strings.Replace(good, `"traceId"`, `"kind":nothing,"traceId"`, 1), "s.jsonl:2: not spans: invalid character"},
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		must.Do(t, os.WriteFile(path, []byte(good+"\n"+c.row+"\n"), 0o600))
		w, err := newOTel(t.Context(), Options{Path: path, Messages: true})
		if err == nil {
			_, err = w.Session(0)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.row, err, c.want)
		}
		w, err = newOTel(t.Context(), Options{Path: path, Messages: true, Trace: TraceOptions{SkipBad: true}})
		if err != nil {
			t.Errorf("%s: %v", c.row, err)
			continue
		}
		s, err := w.Session(0)
		if notes := strings.Join(w.Notes(), "\n"); err != nil || len(s.Turns) != 1 || !strings.Contains(notes, "skipped 1 bad lines") {
			t.Errorf("%s: %d turns, %v, %s", c.row, len(s.Turns), err, notes)
		}
	}
}

// attributesAre reports whether all spans have non-empty attributes.
func attributesAre(first *otelSpan, more ...otelSpan) bool {
	for _, s := range append(more, *first) {
		if _, err := attributesOf(s.Attributes); err != nil {
			return false
		}
	}
	return true
}

// FuzzSpans checks that the parser agrees with the scanner unless the scanner sets
// fallback.
func FuzzSpans(f *testing.F) {
	for _, row := range append(spanForms, `{"spans":[{"attributes":[{"key":"gen_ai.usage.input_tokens"}]},null]}`, `{"spans":[5]}`) {
		f.Add([]byte(row))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		ok, err := spansIn(row, func(raw []byte, offset int, s *spanFields) error {
			if string(row[offset:offset+len(raw)]) != string(raw) {
				t.Errorf("%q is not at %d", raw, offset)
			}
			for _, name := range []string{"traceId", "startTimeUnixNano", "endTimeUnixNano", "attributes", "key", "intValue", "stringValue", "doubleValue"} {
				if lower := strings.ToLower(string(raw)); strings.Count(lower, strings.ToLower(name)) != strings.Count(string(raw), name) {
					return nil // the parser also accepts names in other cases
				}
			}
			c, isCall, parsed := callOf(raw)
			if sure := !s.fallback && s.attributes && s.start > 0 && len(s.trace) > 0; parsed != nil || !sure {
				return nil //nolint:nilerr // the scanner may accept input the parser rejects
			}
			got := fmt.Sprint(s.input() > 0 && s.output() > 0)
			want := fmt.Sprint(isCall)
			if isCall {
				got += fmt.Sprintln(s.input(), s.output(), string(s.trace), s.start, s.end)
				want += fmt.Sprintln(c.Input, c.Output, c.trace, int64(c.start), int64(c.end))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-parser +scanner):\n%s", raw, diff)
			}
			return nil
		})
		var file struct {
			Spans         []otelSpan
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []otelSpan } }
			otelSpan
		}
		if json.Unmarshal(row, &file) == nil && !ok && attributesAre(&file.otelSpan, file.Spans...) {
			t.Errorf("%q is an object, and was not read: %v", row, err)
		}
	})
}
