package view

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
)

// verdict shows the verdict so far with its reasons, which take at most n lines.
func (f *frame) verdict(n int) {
	from := len(f.lines)
	v := &f.at.Verdict
	f.put(f.line().Add(termtext.Plain, "Verdict").To(names).Add(severityStyle(v.Severity), soFar(f.at)))
	f.texts(f.reasons(), n)
	f.fill(from + 1 + n)
	f.blank()
}

// reasons returns the lines of the reasons against a VALID verdict.
func (f *frame) reasons() (lines []string) {
	for _, r := range f.at.Verdict.Reasons {
		lines = append(lines, termtext.Wrap(r.Text, max(f.Wide-names-margin, 1))...)
	}
	return lines
}

// texts shows at most n lines. The last one ends in dots if there are more.
func (f *frame) texts(lines []string, n int) {
	for i, line := range lines[:min(n, len(lines))] {
		if i == n-1 && len(lines) > n {
			line = termtext.Cut(line, f.Wide-names-margin-len(" ...")) + " ..."
		}
		f.put(f.line().To(names).Add(termtext.Plain, line))
	}
}

// failures shows the latest failures in n lines.
func (f *frame) failures(n int) {
	from := len(f.lines)
	l := f.line().Add(termtext.Plain, "Failures").To(names)
	if len(f.at.Failures) == 0 {
		f.put(l.Add(termtext.Plain, "none"))
	}
	for i := range f.at.Failures {
		room := from + n - len(f.lines)
		if room <= 0 {
			break
		}
		one := &f.at.Failures[i]
		cause := one.Cause
		if one.Status != 0 {
			cause += " " + strconv.Itoa(one.Status)
		}
		head := integer(one.Count) + " x " + cause
		texts := termtext.Hang(head+", last at "+clock(one.LastS)+": ", printable(one.Text), "", max(f.Wide-names-margin, 1))
		if spare := room - (len(f.at.Failures) - i - 1); len(texts) > max(spare, 1) { // leave a line for each other failure
			texts = []string{texts[0] + "..."}
		}
		for k, text := range texts {
			if k == 0 && len(text) >= len(head) {
				l.Add(termtext.Red, head)
				text = text[len(head):]
			}
			f.put(l.Add(termtext.Plain, text))
			l = f.line().To(names)
		}
	}
	f.lines = f.lines[:min(len(f.lines), from+n)]
	f.fill(from + n)
	f.blank()
}

// histograms shows how TTFT and ITL of the level are distributed, side by side.
func (f *frame) histograms() {
	half := (f.Wide - 2*margin - 3) / 2
	left, right := f.histogram("TTFT so far", f.at.TTFT, half), f.histogram("ITL so far", f.at.ITL, half)
	for i := range left {
		f.put(f.line().Add(termtext.Plain, left[i]).To(margin+half+3).Add(termtext.Plain, right[i]))
	}
	f.blank()
}

// These shares of the values at the ends of a histogram are left out, because a few values
// far away would leave no room for the others. Low gaps are mostly tokens that were read
// together.
const (
	leftOutLow  = 0.02
	leftOutHigh = 0.002
)

// histogram draws a histogram with its title and its axis.
func (f *frame) histogram(title string, buckets []live.Bucket, wide int) []string {
	var sum, seen, together int64
	for len(buckets) > 0 && buckets[0].BelowMillis < 0.01 { // tokens in one event
		together += buckets[0].N
		buckets = buckets[1:]
	}
	for i := range buckets {
		sum += buckets[i].N
	}
	var shown []live.Bucket
	for i := range buckets {
		before := seen
		seen += buckets[i].N
		if float64(seen) > leftOutLow*float64(sum) && float64(sum-before) > leftOutHigh*float64(sum) {
			shown = append(shown, buckets[i])
		}
	}
	out := make([]string, columns)
	out[0] = termtext.Cut(title+": no values", wide)
	if len(shown) == 0 || wide < len(shown) {
		return out
	}
	each := min(wide/len(shown), 6)
	var counts []float64
	for i := range shown {
		for range each {
			count := float64(shown[i].N)
			if count == 0 {
				count = math.NaN() // drawn as a space
			}
			counts = append(counts, count)
		}
	}
	if together > 0 {
		title += fmt.Sprintf(" (%s arrived with the token before)", integer(together))
	}
	most := int64(0)
	for i := range shown {
		most = max(most, shown[i].N)
	}
	out[0] = termtext.Cut(fmt.Sprintf("%s: %s values, the highest column has %s", title, integer(sum), integer(most)), wide)
	copy(out[1:], f.Pen.Spark(counts, wide, columns-2))
	first, last := millis(&shown[0].FromMillis), millis(&shown[len(shown)-1].BelowMillis)
	axis := first
	if gap := len(counts) - len(first) - len(last); gap > 0 {
		axis += fmt.Sprintf("%*s%s", gap, "", last)
	} else {
		axis += " to " + last
	}
	out[columns-1] = termtext.Cut(axis, wide)
	return out
}

// A column is a column of the table of levels.
type column struct {
	name string
	wide int
	of   func(*live.Past) string
}

var levelColumns = []column{
	{"req/s", 7, func(p *live.Past) string { return metric.Brief(p.RequestsPerS) }},
	{"tok/s", 8, func(p *live.Past) string { return metric.Brief(p.TokensPerS) }},
	{"TTFT p99", 9, func(p *live.Past) string { return millis(p.TTFTP99) }},
	{"TPOT p99", 9, func(p *live.Past) string { return millis(p.TPOTP99) }},
	{"E2EL p99", 9, func(p *live.Past) string { return millis(p.E2ELP99) }},
	{"failed", 7, func(p *live.Past) string { return strconv.Itoa(p.Failed) }},
}

// levels shows as many finished levels as fit into n lines.
func (f *frame) levels(n int) {
	from := len(f.lines)
	past := f.at.Past
	if n < 2 || len(past) == 0 {
		f.fill(from + n)
		return
	}
	if room := n - 1; len(past) > room {
		past = past[len(past)-room:]
	}
	word := f.at.Level.Word()
	wide, rest := len(word), len("  DEGRADED")
	for i := range past {
		wide = max(wide, termtext.Width(printable(rowName(&past[i].Level))))
	}
	for _, c := range levelColumns {
		rest += c.wide
	}
	wide = min(wide, max(f.Wide-2*margin-rest, 8))
	head := f.line().Add(termtext.Plain, word).To(margin + wide + 1)
	for _, c := range levelColumns {
		head.Add(termtext.Plain, fmt.Sprintf("%*s", c.wide, c.name))
	}
	f.put(head.Add(termtext.Plain, "  verdict"))
	for i := range past {
		l := f.line().Add(termtext.Plain, termtext.Cut(printable(rowName(&past[i].Level)), wide)).To(margin + wide + 1)
		for _, c := range levelColumns {
			l.Add(termtext.Plain, fmt.Sprintf("%*s", c.wide, c.of(&past[i])))
		}
		f.put(l.Add(termtext.Plain, "  ").Add(severityStyle(past[i].Verdict), string(past[i].Verdict)))
	}
	f.fill(from + n)
}

// notes shows the last messages at the bottom.
func (f *frame) notes(n int) {
	notes := f.at.Notes
	for _, note := range notes[max(0, len(notes)-max(n, 0)):] {
		f.put(f.line().Add(termtext.Dim, note))
	}
}

// Keys are the keys of the view with their meaning.
var Keys = []struct{ Key, Name, Meaning string }{
	{"?", "help", "show or hide this help"},
	{"h", "histogram", "show the histograms of TTFT and ITL instead of the levels; a high screen shows both"},
	{"n", "next level", "end this level now, as --max-seconds would: requests in flight finish, and the report says so"},
	{"p", "pause", "pause before the next level, and continue. A level is never paused: requests that become due would be missing from its load"},
	{"q", "quit", "end the run and print its report, as Ctrl-C does"},
}

// keys is the last line.
func (f *frame) keys() *termtext.Line {
	l := f.line()
	wide := 0
	if f.Pause {
		const pause = "PAUSE before the next level, p continues  "
		l.Add(termtext.Yellow, pause)
		wide = len(pause)
	}
	for _, k := range Keys {
		wide += len(k.Key + " " + k.Name + "  ")
	}
	for _, k := range Keys {
		l.Add(termtext.Bold, k.Key)
		if wide <= f.Wide-margin {
			l.Add(termtext.Dim, " "+k.Name)
		}
		l.Add(termtext.Plain, "  ")
	}
	return l
}

// help explains the keys in n lines.
func (f *frame) help(n int) {
	from := len(f.lines)
	for _, k := range Keys {
		for i, text := range termtext.Wrap(k.Meaning, max(f.Wide-names-margin, 1)) {
			l := f.line()
			if i == 0 {
				l.Add(termtext.Bold, k.Key)
			}
			f.put(l.To(names).Add(termtext.Plain, text))
		}
	}
	for _, text := range termtext.Wrap("Sparklines begin at 0; the number beside them is their largest value. Latencies are p99 of half a second.", max(f.Wide-names-margin, 1)) {
		f.put(f.line().To(names).Add(termtext.Plain, text))
	}
	f.lines = f.lines[:max(min(len(f.lines), from+n), 0)]
}
