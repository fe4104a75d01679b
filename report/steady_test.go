package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A run without a steady window shows the reason, and no figures of a window.
func TestNoFiguresWithoutSteadyWindow(t *testing.T) {
	const users = 50
	list := records(2 * users)
	for i, r := range list { // two waves, of requests that take from 0.5 s to 1.5 s
		sent, long := time.Duration(0), 500*ms+time.Duration(i*7919%1000)*ms
		if i >= users {
			sent = list[i-users].End
		}
		r.Due, r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head = sent, sent, sent, sent, sent, sent, sent+ms
		r.Events = tacho.Events{{At: sent + 100*ms, Tokens: 1}, {At: sent + long, Tokens: 1}}
		r.End = sent + long
	}
	c := metric.DefaultConfig()
	c.MaxConcurrency = users
	level := outcome.Level{Summary: summarize(c, list)}
	text := render(t, "text", of(level))
	_, text, _ = strings.Cut(text, "Steady State")
	if !strings.Contains(text, "none. "+strings.ToUpper(metric.LittleIsOff[:1])+metric.LittleIsOff[1:]) || !strings.Contains(text, "(Little)") {
		t.Errorf("the report says\n%s", text)
	}
	for _, figure := range []string{"request throughput", "Steady window (s)"} {
		if strings.Contains(text, figure) {
			t.Errorf("the report has %q:\n%s", figure, text)
		}
	}
}
