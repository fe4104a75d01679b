package workload_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

// TestLimitContext checks that sessions too long for the context are left out together with
// their arrival.
func TestLimitContext(t *testing.T) {
	var lines strings.Builder
	for i := range 10 {
		fmt.Fprintf(&lines, "{\"prompt\":%q,\"output_tokens\":5}\n", words(10*(i+1)-1, "w"))
	}
	path := write(t, "lines.jsonl", lines.String())
	inner := make1(t, "custom", workload.Options{Path: path, Output: workload.Fixed(-1), Count: 10})
	w := workload.LimitContext(inner, 45)
	var got []int
	for i := uint64(0); ; i++ {
		s, err := w.Session(i)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if q := s.Turns[0].Request; s.ID != i || q.Session != i {
			t.Errorf("session %d calls itself %d", i, s.ID)
		} else {
			got = append(got, q.InputTokens)
		}
	}
	if want := []int{10, 20, 30, 40}; !slices.Equal(got, want) {
		t.Errorf("prompts of %d tokens, want %d", got, want)
	}
	if notes := w.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "6 of 10 prompts were left out") {
		t.Errorf("%q", notes)
	}
	if s, err := w.Warmup(9); err != nil || s.Turns[0].Request.InputTokens > 45 {
		t.Errorf("a warm-up of %d tokens, %v", s.Turns[0].Request.InputTokens, err)
	}
	if _, err := workload.LimitContext(inner, 3).Session(0); err == nil || !strings.Contains(err.Error(), "--max-model-len") {
		t.Errorf("nothing fits: %v", err)
	}
	if workload.LimitContext(inner, 0) != inner {
		t.Error("no limit, and the data is another")
	}
}

// TestLimitContextCountsAnswers checks that a quoted answer counts with its maximum length.
func TestLimitContextCountsAnswers(t *testing.T) {
	o := workload.Options{Input: workload.Fixed(20), Output: workload.Fixed(10), Messages: true}
	o.Conversation.Turns = workload.Fixed(3)
	talk := make1(t, "conversation", o)
	s := must.Get(talk.Session(0))(t)
	last := s.Turns[2].Request
	whole := last.InputTokens + last.MaxTokens + 2*10
	if _, err := workload.LimitContext(talk, whole).Session(0); err != nil {
		t.Errorf("%d tokens: %v", whole, err)
	}
	if _, err := workload.LimitContext(talk, whole-1).Session(0); err == nil {
		t.Errorf("a conversation of %d tokens fits into one less", whole)
	}
}

func TestWithinTimes(t *testing.T) {
	path := write(t, "trace.jsonl", `{"timestamp":0,"input_length":10,"output_length":1,"hash_ids":[1]}
{"timestamp":1000,"input_length":90,"output_length":1,"hash_ids":[2]}
{"timestamp":3000,"input_length":20,"output_length":1,"hash_ids":[3]}
`)
	w := workload.LimitContext(make1(t, "mooncake", workload.Options{Path: path, IDs: true, Trace: workload.TraceOptions{Speedup: 1}}), 50)
	if got, want := slices.Collect(w.(tacho.Pacer).Arrivals()), []time.Duration{0, 3 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if s, err := w.Session(1); err != nil || s.Turns[0].Request.InputTokens != 20 {
		t.Errorf("%+v, %v", s, err)
	}
}
