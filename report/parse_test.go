package report_test

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/report"
)

// block returns the smallest block in the style of 2024, with extra lines before its
// footer.
func block(extra ...string) string {
	lines := append([]string{
		"============ Serving Benchmark Result ============",
		"Successful requests:                     1         ",
		"Benchmark duration (s):                  4.53      ",
	}, extra...)
	return strings.Join(append(lines, strings.Repeat("=", 50)), "\n")
}

func TestParseKeepsWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		name, text string
		notes      []report.FileNote
		blocks     int
	}{
		{"known rows only", block(), nil, 1},
		{"text around", "a\n\n" + block() + "\nb\n" + block() + "\n\n", nil, 2},
		{"block after block", block() + "\n" + block(), nil, 2},
		{"another tool's row", block("Backend:                                 sglang    "), []report.FileNote{
			{Line: 4, Text: "Backend:                                 sglang    ", Why: "not a known row of the report"},
		}, 1},
		{"misaligned", block("Mean TTFT (ms):   3.00"), []report.FileNote{
			{Line: 4, Text: "Mean TTFT (ms):   3.00", Why: "not a known row of the report"},
		}, 1},
		{"too many decimals", block("Mean TTFT (ms):                          3.001     "), []report.FileNote{
			{Line: 4, Text: "Mean TTFT (ms):                          3.001     ", Why: "not a known row of the report"},
		}, 1},
		{"more digits than a float has", block("Total input tokens:                      9007199254740993"), []report.FileNote{
			{Line: 4, Text: "Total input tokens:                      9007199254740993", Why: "not a known row of the report"},
		}, 1},
		{"a row twice", block("Successful requests:                     2         "), []report.FileNote{
			{Line: 4, Text: "Successful requests:                     2         ", Why: "duplicate row"},
		}, 1},
		{"cut off by an empty line", strings.TrimRight(block(), "=") + "\nrest", []report.FileNote{
			{Line: 4, Text: "", Why: "the block above has no closing line of '='"},
		}, 1},
		{"cut off by the end", strings.TrimRight(block(), "=\n"), []report.FileNote{
			{Line: 3, Text: "Benchmark duration (s):                  4.53      ", Why: "the text ends before the closing line of '='"},
		}, 1},
		{"windows lines", strings.ReplaceAll("x\n"+block()+"\n", "\n", "\r\n"), nil, 1},
		{"spaces at the end stripped", regexp.MustCompile(` +\n`).ReplaceAllString(block(), "\n"), nil, 1},
		{"wider headers", strings.ReplaceAll(block("---------------Time to First Token----------------"), "--------T", "-------------T"), []report.FileNote{
			{Line: 4, Text: "--------------------Time to First Token----------------", Why: "not a known row of the report"},
		}, 1},
		{"wide headers, centred", block("--------------------Time to First Token---------------------"), nil, 1},
		{"parameters", block("P99.9 TTFT (ms):                         3.00      ", "  Position 0:                            75.50     "), nil, 1},
		{"a parameter spelled otherwise", block("P099 TTFT (ms):                          3.00      "), []report.FileNote{
			{Line: 4, Text: "P099 TTFT (ms):                          3.00      ", Why: "not a known row of the report"},
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := parse(t, c.text)
			if diff := cmp.Diff(c.text, f.String()); diff != "" {
				t.Errorf("printed again: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.notes, f.Notes); diff != "" {
				t.Errorf("notes: -want +got\n%s", diff)
			}
			if len(f.Blocks) != c.blocks {
				t.Errorf("%d blocks, want %d", len(f.Blocks), c.blocks)
			}
			if got := number(t, f.Blocks[0], "completed"); got != 1 {
				t.Errorf("completed = %v, want 1", got)
			}
		})
	}
}

func TestParseWithoutABlock(t *testing.T) {
	for _, text := range []string{"", "\n", "hello", strings.Repeat("=", 50), "=== Serving Benchmark Result ="} {
		if _, err := report.Parse(text); !errors.Is(err, report.ErrNoBlock) {
			t.Errorf("%q: got %v, want ErrNoBlock", text, err)
		}
	}
}

// Earlier programs printed nan for the mean of no values. In JSON it becomes null.
func TestParseNaN(t *testing.T) {
	f := parse(t, block("Mean TPOT (ms):                          nan       "))
	if got := number(t, f.Blocks[0], "mean_tpot_ms"); !math.IsNaN(got) {
		t.Errorf("got %v, want NaN", got)
	}
	if text := renderFile(t, "json", f); !strings.Contains(text, `"mean_tpot_ms": null`) {
		t.Errorf("JSON: %s", text)
	}
}

func TestNumberOfAMissingRow(t *testing.T) {
	f := parse(t, "\n\n"+block())
	_, err := f.Blocks[0].Number("mean_ttft_ms")
	if want := "the report at line 3 has no mean_ttft_ms"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if style := f.Blocks[0].Style(); style != "" {
		t.Errorf("half a block has the style %q", style)
	}
}

// A text that parses prints again with the same bytes, and every format accepts it.
func FuzzParse(f *testing.F) {
	// TestSeedsPrintAgain covers the complete seeds. Large inputs slow down the fuzzer.
	f.Add("# Prefill\n\n" + block("Failed requests:                         0         ", "---------------Time to First Token----------------"))
	f.Add(block("Mean TPOT (ms):                          -inf      ", "P1e-05 ITL (ms):                         0.00      "))
	f.Add(strings.ReplaceAll(block()+"\n"+block(), "\n", "\r\n"))
	f.Add(block("P99.9 TTFT (ms):                         3.00      ", "Backend:   x") + "\ntext\n" + block("Successful requests:                     1         "))
	f.Fuzz(func(t *testing.T, text string) {
		file, err := report.Parse(text)
		if err != nil {
			return
		}
		if got := file.String(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		for _, format := range report.FileFormats {
			renderFile(t, format.Name, file)
		}
	})
}
