package conclusion_test

import (
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// The headline is about the recommended level, and has no numbers if no level supports a
// conclusion.
func TestHeadline(t *testing.T) {
	const ok, bad = metric.Valid, metric.Invalid
	for name, c := range map[string]struct {
		levels []tried
		level  int // -1 if there is none
		held   bool
		want   []conclusion.Number
	}{
		"held": {
			[]tried{{1, 10, 50, 200, 1, ok}, {2, 20, 90, 200, 1, ok}, {4, 40, 100, 200, 1, ok}, {8, 41, 900, 200, 0.2, ok}},
			2, true,
			[]conclusion.Number{{Label: "Load held", Value: "4", Unit: "concurrent requests"}, {Label: "Output", Value: "800", Unit: "tokens/s"}, {Label: "TTFT p99", Value: "100", Unit: "ms"}},
		},
		"INVALID levels do not count": {
			[]tried{{1, 10, 50, 200, 1, bad}, {2, 20, 1500, 20, 1, ok}, {4, 40, 1600, 200, 1, bad}},
			1, false,
			[]conclusion.Number{{Label: "Served", Value: "20", Unit: "requests/s"}, {Label: "Output", Value: "400", Unit: "tokens/s"}, {Label: "TTFT max", Value: "1.5", Unit: "s"}},
		},
		"no load holds": {[]tried{{1, 10, 800, 200, 0.2, ok}, {2, 20, 900, 200, 0.1, ok}}, -1, false, nil},
		"all INVALID":   {[]tried{{1, 10, 50, 200, 1, bad}, {2, 20, 90, 200, 1, bad}}, -1, false, nil},
		"nothing":       {nil, -1, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var run outcome.Run
			for _, l := range c.levels {
				run.Levels = append(run.Levels, l.level())
			}
			got := conclusion.Of(&run)
			h := &got.Headline
			level := -1
			if h.Load != nil {
				level = h.Load.Level
			}
			if h.Sentence != got.Text[0] || level != c.level || h.Held != c.held {
				t.Errorf("level %d, held %v, %q; want level %d, held %v, %q", level, h.Held, h.Sentence, c.level, c.held, got.Text[0])
			}
			if diff := gocmp.Diff(c.want, h.Numbers()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The page, JSON and Markdown have the numbers of the same headline.
func TestAllPlacesHaveTheHeadline(t *testing.T) {
	withNumbers := 0
	for _, one := range measured() {
		h := conclusion.Of(&one.run).Headline
		var page struct {
			Runs []struct {
				Numbers []conclusion.Number `json:"numbers"`
			} `json:"runs"`
		}
		_, rest, _ := strings.Cut(render(t, "html", &one.run), `<script type="application/json" id="data">`)
		text, _, _ := strings.Cut(rest, "</script>")
		must.Do(t, json.Unmarshal([]byte(text), &page))
		if diff := gocmp.Diff(h.Numbers(), page.Runs[0].Numbers); diff != "" {
			t.Errorf("%s: the page: %s", one.name, diff)
		}
		var doc struct {
			Runs []struct {
				Conclusion conclusion.Conclusion `json:"conclusion"`
			} `json:"runs"`
		}
		must.Do(t, json.Unmarshal([]byte(render(t, "json", &one.run)), &doc))
		if diff := gocmp.Diff(h, doc.Runs[0].Conclusion.Headline); diff != "" {
			t.Errorf("%s: JSON: %s", one.name, diff)
		}
		markdown := render(t, "markdown", &one.run)
		for _, n := range h.Numbers() {
			withNumbers++
			if want := n.Label + " **" + n.Value + " " + n.Unit + "**"; !strings.Contains(markdown, want) {
				t.Errorf("%s: Markdown has no %q", one.name, want)
			}
		}
	}
	if withNumbers == 0 {
		t.Error("no run has numbers")
	}
}
