//go:build vllm

package cli_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A reading is a client's interpretation of a stream. First and last are the
// events counted as the first and the last token.
type reading struct {
	First, Last int
	Gaps        int
	Output      int
	Text        string
	Failed      bool
}

// pieceEvery is the time between two pieces of a stream.
const pieceEvery = 80 * time.Millisecond

// streams sends both clients the same streams, in which not every event is a
// token. docs/method.md explains intended differences.
func (ref *reference) streams(t *testing.T) {
	prompts := filepath.Join(ref.dir, "one.jsonl")
	writeFile(t, prompts, `{"prompt":"w1 w2"}`+"\n")
	text := func(s string) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"text":%q,"finish_reason":null}]}`, s) + "\n\n"
	}
	delta := func(s string) string {
		return `data: {"choices":[{"index":0,"delta":{` + s + `},"finish_reason":null}]}` + "\n\n"
	}
	usage := func(n int) string {
		return fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":%d,"total_tokens":%d}}`, n, n+2) + "\n\n"
	}
	const (
		stop     = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		stopText = `data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]}` + "\n\n"
		done     = "data: [DONE]\n\n"
	)
	role, a, b := delta(`"role":"assistant","content":""`), delta(`"content":"w1"`), delta(`"content":" w2"`)
	for name, tc := range map[string]struct {
		pieces       []string
		theirs, ours reading
	}{
		"as vLLM has it": {
			pieces: []string{text("w1"), text(" w2"), text(" w3"), usage(3) + done},
			theirs: reading{0, 2, 2, 3, "w1 w2 w3", false}, ours: reading{0, 2, 2, 3, "w1 w2 w3", false},
		},
		"role first, end apart": {
			pieces: []string{role, a, b, stop, usage(2) + done},
			theirs: reading{0, 3, 3, 2, "w1 w2", false}, ours: reading{1, 2, 1, 2, "w1 w2", false},
		},
		"several tokens an event": {
			pieces: []string{text("w1 w2 w3"), text(" w4 w5"), usage(5) + done},
			theirs: reading{0, 1, 1, 5, "w1 w2 w3 w4 w5", false}, ours: reading{0, 1, 1, 5, "w1 w2 w3 w4 w5", false},
		},
		"empty text": {
			pieces: []string{text("w1"), text(""), text(" w3"), stopText, usage(3) + done},
			theirs: reading{0, 3, 3, 3, "w1 w3", false}, ours: reading{0, 2, 2, 3, "w1 w3", false},
		},
		"the stop token, counted": {
			pieces: []string{text("w1"), text(" w2"), stopText, usage(3) + done},
			theirs: reading{0, 2, 2, 3, "w1 w2", false}, ours: reading{0, 2, 2, 3, "w1 w2", false},
		},
		"the stop token of a chat, counted": {
			pieces: []string{role, a, b, stop, usage(3) + done},
			theirs: reading{0, 3, 3, 3, "w1 w2", false}, ours: reading{1, 3, 2, 3, "w1 w2", false},
		},
		"one token without a text": {
			pieces: []string{stopText, usage(1) + done},
			theirs: reading{0, 0, 0, 1, "", false}, ours: reading{0, 0, 0, 1, "", false},
		},
		"reasoning only": {
			pieces: []string{delta(`"reasoning_content":"w1"`), delta(`"reasoning_content":" w2"`), stop, usage(2) + done},
			theirs: reading{0, 2, 2, 2, "", false}, ours: reading{0, 1, 1, 2, "w1 w2", false},
		},
		"reasoning only, no usage": {
			pieces: []string{delta(`"reasoning":"w1"`), delta(`"reasoning":" w2"`), stop, done},
			theirs: reading{0, 2, 2, 0, "", false}, ours: reading{0, 1, 1, 2, "w1 w2", false},
		},
		"no usage": {
			pieces: []string{text("w1"), text(" w2 w3"), stopText, done},
			theirs: reading{0, 2, 2, 3, "w1 w2 w3", false}, ours: reading{0, 1, 1, 3, "w1 w2 w3", false},
		},
		"usage in the last token's event": {
			pieces: []string{text("w1"), `data: {"choices":[{"index":0,"text":" w2","finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}` + "\n\n", done},
			theirs: reading{0, 1, 1, 2, "w1 w2", false}, ours: reading{0, 1, 1, 4, "w1 w2", false},
		},
		"comments": {
			pieces: []string{": ping\n\n", text("w1"), ": ping\n\n", text(" w2"), usage(2) + done},
			theirs: reading{Failed: true}, ours: reading{1, 3, 1, 2, "w1 w2", false},
		},
		"CRLF": {
			pieces: []string{strings.ReplaceAll(text("w1"), "\n", "\r\n"), strings.ReplaceAll(text(" w2"), "\n", "\r\n"), strings.ReplaceAll(usage(2), "\n", "\r\n"), "data: [DONE]\r\n\r\n"},
			theirs: reading{0, 1, 1, 2, "w1 w2", false}, ours: reading{0, 1, 1, 2, "w1 w2", false},
		},
		"events in two pieces": {
			pieces: []string{text("w1")[:20], text("w1")[20:], text(" w2"), usage(2) + done},
			theirs: reading{1, 2, 1, 2, "w1 w2", false}, ours: reading{1, 2, 1, 2, "w1 w2", false},
		},
		"cut short": {
			pieces: []string{text("w1"), text(" w2")},
			theirs: reading{0, 1, 1, 2, "w1 w2", false}, ours: reading{0, 0, 1, 0, "w1 w2", true},
		},
		"an error in the stream": {
			pieces: []string{text("w1"), text(" w2"), `data: {"error":{"message":"out of memory","code":500}}` + "\n\n", done},
			theirs: reading{0, 1, 1, 2, "w1 w2", false}, ours: reading{0, 0, 1, 0, "w1 w2", true},
		},
		"nothing": {
			pieces: []string{usage(0) + done},
			theirs: reading{Failed: true}, ours: reading{Failed: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			backend, path := "vllm", "/v1/completions"
			if strings.Contains(strings.Join(tc.pieces, ""), `"delta"`) {
				backend, path = "openai-chat", "/v1/chat/completions"
			}
			s := streamer{pieces: tc.pieces, path: path}
			args := strings.Fields("--dataset-name custom --skip-chat-template --custom-output-len 9 --num-prompts 1 --model tiny --save-result --save-detailed --result-filename stream.json --backend " +
				backend + " --endpoint " + path + " --dataset-path " + prompts + " --base-url " + s.start(t))
			for _, client := range []struct {
				who   string
				bench func(*testing.T, ...string) string
				want  reading
			}{{"the reference", ref.bench, tc.theirs}, {"tacho", ref.tacho, tc.ours}} {
				again(t, func() []string {
					m := measured{text: client.bench(t, args...)}
					m.read(t, ref.dir, "stream.json")
					if diff := cmp.Diff(client.want, s.readingOf(&m)); diff != "" {
						return []string{client.who + " (-want +got):\n" + diff}
					}
					return nil
				})
			}
		})
	}
}

// A streamer is a server that answers each request with the same pieces and
// records the write times.
type streamer struct {
	pieces []string
	path   string

	mu    sync.Mutex
	wrote []time.Duration // since the request arrived
}

func (s *streamer) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != s.path {
			http.NotFound(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		began := time.Now()
		var wrote []time.Duration
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range s.pieces {
			<-time.After(pieceEvery)
			wrote = append(wrote, time.Since(began))
			_, _ = io.WriteString(w, s.pieces[i])
			_ = http.NewResponseController(w).Flush()
		}
		s.mu.Lock()
		s.wrote = wrote
		s.mu.Unlock()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// readingOf returns a client's interpretation of the last answer.
func (s *streamer) readingOf(m *measured) reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := reading{Output: int(m.numbers("output_lens")[0]), Failed: failed(m)[0]}
	r.Text, _ = m.values["generated_texts"].([]any)[0].(string)
	r.Gaps = len(m.values["itls"].([]any)[0].([]any))
	r.First, r.Last = s.nearest(m.numbers("ttfts")[0]), s.nearest(m.numbers("latencies")[0])
	return r
}

// nearest returns the piece written nearest to a time, or 0 if there is no
// time.
func (s *streamer) nearest(seconds float64) int {
	best := 0
	for i, at := range s.wrote {
		if math.Abs(at.Seconds()-seconds) < math.Abs(s.wrote[best].Seconds()-seconds) {
			best = i
		}
	}
	return best
}
