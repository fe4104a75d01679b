package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"

	"github.com/google/go-cmp/cmp"
)

// start runs a server on an in-memory network and returns a client. Both end with
// the test.
func start(t *testing.T, opt Options) (*Server, *http.Client) {
	t.Helper()
	s := must.Get(New(opt))(t)
	l := memnet.Listen()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	client := &http.Client{Transport: &http.Transport{DialContext: l.Dial, DisableCompression: true}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, client
}

// A reply is a response whose body is closed with the test.
type reply struct{ *http.Response }

func post(t *testing.T, c *http.Client, path, body string, header ...string) reply {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body)))(t)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(req)
	must.Do(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return reply{res}
}

// An event is one data line and the time when it could be read.
type event struct {
	at   time.Duration
	data string
}

func events(t *testing.T, r io.Reader, epoch time.Time) []event {
	t.Helper()
	var got []event
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		if data, ok := strings.CutPrefix(in.Text(), "data:"); ok {
			got = append(got, event{time.Since(epoch), strings.TrimPrefix(data, " ")})
		}
	}
	must.Do(t, in.Err())
	return got
}

func TestFixedModelKeepsAbsoluteTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, c := start(t, Options{TTFT: 200 * time.Millisecond, ITL: 10 * time.Millisecond, TruthLog: &log})
		epoch := time.Now()
		res := post(t, c, "/v1/completions", `{"prompt":"one two three","max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`,
			"X-Request-Id", "r1")
		got := events(t, res.Body, epoch)
		ms := time.Millisecond
		want := []time.Duration{200 * ms, 210 * ms, 220 * ms, 230 * ms, 240 * ms, 240 * ms, 240 * ms}
		var at []time.Duration
		for _, e := range got {
			at = append(at, e.at)
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("times of events (-want +got):\n%s", diff)
		}
		synctest.Wait()
		truth := s.Truth()
		if len(truth) != 1 {
			t.Fatalf("%d truths, want 1", len(truth))
		}
		var writes []int64
		for k := range 5 {
			writes = append(writes, epoch.Add(want[k]).UnixNano())
		}
		wantTruth := Truth{
			ID: "r1", Path: "/v1/completions", Status: 200, Input: 3, Output: 5, Asked: 5, Finish: "length",
			Arrival: epoch.UnixNano(), Queued: epoch.UnixNano(), Admitted: epoch.UnixNano(),
			First: writes[0], Last: writes[4], Writes: writes, End: epoch.Add(240 * ms).UnixNano(),
		}
		if diff := cmp.Diff(wantTruth, truth[0]); diff != "" {
			t.Errorf("truth (-want +got):\n%s", diff)
		}
		var logged Truth
		must.Do(t, json.Unmarshal(log.Bytes(), &logged))
		if diff := cmp.Diff(wantTruth, logged); diff != "" {
			t.Errorf("logged truth (-want +got):\n%s", diff)
		}
	})
}

// A slow reader does not shift later tokens.
func TestFixedModelDoesNotDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, Options{TTFT: 10 * time.Millisecond, ITL: 10 * time.Millisecond})
		epoch := time.Now()
		res := post(t, c, "/generate_stream", `{"inputs":"x","parameters":{"max_new_tokens":100}}`)
		time.Sleep(300 * time.Millisecond) // net.Pipe has no buffer: the server waits for the client meanwhile
		got := events(t, res.Body, epoch)
		if n := len(got); n != 100 {
			t.Fatalf("%d events, want 100", n)
		}
		if at := got[99].at; at != time.Second {
			t.Errorf("the last token came at %v, want 1s", at)
		}
	})
}

func TestDisconnectEndsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, Options{TTFT: time.Second, ITL: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/v1/completions",
			strings.NewReader(`{"prompt":"x","max_tokens":1000,"stream":true}`))
		res, err := c.Do(req)
		must.Do(t, err)
		defer res.Body.Close()
		time.Sleep(3500 * time.Millisecond)
		_, _ = res.Body.Read(make([]byte, 1))
		cancel()
		time.Sleep(5 * time.Second)
		truth := s.Truth()
		if len(truth) != 1 || truth[0].Finish != "" || truth[0].Output > 5 {
			t.Errorf("truth of an abandoned answer: %+v", truth)
		}
	})
}

func TestBadRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, Options{MaxModelLen: 100})
		for _, tt := range []struct{ path, body, want string }{
			{"/v1/completions", `{`, "parse the request"},
			{"/v1/completions", `{"prompt":""}`, "empty"},
			{"/v1/completions", `{"prompt":{"a":1}}`, "string or token ids"},
			{"/v1/completions", `{"prompt":["a","b"]}`, "2 prompts"},
			{"/v1/completions", `{"prompt":"a","max_tokens":-1}`, "at least 1"},
			{"/v1/completions", `{"prompt":"a","max_tokens":101}`, "exceed the model's 100"},
			{"/v1/completions", `{"prompt":"` + strings.Repeat("a ", 101) + `","max_tokens":1}`, "exceed the model's 100"},
			{"/v1/completions", `{"prompt":"a","stream_options":{"include_usage":true}}`, "stream_options"},
			{"/v1/chat/completions", `{"messages":[]}`, "empty"},
			{"/v1/chat/completions", `{"messages":[{"content":1}]}`, "content"},
			{"/v1/responses", `{"input":{}}`, "string or a list of parts"},
			{"/v1/embeddings", `{"input":[]}`, "empty"},
			{"/v1/embeddings", `{"input":"a","dimensions":-1}`, "dimensions"},
			{"/completion", `{"n_predict":1}`, "JSON"},
			{"/generate", `{"text":""}`, "empty"},
			{"/api/chat", `{"messages":1}`, "parse the request"},
			{"/v1/messages", `{"messages":[{"role":"user","content":"a"}]}`, "max_tokens"},
			{"/tokenize", `{}`, "nothing to tokenize"},
			{"/detokenize", `[]`, "parse the request"},
		} {
			res := post(t, c, tt.path, tt.body)
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), tt.want) || !json.Valid(body) {
				t.Errorf("%s %s: %d %s; want 400 with %q", tt.path, tt.body, res.StatusCode, body, tt.want)
			}
		}
	})
}

// On a real socket the kernel's timestamp is between the client's write and the
// start of the handler.
func TestReceivedIsKernelTimestamp(t *testing.T) {
	s := must.Get(New(Options{}))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go s.Serve(l)
	defer s.Close()
	stamped := 0
	for try := 0; stamped < 3; try++ { // on one connection
		before := time.Now().UnixNano()
		res, err := http.Post("http://"+l.Addr().String()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x"}`))
		must.Do(t, err)
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		res, err = http.Get("http://" + l.Addr().String() + "/health")
		must.Do(t, err)
		res.Body.Close()
		truth := s.Truth()
		last := truth[len(truth)-1]
		if last.Received == 0 { // the kernel starts timestamping some time after it is enabled
			if try == 1000 {
				t.Skip("this kernel does not stamp")
			}
			continue
		}
		stamped++
		if last.Received < before || last.Received > last.Arrival {
			t.Errorf("received at %d, want between the write %d and the arrival %d", last.Received, before, last.Arrival)
		}
	}
}

func TestTruthForgetsTheOldest(t *testing.T) {
	l := truthLog{limit: 10}
	for i := range 5 {
		l.add(&Truth{Input: i, Writes: make([]int64, 4)})
	}
	var kept []int
	for _, x := range l.all() {
		kept = append(kept, x.Input)
	}
	if diff := cmp.Diff([]int{3, 4}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// A server that makes its client wait sends comments, which do not count as tokens.
func TestKeepAliveComments(t *testing.T) {
	for _, tt := range []struct {
		engine, path, body string
		comments           int
	}{
		{"vllm", "/v1/completions", `{"prompt":"a","max_tokens":2,"stream":true}`, 0},
		{"tgi", "/v1/completions", `{"prompt":"a","max_tokens":2,"stream":true}`, 6},
		{"tgi", "/v1/completions", `{"prompt":"a","max_tokens":2}`, 0},
		{"vllm", "/generate_stream", `{"inputs":"a","parameters":{"max_new_tokens":2}}`, 6},
		{"llamacpp", "/completion", `{"prompt":"a","n_predict":2,"stream":true}`, 3},
		{"llamacpp", "/api/generate", `{"prompt":"a"}`, 0},
	} {
		t.Run(tt.engine+tt.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := start(t, Options{Engine: tt.engine, TTFT: 100 * time.Second})
				body := must.Get(io.ReadAll(post(t, c, tt.path, tt.body).Body))(t)
				if n := strings.Count(string(body), ":\n\n"); n != tt.comments {
					t.Errorf("%d comments, want %d in %s", n, tt.comments, body)
				}
				synctest.Wait()
				if got := s.Truth()[0]; got.Finish != "length" || got.Writes[0]-got.Arrival != int64(100*time.Second) {
					t.Errorf("truth: %+v", got)
				}
			})
		})
	}
}

// No request causes a panic, and every answer is well-formed.
func FuzzRequest(f *testing.F) {
	var paths []string
	for _, d := range dialects {
		paths = append(paths, d.paths[0])
	}
	for _, c := range conversations {
		for i, p := range paths {
			if p == c.path {
				f.Add(uint8(i), c.body)
			}
		}
	}
	s := must.Get(New(Options{MaxModelLen: 300, ForgetTruth: true}))(f)
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, path uint8, body string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, paths[int(path)%len(paths)], strings.NewReader(body))
		s.ServeHTTP(w, r)
		whole := strings.HasPrefix(w.Header().Get("Content-Type"), "application/json")
		if whole && w.Body.Len() == 0 {
			t.Fatalf("empty response with status %d", w.Code)
		}
		for data := range payloads(w.Body.Bytes(), whole) {
			if string(data) != "[DONE]" && !json.Valid(data) {
				t.Fatalf("status %d, not JSON: %q", w.Code, data)
			}
		}
	})
}
