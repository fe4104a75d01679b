package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
)

// BenchmarkSecond measures the cost of watching one second of 50,000 tokens/s: counting
// each token and each request of 500 tokens, two frames of 80 by 24 cells, and one
// snapshot in JSON for tacho ui.
func BenchmarkSecond(b *testing.B) {
	const tokens, requests, period = 50_000, 100, time.Second / 2
	var f live.Feed
	var state live.State
	state.Begin(live.Level{Number: 1, Of: 3, Name: "--request-rate 100", Rate: 100, Sessions: 1000})
	ended := tacho.Record{Timeline: tacho.NewTimeline(0), Input: 4, Output: 500}
	for k := range 500 {
		ended.Events = append(ended.Events, tacho.Event{At: time.Duration(k) * 20 * time.Millisecond, Tokens: 1})
	}
	at, drawn := time.Duration(0), 0
	for b.Loop() {
		for range 2 {
			for k := range tokens / 2 {
				f.Token(1, k%500 == 0, 20*time.Millisecond+time.Duration(k*7919%1_000_000))
			}
			for range requests / 2 {
				f.Add(&ended)
			}
			at += period
			state.Add(f.Tick(at))
			s := state.Snapshot()
			drawn += len(strings.Join(Screen{Wide: 80, High: 24}.Frame(&s), "\n"))
		}
		s := state.Snapshot()
		text := must.Get(json.Marshal(s))(b)
		drawn += len(text)
	}
	if drawn == 0 {
		b.Error("nothing is drawn")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/s")
}
