package view

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
)

// loadWords names the load of a level.
func loadWords(l *live.Level) string {
	if l.Name != "" {
		return l.Name
	}
	var words []string
	if l.Rate > 0 {
		words = append(words, metric.Setting(l.Rate)+" requests/s")
	}
	if l.Concurrency > 0 {
		words = append(words, fmt.Sprintf("concurrency %d", l.Concurrency))
	}
	if l.Sessions > 0 {
		words = append(words, integer(int64(l.Sessions))+" requests")
	}
	return strings.Join(words, ", ")
}

// rowName is the load of a level in short, for a table.
func rowName(l *live.Level) string {
	words := strings.Fields(l.Name)
	var out []string
	for i := 0; i+1 < len(words); i += 2 {
		switch value := words[i+1]; words[i] {
		case "--request-rate":
			if value != "inf" || len(words) == 2 {
				out = append(out, value+" req/s")
			}
		case "--max-concurrency":
			out = append(out, "concurrency "+value)
		case "--num-prompts":
			out = append(out, value+" prompts")
		default:
			return loadWords(l)
		}
	}
	if len(out) == 0 || len(words)%2 == 1 {
		return loadWords(l)
	}
	return strings.Join(out, ", ")
}

// soFar describes the verdict on a running level. A running level is never VALID,
// because most rules need its end.
func soFar(s *live.Snapshot) string {
	text := string(s.Verdict.Severity) + " so far"
	switch s.Verdict.Severity {
	case metric.Valid:
		text = "no problems so far"
	case metric.Unjudged:
		text = "not judged so far"
	}
	if s.About.Simulated {
		text += ", SIMULATED"
	}
	return text
}

func severityStyle(s metric.Severity) termtext.Style {
	switch s {
	case metric.Invalid:
		return termtext.Red
	case metric.Degraded:
		return termtext.Yellow
	case metric.Valid:
		return termtext.Green
	}
	return termtext.Plain
}

func serverWords(s *live.Server) string {
	if s == nil {
		return "no metrics"
	}
	return nonEmpty(queues(s), cacheWords(s))
}

// queues counts the requests in the server.
func queues(s *live.Server) string {
	if s == nil {
		return "no metrics"
	}
	var words []string
	for _, one := range []struct {
		v    *float64
		word string
	}{{s.Running, " run"}, {s.Queued, " queued"}} {
		if one.v != nil {
			words = append(words, metric.Brief(math.Round(*one.v))+one.word)
		}
	}
	return strings.Join(words, ", ")
}

func cacheWords(s *live.Server) string {
	if s.KVShare == nil {
		return ""
	}
	return "KV " + metric.Brief(math.Round(100**s.KVShare)) + " %"
}

// printable returns a text from outside as it is shown, so that its width is known.
func printable(text string) string { return sanitize.Line(text) }

func spread(g *live.Figure) string {
	return "p50 " + millis(g.P50) + " p99 " + millis(g.P99)
}

// millis formats a time that may be unknown.
func millis(v *float64) string {
	if v == nil {
		return "-"
	}
	return metric.Duration(*v)
}

// integer formats an integer with commas between thousands.
func integer(n int64) string {
	return metric.Integer(int(n))
}

// clock formats a time as minutes and seconds.
func clock(seconds float64) string {
	if !(seconds > 0) {
		seconds = 0
	}
	d := time.Duration(math.Round(min(seconds, 1e9))) * time.Second
	if d >= time.Hour {
		return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// Line renders a snapshot as one line of a log.
func Line(at *live.Snapshot) string {
	l, now := &at.Level, &at.Now
	head := fmt.Sprintf("%s %d", strings.ToUpper(l.Word()[:1])+l.Word()[1:], l.Number)
	if l.Of >= l.Number { // the number of levels of a search is unknown
		head += fmt.Sprintf(" of %d", l.Of)
	}
	if l.Name != "" {
		head += " (" + l.Name + ")"
	}
	head += ", " + clock(at.AtS) + " elapsed"
	draining := at.Draining()
	switch {
	case draining:
		head += ", waiting for the last answers"
	case at.LeftS != nil && *at.LeftS > 0:
		head += ", " + clock(*at.LeftS) + " left"
	}
	done := integer(at.Totals.Finished) + " done"
	if at.Share != nil && !draining { // the share of a timed level would be 100 %
		done += " (" + metric.Brief(math.Floor(100**at.Share)) + " %)"
	}
	words := []string{done, integer(at.Totals.InFlight()) + " in flight", integer(at.Totals.Failed) + " failed"}
	rates := "sent " + metric.Brief(now.SentPerS) + "/s, served " + metric.Brief(now.ServedPerS) + "/s, " + metric.Brief(now.TokensPerS) + " tok/s"
	if l.Rate > 0 {
		rates = "target " + metric.Setting(l.Rate) + "/s, " + rates
	}
	words = append(words, rates, "TTFT "+spread(&now.TTFT), "ITL "+spread(&now.ITL))
	if now.Server != nil {
		words = append(words, "server "+serverWords(now.Server))
	}
	text := head + ": " + strings.Join(append(words, soFar(at)), "; ")
	if len(at.Failures) > 0 {
		text += "; last failure: " + termtext.Cut(at.Failures[0].Cause+": "+at.Failures[0].Text, 200)
	}
	return text
}

// PastLine renders a finished level as one line of a log.
func PastLine(p *live.Past) string {
	name := loadWords(&p.Level)
	if p.Level.Name == "" {
		name = fmt.Sprintf("Level %d", p.Level.Number)
	}
	return fmt.Sprintf("%s finished in %s: %s req/s, %s tok/s, TTFT p99 %s, ITL p99 %s, %d failed; %s",
		name, clock(p.Seconds), metric.Brief(p.RequestsPerS), metric.Brief(p.TokensPerS), millis(p.TTFTP99), millis(p.ITLP99), p.Failed, p.Verdict)
}
