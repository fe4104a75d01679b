package backend_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/transport"
)

// emulated names the engine the simulator emulates for each Kind. The other Kinds are in recordings.
var emulated = map[string]string{
	"vllm": "vllm", "openai": "vllm", "openai-chat": "vllm", "openai-responses": "vllm", "sglang": "sglang", "tgi": "tgi", "trtllm": "trtllm",
	"llamacpp": "llamacpp", "ollama": "ollama", "ollama-chat": "ollama", "transformers": "vllm", "anthropic": "anthropic",
	"openai-embeddings": "vllm", "openai-embeddings-chat": "vllm", "openai-embeddings-clip": "vllm", "openai-embeddings-vlm2vec": "vllm",
}

func simulate(t *testing.T, o sim.Options) (*sim.Server, string) {
	t.Helper()
	s := must.Get(sim.New(o))(t)
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		_ = s.Close()
	})
	return s, srv.URL
}

// Every emulated Kind works with the simulated server, without faults and with every fault of the simulator.
func TestSimulatedServers(t *testing.T) {
	const tokens = 6
	for _, kind := range backend.Kinds {
		engine, ok := emulated[kind.Name]
		if !ok {
			continue
		}
		for _, tc := range []struct {
			fault  string
			cause  tacho.Cause
			says   string
			events int // minimum number
		}{
			{"", "", "", tokens},
			{"merge:3", "", "", tokens},
			{"trickle", "", "", tokens},
			{"no-usage", "", "", tokens},
			{"early-role", "", "", tokens},
			{"huge:2:300000", "", "", tokens},
			{"hostile", "", "", tokens - 1},
			{"429", tacho.Status, "", 0},
			{"500", tacho.Status, "", 0},
			{"503", tacho.Status, "", 0},
			{"queue-full", tacho.Status, "", 0},
			{"reset:0", tacho.Reset, "", 0},
			{"reset:2", tacho.Reset, "", 0},
			{"truncate:2", tacho.Truncated, "end mark", 2},
			{"malformed:2", tacho.Malformed, "", 2},
			{"error:2", tacho.InBand, "simulated fault", 2},
			{"gzip", tacho.Malformed, "", 0},
		} {
			t.Run(kind.Name+"/"+tc.fault, func(t *testing.T) {
				t.Parallel()
				s, url := simulate(t, sim.Options{Engine: engine, Model: "m"})
				rec := send(t.Context(), t, simBackend(t, kind, url, tc.fault), simRequest(kind, tokens))
				want, events := tc.cause, tc.events
				switch {
				case kind.Pools:
					want, events = documentCause(tc.fault, want), 0
				case tc.fault == "error:2" && kind.Name == "trtllm":
					want = tacho.Reset // this protocol has no in-band errors
				case kind.Name == "tgi" && tc.fault == "queue-full":
					want = tacho.InBand // streams of this kind start before any failure
				}
				if got := causeOf(rec); got != want {
					t.Fatalf("failure %v, want %q", rec.Failure, want)
				}
				if want == tc.cause && rec.Failure != nil && !strings.Contains(rec.Failure.Message, tc.says) {
					t.Errorf("failure %v, want one that says %q", rec.Failure, tc.says)
				}
				if len(rec.Events) < events {
					t.Errorf("%d token events, want %d", len(rec.Events), events)
				}
				if want == "" && tc.fault == "" {
					checkTruth(t, s, kind, rec, tokens)
				}
			})
		}
	}
}

// simRequest returns a request for a number of tokens.
func simRequest(kind backend.Kind, tokens int) *tacho.Request {
	text := "one two three"
	if kind.Pools {
		text = "one\ntwo three" // a query and a document
	}
	return fitting(kind, &tacho.Request{ID: "r1", Input: tacho.Input{Text: text}, MaxTokens: tokens, IgnoreEOS: true})
}

// A request canceled while the server stalls, or between tokens, keeps the tokens received before.
func TestStall(t *testing.T) {
	for _, kind := range backend.Kinds {
		if kind.Pools { // no second token to wait for
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				soFar := 0
				o := backend.Options{Header: http.Header{"X-Sim-Fault": {"stall:2"}}, OnToken: func(n int, _ bool, _ time.Duration) {
					if soFar += n; soFar == 2 {
						cancel() // no more tokens will arrive
					}
				}}
				inBubble(t, kind, serverOf(t, kind, sim.Options{Model: "m"}).ServeHTTP, o, func(b tacho.Backend) {
					rec := send(ctx, t, b, simRequest(kind, 6))
					if causeOf(rec) != tacho.Canceled || len(rec.Events) != 2 {
						t.Errorf("%v after %d token events", rec.Failure, len(rec.Events))
					}
				})
			})
		})
	}
}

// documentCause returns the expected cause for a response in one document.
func documentCause(fault string, stream tacho.Cause) tacho.Cause {
	switch {
	case strings.HasPrefix(fault, "error"):
		return tacho.Status // the failure precedes the document
	case strings.HasPrefix(fault, "truncate"):
		return tacho.Reset // the response announced its length
	}
	return stream
}

func causeOf(rec *tacho.Record) tacho.Cause {
	if rec.Failure == nil {
		return ""
	}
	return rec.Failure.Cause
}

func simBackend(t *testing.T, kind backend.Kind, url, fault string) tacho.Backend {
	t.Helper()
	client := must.Get(transport.New(transport.Options{BaseURL: url}))(t)
	t.Cleanup(client.Close)
	header := http.Header{}
	if fault != "" {
		header.Set("X-Sim-Fault", fault)
	}
	return must.Get(kind.New(backend.Options{Client: client, Model: "m", Header: header, KeepText: true, APIKey: "sk-verysecret"}))(t)
}

// checkTruth compares a record with the simulator's log.
func checkTruth(t *testing.T, s *sim.Server, kind backend.Kind, rec *tacho.Record, tokens int) {
	t.Helper()
	truths := s.Truth()
	if len(truths) != 1 {
		t.Fatalf("the server saw %d requests", len(truths))
	}
	truth := truths[0]
	if kind.Pools {
		if rec.Usage == nil || rec.Usage.Prompt != truth.Input || rec.Output != 0 {
			t.Errorf("usage %+v, output %d; the server read %d tokens", rec.Usage, rec.Output, truth.Input)
		}
		return
	}
	if rec.Output != tokens || truth.Output != tokens || len(rec.Events) != len(truth.Writes) {
		t.Errorf("%d tokens in %d events, the server wrote %d in %d", rec.Output, len(rec.Events), truth.Output, len(truth.Writes))
	}
	if words := len(strings.Fields(rec.Text)); words != tokens {
		t.Errorf("%d words in %q, want %d", words, rec.Text, tokens)
	}
	if rec.Usage != nil && rec.Usage.Prompt != 0 && rec.Usage.Prompt != truth.Input {
		t.Errorf("prompt of %d tokens, the server read %d", rec.Usage.Prompt, truth.Input)
	}
	if truth.Finish != "length" || (rec.Finish == "") != (dialects[kind.Name].finish == "") {
		t.Errorf("finish %q, truth %q", rec.Finish, truth.Finish)
	}
}

// Servers answer all queries.
func TestQueries(t *testing.T) {
	noCount := []string{"trtllm", "triton", "triton-vllm", "ollama", "ollama-chat", "deepspeed-mii", "deepspeed-mii-generate", "transformers", "infinity-embeddings", "infinity-embeddings-clip"}
	flushes := []string{"vllm", "openai", "openai-chat", "openai-responses", "openai-audio", "sglang"}
	noLimit := []string{"triton", "triton-vllm", "anthropic"}
	const noModels = "deepspeed-mii-generate"
	for _, kind := range backend.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			srv := httptest.NewServer(serverOf(t, kind, sim.Options{Model: "m", MaxModelLen: 4096}))
			t.Cleanup(srv.Close)
			s := simBackend(t, kind, srv.URL, "").(backend.Server)
			models, err := s.Models(t.Context())
			switch {
			case kind.Name == noModels:
				if !errors.Is(err, backend.ErrNoEndpoint) {
					t.Errorf("models %v, %v", models, err)
				}
			case err != nil || len(models) != 1:
				t.Fatalf("models %v, %v", models, err)
			case (models[0].MaxLen == 4096) == slices.Contains(noLimit, kind.Name):
				t.Errorf("context of %d tokens", models[0].MaxLen)
			}
			n, err := s.CountTokens(t.Context(), &tacho.Input{Text: "one two three"})
			if slices.Contains(noCount, kind.Name) {
				if !errors.Is(err, backend.ErrNoEndpoint) {
					t.Errorf("counted %d, %v", n, err)
				}
			} else if n != 3 || err != nil {
				t.Errorf("%d tokens, %v, want 3", n, err)
			}
			err = s.FlushCache(t.Context())
			if slices.Contains(flushes, kind.Name) != (err == nil) || err != nil && !errors.Is(err, backend.ErrNoEndpoint) {
				t.Errorf("flush: %v", err)
			}
		})
	}
}

// Detect recognises every engine emulated by the simulator and returns evidence.
func TestDetect(t *testing.T) {
	for _, engine := range sim.Engines() {
		_, url := simulate(t, sim.Options{Engine: engine})
		client := must.Get(transport.New(transport.Options{BaseURL: url}))(t)
		kind, evidence, err := backend.Detect(t.Context(), backend.Options{Client: client})
		client.Close()
		if err != nil || kind.Name != engine || !strings.Contains(evidence, "GET /") {
			t.Errorf("%s: found %q by %q, %v", engine, kind.Name, evidence, err)
		}
	}
}
