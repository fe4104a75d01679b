package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

var chatFormat = Format{
	Name: "chat", Doc: "a sentence for each level, for a chat",
	Render: renderChat,
}

func renderChat(w io.Writer, r *Report) error {
	out := bufio.NewWriter(w) // keeps the first error for Flush
	for run, level := range r.levels() {
		s := &level.Summary
		fmt.Fprintf(out, "%s, %s: %d of %d requests served", safe(run.Model), safe(level.Name), s.Completed, s.Requests)
		if ttft := s.Dist(metric.TTFT).Stats; ttft != nil {
			fmt.Fprintf(out, ", the first token after %.1f ms (median)", ttft.Median)
		}
		fmt.Fprintf(out, ". %s\n", s.Verdict.Severity)
	}
	return out.Flush()
}

// A format that is only listed in Formats can be selected and rendered.
// docs/extending.md describes the steps.
func TestOneWordAddsAFormat(t *testing.T) {
	usual := Formats
	defer func() { Formats = usual }()
	Formats = append(Formats, chatFormat)
	f := must.Get(FormatNamed("chat"))(t)
	level := outcome.Level{Setting: outcome.Setting{Name: "rate 20"}}
	level.Summary = metric.Summary{
		Counts:  metric.Counts{Requests: 10, Completed: 9},
		Dists:   []metric.Dist{{Name: "ttft", N: 9, Stats: &metric.Stats{Median: 31.25}}},
		Verdict: metric.Verdict{Severity: "VALID"},
	}
	var b strings.Builder
	must.Do(t, f.Render(&b, &Report{Runs: []outcome.Run{{About: outcome.About{Model: "tiny"}, Levels: []outcome.Level{level}}}}))
	if want := "tiny, rate 20: 9 of 10 requests served, the first token after 31.2 ms (median). VALID\n"; b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
	}
}
