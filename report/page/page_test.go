package page_test

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/report/page"
	"github.com/tacho-bench/tacho/stat"
)

// A view is the part of the data that tests read.
type view struct {
	Runs []struct {
		Command    string                `json:"command"`
		Conclusion conclusion.Conclusion `json:"conclusion"`
		LeftOut    int                   `json:"left_out"`
		Levels     []struct {
			Picture struct {
				Curves map[string]struct {
					Values []float64 `json:"values"`
					Counts []int     `json:"counts"`
				} `json:"curves"`
				Bins struct {
					WidthS float64     `json:"width_s"`
					Asked  []float64   `json:"asked"`
					Served []float64   `json:"served"`
					Failed []int       `json:"failed"`
					Tokens []float64   `json:"tokens"`
					Flight []float64   `json:"flight"`
					TTFT   [][]float64 `json:"ttft"`
					ITL    [][]float64 `json:"itl"`
				} `json:"bins"`
				Server map[string]struct {
					T, Low, High []float64
				} `json:"server"`
				Rows  [][]any `json:"rows"`
				Every int     `json:"every"`
			} `json:"picture"`
		} `json:"levels"`
	} `json:"runs"`
	Code struct {
		Letters    string
		Base, Step float64
	} `json:"gap_code"`
}

// Curves, time bins and rows agree with the records.
func TestPictureIsTheRecords(t *testing.T) {
	lists := levels()
	var v view
	data(t, write(t, measured(about, lists...)), &v)
	if len(v.Runs) != 1 || len(v.Runs[0].Levels) != len(lists) {
		t.Fatal("levels are missing")
	}
	for i, list := range lists {
		p := &v.Runs[0].Levels[i].Picture
		var itl []float64
		tokens, failed := 0.0, 0
		for _, r := range list {
			metric.ITL.Of(r, func(v float64) { itl = append(itl, v) })
			tokens += float64(r.Output)
			if !r.OK() {
				failed++
			}
		}
		sample := stat.New(itl)
		curve := p.Curves["itl"]
		if !near(curve.Values[0], sample.Min()) || !near(curve.Values[len(curve.Values)-1], sample.Max()) || !near(curve.Values[60], sample.Quantile(0.45)) {
			t.Errorf("level %d: the curve of ITL differs from its gaps", i)
		}
		if got := sum(curve.Counts); got != len(itl) {
			t.Errorf("level %d: the histogram has %d gaps of %d", i, got, len(itl))
		}
		b := &p.Bins
		if got := total(b.Tokens) * b.WidthS; math.Abs(got-tokens) > 1 {
			t.Errorf("level %d: %.1f tokens over time, want %.0f", i, got, tokens)
		}
		if got := total(b.Asked) * b.WidthS; math.Abs(got-float64(len(list))) > 0.1 {
			t.Errorf("level %d: %.2f requests asked, want %d", i, got, len(list))
		}
		if got := sum(b.Failed); got != failed {
			t.Errorf("level %d: %d failures over time, want %d", i, got, failed)
		}
		checkRows(t, v.Code.Letters, p.Rows, list)
	}
	if got := v.Runs[0].Levels[0].Picture.Server["running"]; got.High[2] != 6 || got.T[2] != 2 {
		t.Errorf("readings of the server: %v", got)
	}
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

func total(list []float64) (n float64) {
	for _, v := range list {
		n += v
	}
	return n
}

// checkRows compares the rows of the timeline with the requests, in order of sending.
func checkRows(t *testing.T, letters string, rows [][]any, list []*tacho.Record) {
	t.Helper()
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *tacho.Record) int { return cmp.Compare(a.Sent, b.Sent) })
	if len(rows) != len(list) {
		t.Fatalf("%d rows of %d requests", len(rows), len(list))
	}
	for i, r := range list {
		row, at := rows[i], func(d time.Duration) float64 { return math.Round(float64(d) / 1e4) }
		if row[0] != at(r.Sent) || row[5] != at(r.End-r.Sent) || row[6] != float64(r.Input) || row[7] != float64(r.Output) || row[8] != float64(len(r.Events)) {
			t.Errorf("row %d is %v, want sent %v, input %d, output %d", i, row, r.Sent, r.Input, r.Output)
		}
		if r.OK() == (len(row) == 11) {
			t.Errorf("row %d: failed %v, row %v", i, !r.OK(), row)
		}
		if r.OK() && (row[3] != at(r.First()-r.Sent) || row[4] != at(r.Last()-r.Sent)) {
			t.Errorf("row %d: first and last token at %v, %v", i, row[3], row[4])
		}
		if r.OK() {
			checkGaps(t, letters, row[9].(string), r.Events)
		}
	}
}

// checkGaps decodes letters and checks that each gap is within 17 %.
func checkGaps(t *testing.T, letters, code string, events tacho.Events) {
	t.Helper()
	var gaps []float64
	for i := 0; i < len(code); {
		letter, n, digits := code[i], 0, false
		for i++; i < len(code) && code[i] >= '0' && code[i] <= '9'; i++ {
			n, digits = n*10+int(code[i]-'0'), true
		}
		if !digits {
			n = 1
		}
		for range n {
			gaps = append(gaps, 0.5*math.Pow(1.16, float64(strings.IndexByte(letters, letter))))
		}
	}
	if len(gaps) != len(events)-1 {
		t.Fatalf("%d gaps of %d events in %q", len(gaps), len(events), code)
	}
	for i, g := range gaps {
		if want := float64(events[i+1].At-events[i].At) / 1e6; math.Abs(g-want) > 0.17*want {
			t.Errorf("gap %d is %.2f ms, want %.2f", i, g, want)
		}
	}
}

// A page of many requests is within its size, states its sampling, counts every failure
// and shows the outlier.
func TestManyRequests(t *testing.T) {
	const n, failing = 30_000, 50
	html := write(t, large(n, failing))
	if len(html) > page.MostBytes {
		t.Errorf("%d bytes", len(html))
	}
	var v view
	data(t, html, &v)
	p := &v.Runs[0].Levels[0].Picture
	if p.Every < 2 || len(p.Rows) < 1000 || len(p.Rows) > n/p.Every+2000 {
		t.Errorf("one in %d, %d rows", p.Every, len(p.Rows))
	}
	failures, slowest := 0, 0.0
	for _, r := range p.Rows {
		if len(r) == 11 {
			failures++
		}
		slowest = max(slowest, r[5].(float64))
	}
	if failures != n/failing || sum(p.Bins.Failed) != n/failing || slowest < 3_000_000 {
		t.Errorf("%d rows and %d of the strip failed, of %d; the slowest is %v", failures, sum(p.Bins.Failed), n/failing, slowest)
	}
}

// The size of a page is bounded for any run, and text from outside stays inside the
// data.
func TestPagesAreShort(t *testing.T) {
	run := measured(about, requests(0, 50, 10, 2))
	long := strings.Repeat(hostile, 5_000_000/len(hostile))
	run.Name, run.Model, run.Label, run.Dataset, run.Args = long, long, long, long, []string{long}
	for i := range 300 {
		l := run.Levels[0]
		l.Setting = outcome.Setting{Index: i, Name: long[:10_000], Value: long[:10_000]}
		l.Summary.Failures = []metric.FailureGroup{{Cause: tacho.Status, Count: 1, Example: long[:100_000]}}
		for k := range 1000 {
			l.Summary.Groups = append(l.Summary.Groups, metric.Group{By: long[:k], Value: long[:10_000], Dists: l.Summary.Dists})
		}
		run.Levels = append(run.Levels, l)
	}
	html := write(t, run)
	if len(html) > page.MostBytes {
		t.Errorf("%d bytes", len(html))
	}
	for _, tag := range []string{"<script", "</script", "<img"} {
		want := map[string]int{"<script": 2, "</script": 2}[tag]
		if got := bytes.Count(html, []byte(tag)); got != want {
			t.Errorf("%d times %s, want %d", got, tag, want)
		}
	}
	var v view
	data(t, html, &v)
	if v.Runs[0].LeftOut != 301-120 || v.Runs[0].Command != "" {
		t.Errorf("%d levels left out, command of %d bytes", v.Runs[0].LeftOut, len(v.Runs[0].Command))
	}
}

func TestAnswer(t *testing.T) {
	var v view
	data(t, write(t, measured(about, levels()...)), &v)
	r := &v.Runs[0]
	if r.Command != `tacho bench --request-rate 10,20,30 --metadata 'note=it'\''s fine'` {
		t.Errorf("command %s", r.Command)
	}
	for _, word := range []string{"req/s", "TTFT", "10 of 360 requests failed (2.78 %)"} {
		if !strings.Contains(strings.Join(r.Conclusion.Text, " "), word) {
			t.Errorf("no %q in %q", word, r.Conclusion.Text)
		}
	}
	repeats := measured(about, levels()...)
	for i := range repeats.Levels {
		l := &repeats.Levels[i]
		l.Name, l.Value, l.Repeat = "repeat "+strconv.Itoa(i+1), "", i+1
	}
	data(t, write(t, repeats), &v)
	if got := strings.Join(v.Runs[0].Conclusion.Text, " "); !strings.Contains(got, " in 3 repeats, ") || strings.Contains(got, "repeat 1") || !strings.Contains(got, " to ") {
		t.Errorf("conclusion of three repeats: %q", got)
	}
	data(t, write(t, outcome.Run{Levels: []outcome.Level{{}}}), &v)
	if got := v.Runs[0].Conclusion.Text; len(got) != 1 || got[0] != "Nothing was measured." {
		t.Errorf("conclusion without levels: %q", got)
	}
}
