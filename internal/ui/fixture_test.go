package ui_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/store"
)

const ms = time.Millisecond

// began is the start of the first run of a folder. Each later run starts a minute later.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A kept describes a run for keep.
type kept struct {
	label, model string
	slow         time.Duration // added to each gap
	levels       int
	rate         float64 // rate of the first level; 0 means 10
	cut          bool    // the run was cut short
	sim          string  // name of the simulated engine
	failing      int     // number of the first level, from 1, in which 2 of 3 requests fail; 0 means none
}

// keep writes a run into a folder and returns its directory.
func keep(t testing.TB, folder string, k kept) string {
	t.Helper()
	list, _ := os.ReadDir(folder)
	m := store.Manifest{
		Tool: "tacho", Version: "v1", Started: began.Add(time.Duration(len(list)) * time.Minute), Label: k.label, Args: []string{"bench"},
		Plan: json.RawMessage(`{"label":` + quoted(k.label) + `,"sim":` + quoted(k.sim) + `}`), Target: store.Target{Backend: "vllm", Model: k.model, Dataset: "random"}, Varies: "request-rate",
	}
	w := must.Get(store.Create(folder, m, func(doc []byte) []byte { return doc }))(t)
	for stage := range max(k.levels, 1) {
		c := metric.DefaultConfig()
		c.RequestRate = cmp.Or(k.rate, 10) * float64(stage+1)
		l := store.Level{Setting: outcome.Setting{
			Index: stage, Name: fmt.Sprintf("--request-rate %g", c.RequestRate), Value: fmt.Sprint(c.RequestRate), Rate: c.RequestRate, Epoch: m.Started,
			Coordinates: outcome.Coordinates{{Name: "request-rate", Value: fmt.Sprint(c.RequestRate)}},
		}, Config: c}
		must.Do(t, w.Level(l))
		for i := range 120 {
			r := request(stage, i, c.RequestRate, k.slow)
			if k.failing > 0 && stage >= k.failing-1 && i%3 > 0 {
				r.Events, r.Output, r.Failure = nil, 0, &tacho.Failure{Cause: tacho.Status, Status: 503}
			}
			must.Do(t, w.Add(r))
		}
		if !k.cut {
			must.Do(t, w.End(l))
		}
	}
	if !k.cut {
		run := must.Get(archive.Open(w.Dir(), nil))(t)
		must.Do(t, w.Summary(map[string]any{"schema": 1, "runs": []outcome.Run{*run}}))
	}
	must.Do(t, w.Close())
	return w.Dir()
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

func request(stage, i int, rate float64, slow time.Duration) *tacho.Record {
	r := &tacho.Record{Stage: stage, Session: uint64(i), Timeline: tacho.NewTimeline(time.Duration(float64(i) / rate * 1e9)), Asked: 8, Input: 100}
	r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head = r.Due, r.Due, r.Due, r.Due, r.Due, r.Due+5*ms
	r.Clock, r.Conns = tacho.KernelClock, 1
	at := r.Sent + 20*ms + time.Duration(i*7919%13)*ms
	for k := range 8 {
		r.Events = append(r.Events, tacho.Event{At: at, Tokens: 1})
		at += 5*ms + slow + time.Duration((i+k)*104729%7)*ms/10
	}
	r.End, r.Output, r.OutputFrom = r.Last()+ms, 8, tacho.FromUsage
	r.Usage = &tacho.Usage{Prompt: 100, Completion: 8}
	return r
}

// snapshot returns the live state of a run, seconds after its level began.
func snapshot(seconds int, text string) live.Snapshot {
	s := live.Snapshot{
		About: live.About{Model: text}, Level: live.Level{Number: 2, Of: 5, Name: "--request-rate 20", Rate: 20, Sessions: 1000}, AtS: float64(seconds),
		Totals: live.Totals{Sent: int64(20 * seconds), Finished: int64(19 * seconds), Failed: 1, Tokens: int64(150 * seconds)}, Share: new(float64(seconds) / 50), LeftS: new(50 - float64(seconds)),
		Verdict:  metric.Verdict{Severity: metric.Degraded, Reasons: []metric.Reason{{Code: "failures", Severity: metric.Degraded, Text: text}}},
		Failures: []live.Failure{{Cause: "status", Status: 503, Count: 1, LastS: 1, Text: text}},
	}
	for i := range seconds {
		p := live.Point{AtS: float64(i + 1), SentPerS: 20, ServedPerS: 18 + float64(i%3), TokensPerS: 150, InFlight: int64(i), TTFT: live.Figure{N: 20, P50: new(25.0 + float64(i)), P99: new(60.0)}, ITL: live.Figure{N: 150, P50: new(5.0), P99: new(9.0)}}
		s.History = append(s.History, p)
		s.Now = p
	}
	return s
}

// runs writes the live state of a run like bench. The file is dated an hour ahead, so
// that the run counts as running during the whole test.
func runs(t testing.TB, dir string, s live.Snapshot) {
	t.Helper()
	b := must.Get(json.Marshal(s))(t)
	path := filepath.Join(dir, store.LiveFile)
	must.Do(t, os.WriteFile(path, b, 0o600))
	ahead := time.Now().Add(time.Hour)
	must.Do(t, os.Chtimes(path, ahead, ahead))
}

// token is the access token of all servers in tests.
const token = "sixteen-characters"

// serve serves a folder.
func serve(t testing.TB, o ui.Options) *httptest.Server {
	t.Helper()
	o.Token, o.Now = token, time.Now
	if o.Host == nil {
		o.Host = ui.Loopback
	}
	s := must.Get(ui.New(o))(t)
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}
