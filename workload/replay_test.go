package workload_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/workload"
)

// slowServer is a server that takes an hour to answer.
type slowServer struct{}

func (slowServer) Prepare(*tacho.Request) (tacho.Call, error) { return slowServer{}, nil }

func (slowServer) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	if o.Pass(func() {}) != nil {
		return
	}
	rec.Sent = time.Since(epoch)
	time.Sleep(time.Hour)
	rec.End = time.Since(epoch)
}

// sentList is a list of records.
type sentList []tacho.Record

func (l *sentList) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *sentList) Close() error              { return nil }

// TestTraceIsReplayedExactly checks that a trace is replayed at exactly its own times in
// virtual time.
func TestTraceIsReplayedExactly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "azure.csv")
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,5,1\n2023-11-16 18:17:04.0319569,6,1\n2023-11-16 18:19:04.0319570,7,1\n"
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	k := must.Get(workload.Find("azure"))(t)
	w := must.Get(k.New(t.Context(), workload.Options{Path: path, IDs: true}))(t)
	var got sentList
	synctest.Test(t, func(t *testing.T) {
		must.Do(t, engine.Run(t.Context(), engine.Stage{
			Arrivals: pace.Stripe(w.(tacho.Pacer).Arrivals(), 0, 1), Source: w, Backend: slowServer{},
		}, &got))
	})
	want := []time.Duration{0, 51_996_900, 120_051_997_000}
	for i, r := range got {
		if r.Sent != want[i] || r.Input != 5+i {
			t.Errorf("request %d of %d tokens left at %v, the trace says %v", i, r.Input, r.Sent, want[i])
		}
	}
	if len(got) != 3 {
		t.Errorf("%d requests", len(got))
	}
}
