package backend_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"

	"github.com/google/go-cmp/cmp"
)

// A reaction is a request to an OpenAI API and the checked part of the response.
type reaction struct {
	Name string          `json:"name"`
	Path string          `json:"path"`
	Body json.RawMessage `json:"body,omitempty"`
	Raw  string          `json:"raw,omitempty"` // sent instead of Body

	Status   int     `json:"status"`
	Type     string  `json:"type,omitempty"`     // error type
	Param    *string `json:"param,omitempty"`    // error parameter
	Choices  int     `json:"choices,omitempty"`  // number of choices in the response
	Logprobs int     `json:"logprobs,omitempty"` // number of choices with log probabilities
	Calls    int     `json:"calls,omitempty"`    // number of choices with tool calls
}

// vllmReactions returns vLLM's reactions recorded by make test-vllm.
func vllmReactions(t *testing.T) []reaction {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join("testdata", "vllm-api.jsonl")))(t)
	var all []reaction
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var r reaction
		must.Do(t, d.Decode(&r))
		all = append(all, r)
	}
	return all
}

// react sends the request and returns the reaction of the server.
func (r reaction) react(t *testing.T, server string) reaction {
	t.Helper()
	body := []byte(r.Raw)
	if r.Raw == "" {
		body = r.Body
	}
	res, err := http.Post(server+r.Path, "application/json", bytes.NewReader(body))
	must.Do(t, err)
	defer res.Body.Close()
	got := must.Get(io.ReadAll(res.Body))(t)
	var answer struct {
		Error struct {
			Type  string  `json:"type"`
			Param *string `json:"param"`
		} `json:"error"`
		Choices []struct {
			Logprobs *struct{} `json:"logprobs"`
			Message  struct {
				ToolCalls []struct{} `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(got, &answer); err != nil {
		t.Fatalf("%s: %v in %s", r.Name, err, got)
	}
	out := reaction{Name: r.Name, Path: r.Path, Body: r.Body, Raw: r.Raw, Status: res.StatusCode, Type: answer.Error.Type, Param: answer.Error.Param}
	out.Choices = len(answer.Choices)
	for _, c := range answer.Choices {
		if c.Logprobs != nil {
			out.Logprobs++
		}
		if len(c.Message.ToolCalls) > 0 {
			out.Calls++
		}
	}
	return out
}

// The simulator accepts and rejects the same requests as vLLM, with the same errors.
func TestSimulatorReactsAsVLLM(t *testing.T) {
	s := must.Get(sim.New(sim.Options{Model: "tiny", MaxModelLen: 512}))(t)
	t.Cleanup(func() { s.Close() })
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for _, want := range vllmReactions(t) {
		t.Run(want.Name+" "+filepath.Base(want.Path), func(t *testing.T) {
			if diff := cmp.Diff(want, want.react(t, server.URL)); diff != "" {
				t.Errorf("(-vLLM +simulator):\n%s", diff)
			}
		})
	}
}
