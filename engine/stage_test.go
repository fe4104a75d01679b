package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/pace"
)

// The clock starts at the time returned by Start, and due times count from there.
func TestStartFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(90 * time.Second)
		var began time.Time
		var got list
		must.Do(t, engine.Run(t.Context(), engine.Stage{
			Arrivals: pace.Stripe(pace.Constant{Rate: 1, Count: 3}.Arrivals(), 0, 1), Source: script{turns: []tacho.Turn{say(0, nil, user("hi"))}}, Backend: talker{takes: time.Second},
			Start: func(context.Context) (time.Time, error) { return start, nil }, Begin: func(epoch time.Time) { began = epoch },
		}, &got))
		if !began.Equal(start) || len(got) != 3 {
			t.Fatalf("began %v late, %d records", began.Sub(start), len(got))
		}
		for _, r := range got {
			if r.Sent != r.Due {
				t.Errorf("due %v, sent %v", r.Due, r.Sent)
			}
		}
	})
}

// Enough stops arrivals in an open loop, in a closed loop, and between the turns of a
// session. Requests in flight finish, and Run returns no error.
func TestEnough(t *testing.T) {
	talking := say(10*time.Second, nil, user("more"))
	for name, tc := range map[string]struct {
		stage engine.Stage
		want  int
	}{
		"open loop":   {engine.Stage{Arrivals: pace.Stripe(pace.Constant{Rate: 1}.Arrivals(), 0, 1), Source: script{turns: []tacho.Turn{say(0, nil, user("hi"))}}}, 3},
		"closed loop": {engine.Stage{Arrivals: pace.Stripe(pace.Closed{}.Arrivals(), 0, 1), Limit: 2, Source: script{turns: []tacho.Turn{say(0, nil, user("hi"))}}}, 4},
		"sessions":    {engine.Stage{Arrivals: pace.Stripe(pace.Burst{Count: 3}.Arrivals(), 0, 1), Source: script{turns: append([]tacho.Turn{say(0, nil, user("hi"))}, talking)}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				enough := make(chan struct{})
				time.AfterFunc(3500*time.Millisecond, func() { close(enough) })
				var got list
				tc.stage.Backend, tc.stage.Enough = talker{takes: 2 * time.Second}, enough
				must.Do(t, engine.Run(t.Context(), tc.stage, &got))
				for _, r := range got {
					if !r.OK() || r.End-r.Sent != 2*time.Second {
						t.Errorf("sent %v, ended %v, %v", r.Sent, r.End, r.Failure)
					}
				}
				if len(got) != tc.want {
					t.Errorf("%d records, want %d", len(got), tc.want)
				}
			})
		})
	}
}
