package report_test

import (
	"strings"
	"testing"
	"time"

	"tacho"
	"tacho/metric"
	"tacho/outcome"
)

// A run that was not in balance has the reason, and no figures of a time in balance.
func TestNoFiguresWithoutBalance(t *testing.T) {
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
	if !strings.Contains(text, "never: "+metric.LittleIsOff) || !strings.Contains(text, "(Little's law)") {
		t.Errorf("the report says\n%s", text)
	}
	for _, figure := range []string{"request throughput", "In balance (s)"} {
		if strings.Contains(text, figure) {
			t.Errorf("the report has %q:\n%s", figure, text)
		}
	}
}
