package sim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
)

// A short request cannot demand an answer that fills the memory.
func TestAnswersOfVectorsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, Options{})
		inputs := `["a"` + strings.Repeat(`,"a"`, 899) + `]`
		many := `["a"` + strings.Repeat(`,"a"`, 2999) + `]`
		for _, tt := range []struct {
			path, body string
			status     int
		}{
			{"/v1/embeddings", `{"input":` + inputs + `,"dimensions":65536}`, http.StatusBadRequest},
			{"/v1/embeddings", `{"input":` + inputs + `}`, http.StatusOK},
			{"/v1/embeddings", `{"input":"a","dimensions":65536}`, http.StatusOK},
			{"/v1/embeddings", `{"input":` + many + `}`, http.StatusBadRequest},
		} {
			res := post(t, c, tt.path, tt.body)
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != tt.status || len(body) > 32<<20 {
				t.Errorf("%s %.40s: status %d, %d bytes, %v; want %d and less than 32 MiB", tt.path, tt.body, res.StatusCode, len(body), err, tt.status)
			}
		}
	})
}

// An incomplete request times out. An idle connection between requests stays open.
func TestHalfRequestsEnd(t *testing.T) {
	const whole = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 29\r\n\r\n" + `{"prompt":"x","max_tokens":1}`
	for _, tt := range []struct {
		name, sent string
		open       bool // after a quarter of an hour
	}{
		{"nothing", "", false},
		{"half a head", whole[:40], false},
		{"half a body", whole[:len(whole)-5], false},
		{"a whole request", whole, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := must.Get(New(Options{}))(t)
				l := memnet.Listen()
				go s.Serve(l)
				defer s.Close()
				conn := must.Get(l.Dial(t.Context(), "tcp", ""))(t)
				closed := false
				go func() {
					_, _ = io.Copy(io.Discard, conn)
					closed = true
				}()
				_, _ = io.WriteString(conn, tt.sent)
				time.Sleep(15 * time.Minute)
				synctest.Wait()
				if closed == tt.open {
					t.Errorf("closed: %v", closed)
				}
				conn.Close()
				synctest.Wait()
			})
		})
	}
}

// An answer may take longer than the timeout for the request body.
func TestLongAnswersOutliveBodyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, Options{TTFT: time.Hour, ITL: time.Hour})
		res := post(t, c, "/v1/completions", `{"prompt":"x","max_tokens":5,"stream":true}`)
		if got := events(t, res.Body, time.Now()); len(got) != 6 {
			t.Errorf("%d events, want 5 and the end", len(got))
		}
	})
}

// A model clock with speed-up or pauses rounds, but queue times are never negative.
func TestQueueTimeIsNeverNegative(t *testing.T) {
	for name, opt := range map[string]Options{
		"fast":   {Speedup: 7.3, TTFT: time.Millisecond},
		"paused": {TTFT: time.Millisecond, Faults: []string{"pause:10s@1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := start(t, opt)
				for range 40 {
					time.Sleep(123457 * time.Microsecond)
					_, _ = io.Copy(io.Discard, post(t, c, "/v1/completions", `{"prompt":"x","max_tokens":1}`).Body)
				}
				for _, got := range s.Truth() {
					if got.Admitted < got.Arrival {
						t.Errorf("admitted %v before it arrived", time.Duration(got.Arrival-got.Admitted))
					}
				}
				if _, page := get(t, c, "/metrics"); sample(page, "vllm:request_queue_time_seconds_sum", "") < 0 {
					t.Error("the sum of queue times is negative")
				}
			})
		})
	}
}

// The length of an answer depends on the seed and the prompt, not on the order of
// requests.
func TestSeedFixesLengths(t *testing.T) {
	lengths := func(seed uint64, order []int) string {
		var all [10][]byte
		synctest.Test(t, func(t *testing.T) {
			p := testProfile()
			p.Output = step.Lengths{Kind: "uniform", Min: 1, Max: 64}
			_, c := start(t, Options{Profile: p, Seed: seed})
			for _, i := range order {
				all[i], _ = io.ReadAll(post(t, c, "/generate", fmt.Sprintf(`{"inputs":"prompt %d","parameters":{"max_new_tokens":64}}`, i)).Body)
			}
		})
		return string(bytes.Join(all[:], []byte("\n")))
	}
	up, down := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}
	if a, b := lengths(1, up), lengths(1, down); a != b {
		t.Errorf("the same seed answered\n%s\nand\n%s", a, b)
	}
	if lengths(1, up) == lengths(2, up) {
		t.Error("two seeds gave the same lengths")
	}
}
