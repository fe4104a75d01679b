package termtext

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "größe": 5, "日本": 4, "e\u0301": 1, "▁█": 2, "👩": 2, "ｱ": 1, "，": 2, "🇩🇪": 2,
		"👍🏽": 2, "👨\u200d👩\u200d👧\u200d👦": 2, "❤\ufe0f": 2, "⚠\ufe0f": 2, "a\u200bb": 2, "\u1112\u1161\u11ab": 2,
	} {
		if got := Width(text); got != want {
			t.Errorf("Width(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "longe"},
		{"much longer", 8, "much ..."},
		{"日本日本日本", 8, "日本..."},
		{"日本日本日本", 1, ""},
		{"abc", 0, ""},
		{"abc", -3, ""},
		{"👍🏽👍🏽👍🏽👍🏽", 7, "👍🏽👍🏽..."},
		{"👍🏽👍🏽", 3, "👍🏽"},
	} {
		if got := Cut(c.text, c.most); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// A line is never wider than its limit and contains no control characters.
func TestLine(t *testing.T) {
	if err := quick.Check(func(texts []string, most uint8) bool {
		l := Line{Most: int(most)}
		for i, text := range texts {
			if l.Add(Plain, text); i%2 == 1 {
				l.To(int(most)/2).Right(Plain, "end")
			}
		}
		return Width(l.String()) <= int(most) && !strings.ContainsAny(l.String(), "\x1b\n\r\x07")
	}, nil); err != nil {
		t.Error(err)
	}
	heart := Line{Most: 1}
	if got := heart.Add(Plain, "❤").Add(Plain, "\ufe0f").String(); got != "❤" {
		t.Errorf("a mark makes the line too wide: %q", got)
	}
	l := Line{Most: 6, Colour: true}
	if got := l.Add(Red, "ab").Add(Plain, "cdefgh").String(); got != "\x1b[1;31mab\x1b[0mcdef" {
		t.Errorf("%q", got)
	}
}

func TestSpark(t *testing.T) {
	got := Pen{}.Spark([]float64{9, 0, 1, 2, math.NaN(), 4, 8}, 6, 1)
	if want := "▁▁▂ ▄█"; got[0] != want {
		t.Errorf("got %q, want %q", got[0], want)
	}
	high := Pen{}.Spark([]float64{0, 1, 2, 3, 4}, 10, 2)
	if strings.Join(high, "\n") != "   ▄█\n▁▄███" {
		t.Errorf("%q", high)
	}
	if got := (Pen{ASCII: true}).Spark([]float64{0, 0}, 5, 1)[0]; got != ".." {
		t.Errorf("zeros are drawn as %q, want %q", got, "..")
	}
}

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{-1: "----", 0: "----", 0.5: "##--", 0.99: "###-", 1: "####", 7: "####"} {
		if got := (Pen{ASCII: true}).Bar(share, 4); got != want {
			t.Errorf("Bar(%v) = %q, want %q", share, got, want)
		}
	}
}

func TestPlot(t *testing.T) {
	integer := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
	p := Plot{Title: "served", X: []float64{1, 2, 4, 8}, Y: []float64{10, 20, 30, 30}, Mark: new(4.0), Name: "knee", Show: integer, ShowX: integer}
	got := strings.Join(Pen{}.Plot(&p, 30, 8), "\n")
	want := strings.Join([]string{
		"served",
		"30 │        ···●·············●",
		"   │   ·●···   ┊              ",
		"   │ ··        ┊              ",
		"   │●          ┊              ",
		" 0 │           ┊              ",
		"   └──────────────────────────",
		"    1       4 knee           8",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if (Pen{}).Plot(&p, 8, 8) != nil {
		t.Error("a plot was drawn in too few columns")
	}
	endless := p
	endless.X, endless.Y = append(slices.Clone(p.X), math.Inf(1), 9), append(slices.Clone(p.Y), 5, math.NaN())
	if drawn := strings.Join(Pen{}.Plot(&endless, 30, 8), "\n"); drawn != want {
		t.Errorf("points without a place change the plot:\n%s", drawn)
	}
	if none := (Plot{X: []float64{math.Inf(1)}, Y: []float64{1}, Show: integer, ShowX: integer}); (Pen{}).Plot(&none, 30, 8) != nil {
		t.Error("a plot without points was drawn")
	}
	crossed := p
	crossed.Off, crossed.Mark = []bool{false, false, true, false}, nil
	want = strings.Join([]string{
		"served",
		"30 │           ✕   ··········●",
		"   │   ·●··········           ",
		"   │ ··                       ",
		"   │●                         ",
		" 0 │                          ",
		"   └──────────────────────────",
		"    1                        8",
	}, "\n")
	if drawn := strings.Join(Pen{}.Plot(&crossed, 30, 8), "\n"); drawn != want {
		t.Errorf("got\n%s\nwant\n%s", drawn, want)
	}
	p.Y, p.Mark = []float64{1, 10, 100, 1000}, nil
	log := Pen{ASCII: true}.Plot(&p, 30, 8)
	if log[0] != "served (log axis)" || strings.IndexByte(log[5], 'o') < 0 || strings.IndexByte(log[1], 'o') < 0 {
		t.Errorf("%q", log)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		wide int
		want string
	}{{0, "one two  three"}, {7, "one two|three"}, {3, "one|two|three"}} {
		if got := strings.Join(Wrap("one two  three", c.wide), "|"); got != c.want {
			t.Errorf("Wrap at %d = %q, want %q", c.wide, got, c.want)
		}
	}
	for _, c := range []struct {
		head, text string
		want       string
	}{
		{"label: ", "one two three", "label: one|   two|   three"},
		{"label: ", "longerthanaline two", "label:|   longerthanaline|   two"},
		{"", "longerthanaline", "longerthanaline"},
	} {
		if got := strings.Join(Hang(c.head, c.text, "   ", 10), "|"); got != c.want {
			t.Errorf("Hang(%q, %q) = %q, want %q", c.head, c.text, got, c.want)
		}
	}
	if got := Beside([]string{"a", "bb", "c"}, []string{"x"}, 4); strings.Join(got, "|") != "a   x|bb|c" {
		t.Errorf("%q", got)
	}
}
