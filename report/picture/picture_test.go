package picture_test

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/report/picture"
)

// swept returns a run of a closed loop whose third level misses its SLO. A limit of 0 is
// no SLO.
func swept(name string, limit float64, verdict metric.Severity) outcome.Run {
	run := outcome.Run{About: outcome.About{Model: "tiny", Label: name}}
	for i, users := range []int{1, 8, 64} {
		ttft := []float64{20, 80, 900}[i]
		s := metric.Summary{
			Counts:     metric.Counts{Requests: 400, Completed: 400, DurationS: 10},
			Throughput: &metric.Throughput{RequestsPerS: float64(10 * (i + 1)), OutputTokensPerS: 500},
			Verdict:    metric.Verdict{Severity: verdict, Reasons: []metric.Reason{{Code: "x", Severity: verdict, Text: "the clock moved"}}},
		}
		if limit > 0 {
			s.Config.Goodput = []metric.SLO{{Metric: "ttft", LimitMillis: limit}}
			s.Throughput.GoodPerS = new([]float64{10, 20, 1}[i])
		}
		for _, m := range metric.All {
			d := metric.Dist{Name: m.Name, N: 400}
			if m == metric.TTFT {
				d.Stats = &metric.Stats{Median: ttft / 2, Max: 2 * ttft, Percentiles: []metric.Percentile{{P: 99, Value: ttft}}}
			}
			s.Dists = append(s.Dists, d)
		}
		l := outcome.Level{Summary: s}
		l.Name = fmt.Sprintf("--max-concurrency %d", users)
		run.Levels = append(run.Levels, l)
	}
	return run
}

var (
	limitRed = color.RGBA{0xb3, 0x12, 0x3f, 255}
	firstRun = color.RGBA{0x1c, 0x5d, 0x9f, 255}
	secondRn = color.RGBA{0x96, 0x66, 0x0f, 255}
	tailP99  = color.RGBA{0x8a, 0x2f, 0x6d, 255}
)

// drawn returns the picture of runs, and the number of pixels of a colour.
func drawn(t *testing.T, runs ...outcome.Run) (file []byte, pixels func(color.RGBA) int) {
	t.Helper()
	var b bytes.Buffer
	if err := picture.Write(&b, runs); err != nil {
		t.Fatal(err)
	}
	file = bytes.Clone(b.Bytes())
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != 1600 || size.Y != 900 {
		t.Errorf("the picture is %v", size)
	}
	return file, func(want color.RGBA) (n int) {
		for y := range 900 {
			for x := range 1600 {
				if color.RGBAModel.Convert(img.At(x, y)) == want {
					n++
				}
			}
		}
		return n
	}
}

// A picture has the lines of its runs, the SLO and the sentence, and the same bytes each
// time.
func TestPicture(t *testing.T) {
	run := swept("a", 100, metric.Valid)
	file, pixels := drawn(t, run)
	if again, _ := drawn(t, run); !bytes.Equal(file, again) {
		t.Error("two pictures of one run differ")
	}
	if want := conclusion.Of(&run).Headline.Sentence; !bytes.Contains(file, []byte(want)) {
		t.Errorf("the description lacks %q", want)
	}
	for name, c := range map[string]struct {
		colour color.RGBA
		least  int
	}{"p50": {firstRun, 2000}, "p99": {tailP99, 1000}, "the SLO": {limitRed, 500}} {
		if n := pixels(c.colour); n < c.least {
			t.Errorf("%s has %d pixels", name, n)
		}
	}
	if _, pixels := drawn(t, swept("a", 0, metric.Valid)); pixels(limitRed) != 0 {
		t.Error("a picture without an SLO has its line")
	}
	if _, pixels := drawn(t, swept("a", 100, metric.Valid), swept("b", 0, metric.Valid)); pixels(firstRun) < 200 || pixels(secondRn) < 1000 || pixels(limitRed) != 0 {
		t.Error("a picture of two runs lacks a line, or has the SLO of one")
	}
}

// A run of one level shows percentiles, and an INVALID run no chart.
func TestPictureWithoutLoads(t *testing.T) {
	one := swept("a", 0, metric.Valid)
	one.Levels = one.Levels[:1]
	if _, pixels := drawn(t, one); pixels(firstRun) < 10_000 {
		t.Error("the picture of one level has no bars")
	}
	file, pixels := drawn(t, swept("a", 100, metric.Invalid))
	if pixels(firstRun)+pixels(tailP99) != 0 || !bytes.Contains(file, []byte("INVALID: nothing can be concluded")) {
		t.Error("an INVALID run has a chart")
	}
	if file, _ := drawn(t); len(file) == 0 {
		t.Error("no runs, no picture")
	}
}

// Names from outside have any length and any characters.
func TestPictureOfHostileNames(t *testing.T) {
	run := swept(strings.Repeat("\x1b[31m\u202e<b>", 10_000), 100, metric.Valid)
	run.Dataset = run.Label
	many := make([]outcome.Run, 6)
	for i := range many {
		many[i] = run
	}
	file, _ := drawn(t, many...)
	description, _, _ := bytes.Cut(file, []byte("IDAT"))
	if bytes.Contains(description, []byte("\x1b[")) {
		t.Error("the description has a control character")
	}
}
