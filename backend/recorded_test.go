package backend_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recorded"
	"github.com/tacho-bench/tacho/sim"
)

// A reading is what a backend reads from an answer.
type reading struct {
	Text, Finish string
	Usage        *tacho.Usage
	Output       int
	From         tacho.CountSource
	Tokens       []int16 // of each event; 0: unknown
	Times        []int64 // of each event, in milliseconds after the request
}

func readingOf(rec *tacho.Record) (r reading) {
	r = reading{Text: rec.Text, Finish: rec.Finish, Usage: rec.Usage, Output: rec.Output, From: rec.OutputFrom}
	for _, e := range rec.Events {
		r.Tokens, r.Times = append(r.Tokens, e.Tokens), append(r.Times, (e.At-rec.Sent).Milliseconds())
	}
	return r
}

// The expected readings of the recordings. The text is a character of two bytes, of which the first token has only the
// first, and one of four.
var (
	sixTimes   = []int64{100, 110, 120, 130, 140, 150}
	fiveTimes  = sixTimes[:5]
	unknown    = []int16{0, 0, 0, 0, 0, 0}
	prompt     = &tacho.Usage{Prompt: 3}
	counts     = &tacho.Usage{Prompt: 3, Completion: 6}
	fromUsage  = reading{Text: "Il fête 😀", Finish: "length", Usage: counts, Output: 6, From: tacho.FromUsage, Tokens: unknown, Times: sixTimes}
	twoInOne   = reading{Text: "Il fête 😀", Finish: "length", Usage: counts, Output: 6, From: tacho.FromUsage, Tokens: []int16{1, 1, 1, 2, 1}, Times: fiveTimes}
	document   = reading{Usage: prompt}
	recordings = map[string]reading{
		"triton":                   {Text: "Il f\ufffd\ufffdte 😀", Output: 6, From: tacho.FromEvents, Tokens: unknown, Times: sixTimes},
		"triton-vllm":              twoInOne,
		"lmdeploy":                 fromUsage,
		"lmdeploy-generate":        twoInOne,
		"deepspeed-mii":            {Text: "Il fête 😀", Finish: "length", Output: 5, From: tacho.FromEvents, Tokens: unknown[:5], Times: fiveTimes},
		"deepspeed-mii-generate":   {Text: "Il fête 😀", Output: 5, From: tacho.FromEvents, Tokens: unknown[:5], Times: []int64{100, 110, 130, 140, 150}},
		"gemini":                   {Text: "Why?Il fête 😀", Finish: "MAX_TOKENS", Usage: &tacho.Usage{Prompt: 3, Completion: 6, Reasoning: 2}, Output: 6, From: tacho.FromUsage, Tokens: unknown[:3], Times: sixTimes[:3]},
		"openai-audio":             fromUsage,
		"infinity-embeddings":      document,
		"infinity-embeddings-clip": document,
		"vllm-pooling":             document,
		"vllm-rerank":              document,
	}
)

// serverOf returns a server of a Kind: the simulator, or a recording if the simulator does not emulate the server.
func serverOf(t *testing.T, kind backend.Kind, o sim.Options) http.Handler {
	t.Helper()
	if server := recorded.Open(kind.Name); server != nil {
		return server
	}
	o.Engine = emulated[kind.Name]
	s := must.Get(sim.New(o))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The first token, its time, the counts, the text and the finish reason of recorded answers are right, also if each byte
// arrives alone or if the server sends no counts. An answer that ends in the middle is truncated.
func TestRecordedServers(t *testing.T) {
	withoutCounts := strings.NewReplacer(`"usage":`, `"a":`, `"usageMetadata":`, `"a":`, `"completion_tokens":`, `"a":`, `"num_output_tokens":`, `"a":`, `"num_input_tokens":`, `"b":`, `"prompt_tokens":`, `"b":`)
	for name, want := range recordings {
		t.Run(name, func(t *testing.T) {
			kind := find(t, name)
			synctest.Test(t, func(t *testing.T) {
				ask := func(serve http.Handler) (rec *tacho.Record) {
					inBubble(t, kind, serve.ServeHTTP, backend.Options{KeepText: true}, func(b tacho.Backend) {
						rec = send(t.Context(), t, b, simRequest(kind, 6))
					})
					return rec
				}
				server := recorded.Open(name)
				rec := ask(server)
				if diff := cmp.Diff(want, readingOf(rec)); diff != "" || rec.Failure != nil {
					t.Fatalf("%v (-want +got):\n%s", rec.Failure, diff)
				}
				var whole string
				ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					answer := httptest.NewRecorder()
					server.ServeHTTP(answer, r)
					whole = answer.Body.String()
				}))
				bytes := readingOf(ask(pieces(bytewise(whole)...)))
				bytes.Times = want.Times
				if diff := cmp.Diff(want, bytes); diff != "" {
					t.Errorf("byte by byte (-want +got):\n%s", diff)
				}
				if kind.Pools {
					return // TestDocuments cuts documents
				}
				uncounted := ask(pieces(withoutCounts.Replace(whole)))
				// In Triton, an event without text and without a count has no token.
				if uncounted.Failure != nil || uncounted.Usage != nil || uncounted.OutputFrom == tacho.FromUsage || len(uncounted.Events) < len(want.Tokens)-1 {
					t.Errorf("without counts: %v, %d events, %d tokens from %s", uncounted.Failure, len(uncounted.Events), uncounted.Output, uncounted.OutputFrom)
				}
				cut := ask(pieces(whole[:len(whole)/2]))
				if causeOf(cut) != tacho.Truncated || len(cut.Events) == 0 || len(cut.Events) >= len(want.Tokens) {
					t.Errorf("half an answer: %v, %d events", cut.Failure, len(cut.Events))
				}
			})
		})
	}
}
