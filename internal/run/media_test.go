package run_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recorded"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// transcribe returns a server with a recorded transcription.
func transcribe(http.Handler) http.Handler { return recorded.Open("openai-audio") }

// Transcription: the report has the server's counts and audio seconds per second.
func TestTranscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for endpoint, path := range map[string]string{"": "/v1/audio/transcriptions", "/v1/audio/translations": "/v1/audio/translations"} {
			url, got := serve(t, transcribe)
			out := do(t, planFor(url, func(p *plan.Plan) {
				p.Backend, p.DatasetName, p.MMAudioMS, p.Endpoint = "openai-audio", "random-mm", workload.Fixed(2500), endpoint
			}))
			s := out.summaries[0]
			if s.Completed != 6 || s.Tokens.Input != 6*3 || s.Tokens.Output != 6*6 || s.Tokens.OutputBy[0].Source != tacho.FromUsage || !got.asked(path) {
				t.Errorf("%+v, %+v", s.Tokens, s.Failures)
			}
			if want := 15 / s.DurationS; math.Abs(s.Throughput.AudioSPerS-want) > 1e-9*want {
				t.Errorf("RTFx %v, want %v", s.Throughput.AudioSPerS, want)
			}
			for _, r := range out.records {
				if r.AudioS != 2.5 || r.Text != "" {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}

// Whisper has a context of 448 tokens. Requests ask for more, and the server
// lowers the output length.
func TestTranscriptionBeyondTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/models" {
					_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","max_model_len":3}]}`)
					return
				}
				transcribe(h).ServeHTTP(w, r)
			})
		})
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.Backend, p.DatasetName, p.MMAudioMS = "openai-audio", "random-mm", workload.Fixed(10)
		}))
		if s := out.summaries[0]; s.Completed != 6 {
			t.Errorf("%+v", s.Failures)
		}
	})
}

func TestMediaPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		for want, change := range map[string]func(*plan.Plan){
			"--random-mm-audio-ms":       func(p *plan.Plan) { p.DatasetName = "random-mm" },
			"or an audio workload":       func(*plan.Plan) {},
			"--probe-request-rate":       func(p *plan.Plan) { p.ProbeRate = 1 },
			"--asr-min-audio-len-sec":    func(p *plan.Plan) { p.ASRMinS, p.ASRMaxS = 3, 2 },
			"accepts images in messages": func(p *plan.Plan) { p.Backend, p.DatasetName = "openai", "random-mm" },
		} {
			p := planFor(url, func(p *plan.Plan) { p.Backend = "openai-audio"; change(p) })
			if out := execute(t.Context(), p, run.Env{}); out.err == nil || !strings.Contains(out.err.Error(), want) {
				t.Errorf("%v, want an error about %s", out.err, want)
			}
		}
	})
}

// The second turn of a conversation with an image quotes the first answer and
// contains the image again.
func TestMediaConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const picture = `{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`
		path := filepath.Join(t.TempDir(), "talk.jsonl")
		line := `{"turns":[{"messages":[` + picture + `],"output_tokens":3},{"messages":[` + picture + `,{"role":"assistant","answer":1},{"role":"user","content":"and?"}],"output_tokens":3}]}`
		must.Do(t, os.WriteFile(path, []byte(line), 0o644))
		for backend, want := range map[string]string{
			"openai-chat": `"messages":[` + picture + `,{"role":"assistant","content":%s},{"role":"user","content":"and?"}]`,
			"anthropic":   `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"assistant","content":%s},{"role":"user","content":"and?"}]`,
		} {
			url, got := serve(t, nil)
			out := do(t, planFor(url, func(p *plan.Plan) {
				p.Backend, p.DatasetName, p.DatasetPath, p.NumPrompts = backend, "custom", path, 1
				p.CustomOutputLen, p.SaveDetailed = workload.Fixed(-1), true
			}))
			if s := out.summaries[0]; s.Completed != 2 {
				t.Fatalf("%s: %+v", backend, s.Failures)
			}
			answer := must.Get(json.Marshal(out.records[0].Text))(t)
			got.mu.Lock()
			all := strings.Join(got.bodies, "\n")
			got.mu.Unlock()
			if want := fmt.Sprintf(want, answer); !strings.Contains(all, want) || len(answer) < 5 {
				t.Errorf("%s: %s, want %s", backend, all, want)
			}
		}
	})
}
