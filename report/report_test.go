package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

const ms = time.Millisecond

// hostile is a malicious name or message from a server or a user.
const hostile = "=cmd|'/c calc'!A1 %s%n \x1b[31mred\x1b[0m\r\nline two\t<script>alert(1)</script> \u202egnitirw \xff\xfe \x00, \"end\""

// records returns n requests, one every 50 ms. Requests have 1 to 5 tokens in turn.
func records(n int) []*tacho.Record {
	var list []*tacho.Record
	for i := range n {
		r := &tacho.Record{Session: uint64(i), Timeline: tacho.NewTimeline(time.Duration(i) * 50 * ms), Input: 100, Asked: 5}
		r.Slot, r.Start, r.Conn = r.Due, r.Due+ms/10, r.Due+ms/5
		r.Sent, r.Wrote, r.Head = r.Due+ms/4, r.Due+ms/2, r.Due+20*ms
		r.Clock, r.Conns = tacho.KernelClock, 1
		at := r.Sent + 25*ms + time.Duration(i%7)*ms
		for j := range 1 + i%5 {
			r.Events = append(r.Events, tacho.Event{At: at, ReadLag: int32(20_000 + 1000*j), Tokens: 1})
			at += 10*ms + time.Duration(j)*ms
		}
		r.End = r.Last() + 1*ms
		r.Output, r.OutputFrom, r.Text = 1+i%5, tacho.FromUsage, fmt.Sprintf("text %d", i)
		r.Usage = &tacho.Usage{Prompt: 100 + i%2, Completion: r.Output}
		list = append(list, r)
	}
	return list
}

func summarize(c metric.Config, list []*tacho.Record) metric.Summary {
	a := metric.Accumulator{Goodput: c.Goodput}
	for _, r := range list {
		if err := a.Add(r); err != nil {
			panic(err)
		}
	}
	return a.Summary(c)
}

// healthyStage is a level of a healthy server.
func healthyStage() outcome.Level {
	c := metric.DefaultConfig()
	c.RequestRate = 20
	return outcome.Level{Setting: outcome.Setting{Name: "rate 20", Value: "20"}, Summary: summarize(c, records(400))}
}

// fullStage is a level with every row of the classic block.
func fullStage() outcome.Level {
	c := metric.Config{
		RequestRate: 20, Burstiness: 1, MaxConcurrency: 64,
		Goodput:     []metric.SLO{{Metric: "ttft", LimitMillis: 28}},
		Percentiles: []float64{99.9, 50}, Metrics: []string{"e2el", "ttft", "itl", "tpot", "client_queue_time", "e2el_including_client_queue"},
	}
	list := records(40)
	for _, r := range list {
		r.AudioS = 12.5
	}
	s := summarize(c, list)
	s.Probe = &metric.Probe{Completed: 5, Failed: 1, MedianMillis: 12.345, P99Millis: 20, MaxMillis: 21}
	return outcome.Level{Setting: outcome.Setting{Name: "full", Value: "20"}, Summary: s}
}

// sickStage is a level of failures with hostile messages, and few successes.
func sickStage() outcome.Level {
	list := records(12)
	for i, r := range list[2:] {
		r.Events = nil
		r.Failure = &tacho.Failure{Cause: tacho.Status, Status: 500, Message: hostile}
		if i > 5 {
			r.Failure = &tacho.Failure{Cause: tacho.Canceled, Message: "stopped"}
		}
	}
	c := metric.DefaultConfig()
	c.Interrupted = true
	return outcome.Level{Setting: outcome.Setting{Name: hostile, Value: hostile}, Summary: summarize(c, list)}
}

// emptyStage is a level without requests.
func emptyStage() outcome.Level {
	return outcome.Level{Setting: outcome.Setting{Name: "nothing", Value: "0"}, Summary: summarize(metric.DefaultConfig(), nil)}
}

// of returns a report of one run.
func of(levels ...outcome.Level) *report.Report {
	return &report.Report{Runs: []outcome.Run{{Levels: levels}}}
}

var about = outcome.About{
	Name: "20250102-030405-vllm", Tool: "tacho", Version: "v1", Began: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Varies: "req/s",
	Backend: "vllm", Model: "tiny", Dataset: "random", URLs: []string{"http://127.0.0.1:8000"}, GPUs: "8 x MI300X",
}

var reports = map[string]*report.Report{
	"one":  of(healthyStage()),
	"many": {Runs: []outcome.Run{{About: about, Levels: []outcome.Level{healthyStage(), fullStage(), sickStage(), emptyStage()}}}},
	"runs": {Runs: []outcome.Run{{About: about, Levels: []outcome.Level{healthyStage()}}, {About: outcome.About{Name: "other", Model: "small"}, Levels: []outcome.Level{healthyStage(), emptyStage()}}}},
}

func render(t testing.TB, format string, r *report.Report) string {
	t.Helper()
	f := must.Get(report.FormatNamed(format))(t)
	var b bytes.Buffer
	must.Do(t, f.Render(&b, r))
	return b.String()
}

// golden compares got with testdata/name.golden, or rewrites the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-%s +got (run with -update to accept)\n%s", path, diff)
	}
}

func TestFormats(t *testing.T) {
	for _, f := range report.Formats {
		if f.Name == "parquet" || f.Name == "html" { // covered by their own tests
			continue
		}
		for name, r := range reports {
			t.Run(f.Name+" "+name, func(t *testing.T) { golden(t, name+"."+f.Name, render(t, f.Name, r)) })
		}
	}
}

// A load may be infinite. Every format shows it.
func TestInfiniteLoad(t *testing.T) {
	var levels []outcome.Level
	for _, rate := range []string{"1", "2", "inf"} {
		l := healthyStage()
		l.Name = "--request-rate " + rate
		levels = append(levels, l)
	}
	for _, f := range report.Formats {
		text := render(t, f.Name, of(levels...))
		if strings.Contains(text, "--request-rate 2") && !strings.Contains(text, "--request-rate inf") {
			t.Errorf("%s lacks the infinite load:\n%s", f.Name, text)
		}
	}
}

// Each style matches its golden file, with all rows and with only the required ones.
func TestStyles(t *testing.T) {
	for _, style := range report.Styles {
		r := of(fullStage(), healthyStage())
		r.Style = style.Name
		text := render(t, "classic", r)
		golden(t, "style-"+style.Name, text)
		for _, alias := range style.Aliases {
			r.Style = alias
			if got := render(t, "classic", r); got != text {
				t.Errorf("style %s is not %s", alias, style.Name)
			}
		}
		f := parse(t, text)
		if len(f.Notes) != 0 || f.String() != text {
			t.Errorf("style %s: we do not read our own block: %v", style.Name, f.Notes)
		}
		for _, b := range f.Blocks {
			if b.Style() != style.Name {
				t.Errorf("style %s at line %d is taken for %q", style.Name, b.Line, b.Style())
			}
		}
	}
}

func TestUnknownNames(t *testing.T) {
	var names []string
	for _, f := range report.Formats {
		names = append(names, f.Name)
	}
	_, err := report.FormatNamed("pdf")
	if want := `unknown format "pdf" (have ` + strings.Join(names, ", ") + ")"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := report.FileFormatNamed("pdf"); err == nil {
		t.Error("pdf is a file format")
	}
	for _, format := range []string{"text", "classic"} {
		f, err := report.FormatNamed(format)
		must.Do(t, err)
		err = f.Render(&bytes.Buffer{}, &report.Report{Style: "1999"})
		if want := `unknown report style "1999" (have 2024, old, 2025-09, 2025-10, 2025-12, current)`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Strings from outside cannot control the terminal or break lines. They stay strings in
// JSON and in a spreadsheet.
func TestHostileStrings(t *testing.T) {
	strange := func(word string) *report.Report {
		r := of(sickStage(), sickStage())
		r.Runs[0].About = outcome.About{Name: word, Model: word, Dataset: word, URLs: []string{word}, Varies: word}
		return r
	}
	r := strange(hostile)
	text := render(t, "text", r)
	for i, c := range text {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("text has %q at %d", c, i)
		}
	}
	if strings.Contains(text, "\nline two") || !strings.Contains(text, `%s%n \x1b[31mred`) {
		t.Errorf("message not shown escaped on one line:\n%s", text)
	}
	lines := strings.Count(text, "\n")
	tame := strange("x")
	for i := range tame.Runs[0].Levels {
		l := &tame.Runs[0].Levels[i]
		l.Name, l.Value, l.Summary.Failures[0].Example = "x", "x", "x"
	}
	if want := strings.Count(render(t, "text", tame), "\n"); lines != want {
		t.Errorf("%d lines with hostile strings, %d with tame ones", lines, want)
	}

	var decoded report.Report
	must.Do(t, json.Unmarshal([]byte(render(t, "json", r)), &decoded))
	if want := strings.ToValidUTF8(hostile, "\ufffd\ufffd"); decoded.Runs[0].Levels[0].Summary.Failures[0].Example != want {
		t.Errorf("JSON has %q, want %q", decoded.Runs[0].Levels[0].Summary.Failures[0].Example, want)
	}
	if strings.Contains(render(t, "json", r), "<script") {
		t.Error("JSON may not be put in a page")
	}

	table := must.Get(csv.NewReader(strings.NewReader(render(t, "csv", r))).ReadAll())(t)
	if !strings.HasPrefix(table[1][0], "'=cmd") {
		t.Errorf("the spreadsheet would run %q", table[1][0])
	}
}

// A long message does not fill the screen.
func TestLongMessagesAreCut(t *testing.T) {
	stage := sickStage()
	stage.Summary.Failures[0].Example = strings.Repeat("x", 100_000)
	text := render(t, "text", of(stage))
	if len(text) > 5000 || !strings.Contains(text, "xxx...") {
		t.Errorf("%d bytes of report", len(text))
	}
}

// A report in JSON decodes to the same report.
func TestJSONRoundTrip(t *testing.T) {
	r := of(fullStage(), emptyStage())
	r.Runs[0].About = about
	var decoded report.Report
	must.Do(t, json.Unmarshal([]byte(render(t, "json", r)), &decoded))
	if diff := cmp.Diff(*r, decoded, cmpopts.IgnoreUnexported(metric.Summary{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// withRecords returns a report of one level with its records.
func withRecords(level outcome.Level) *report.Report {
	level.Records = func() iter.Seq2[*tacho.Record, error] { return each(records(400)) }
	r := of(level)
	r.Runs[0].About = about
	return r
}

// A failing writer accepts left bytes and then fails.
type failing struct{ left int }

var errFull = errors.New("disk full")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// Every format returns the error of its writer.
func TestWriteErrors(t *testing.T) {
	file := parse(t, readSeed(t, seeds[0].file))
	for _, left := range []int{0, 100} {
		for _, f := range report.Formats {
			if err := f.Render(&failing{left}, reports["many"]); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: got %v", f.Name, left, err)
			}
		}
		for _, f := range report.FileFormats {
			if err := f.Render(&failing{left}, file); !errors.Is(err, errFull) {
				t.Errorf("file %s after %d bytes: got %v", f.Name, left, err)
			}
		}
		if err := vllmResult().Write(&failing{left}); !errors.Is(err, errFull) {
			t.Errorf("vLLM result after %d bytes: got %v", left, err)
		}
	}
}

// If events have several tokens, ITL is the gap between events and the report shows the
// gap per token beside it. vLLM's peak counts events and is below the mean.
func TestMergedTokensAreShown(t *testing.T) {
	list := records(40)
	for _, r := range list {
		r.Output *= 3
		r.Usage.Completion = r.Output
		for i := range r.Events {
			r.Events[i].Tokens = 0
		}
	}
	text := render(t, "text", of(outcome.Level{Summary: summarize(metric.DefaultConfig(), list)}))
	for _, want := range []string{
		"Tokens per event p50/p99/max:            3.00 / 3.00 / 3.00\n",
		"Gap by event p50/p99/max (ms):           11.00 / 13.00 / 13.00\n",
		"Gap by token p50/p99/max (ms):           3.67 / 4.33 / 4.33\n",
		"Peak output in any second (tok/s):       183.00 (vLLM reports 60: it counts events in fixed seconds)\n",
		"tokens-per-event: the server counted 3 tokens per event",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := render(t, "text", reports["one"]); strings.Contains(text, "Gap by") {
		t.Error("gaps by event and by token although they are equal")
	}
}

// The report of a burst or a closed loop shows no scheduled rate, because there is no schedule.
func TestNoScheduledRateWithoutASchedule(t *testing.T) {
	closed := metric.DefaultConfig()
	closed.MaxConcurrency = 1

	list := records(40)
	for _, r := range list {
		r.Due = 0
	}
	for what, test := range map[string]struct {
		config metric.Config
		list   []*tacho.Record
		want   bool
	}{"burst": {metric.DefaultConfig(), list, false}, "closed loop": {closed, records(40), false}, "rate": {metric.DefaultConfig(), records(40), true}} {
		text := render(t, "text", of(outcome.Level{Summary: summarize(test.config, test.list)}))
		if strings.Contains(text, "Request rate scheduled/sent") != test.want {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}

// Text, Markdown, JSON and rows of repeats show how far repeated levels differ.
func TestRepeatsShown(t *testing.T) {
	run := outcome.Run{About: outcome.About{Name: "runs/a|b"}}
	for i := range 3 {
		l := healthyStage()
		l.Repeat, l.Name = i+1, fmt.Sprintf("repeat %d", i+1)
		l.Coordinates = outcome.Coordinates{{Name: "request-rate", Value: "20"}}
		run.Levels = append(run.Levels, l)
	}
	for format, want := range map[string][]string{
		"text":     {"Between repeats, request-rate 20:", "mean TTFT (ms)", "the difference is random variation"},
		"levels":   {"Between repeats, request-rate 20:"},
		"markdown": {"Between repeats, request-rate 20:", "| mean TTFT (ms) | 27.99 | 27.99 to 27.99 |"},
		"json":     {`"repeats": [`, `"figure": "mean TTFT"`},
		"csv":      {"run,level,figure,unit,runs,mean", "request-rate 20,mean TTFT,ms,3,"},
	} {
		f := must.Get(report.FormatNamed(format))(t)
		r := &report.Report{Runs: []outcome.Run{run}}
		if format == "csv" {
			r.Rows = "repeat"
		}
		var b strings.Builder
		must.Do(t, f.Render(&b, r))
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s has no %q:\n%s", format, text, b.String())
			}
		}
	}
}
