package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

// seeds are four published reports of three generations.
var seeds = []struct {
	file   string
	blocks int
	style  string
}{
	{"000_902df92d1b3a4732.txt", 23, "2024"},
	{"001_8b5b9f497242493f.txt", 13, "2024"},
	{"002_64bb5876f73a2969.txt", 2, "2025-12"},
	{"003_659e43dd1329acd2.txt", 1, "2024"},
}

func readSeed(t testing.TB, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join("..", "testdata", "seeds", name)))(t))
}

func parse(t testing.TB, text string) *report.File {
	t.Helper()
	return must.Get(report.Parse(text))(t)
}

// number returns a value that the block must have.
func number(t testing.TB, b *report.Block, key string) float64 {
	t.Helper()
	return must.Get(b.Number(key))(t)
}

func TestSeedsPrintAgain(t *testing.T) {
	total := 0
	for _, seed := range seeds {
		text := readSeed(t, seed.file)
		f := parse(t, text)
		if diff := cmp.Diff(text, f.String()); diff != "" {
			t.Errorf("%s: -want +got\n%s", seed.file, diff)
		}
		if len(f.Blocks) != seed.blocks || len(f.Notes) != 0 {
			t.Errorf("%s: %d blocks with notes %v, want %d with none", seed.file, len(f.Blocks), f.Notes, seed.blocks)
		}
		for _, b := range f.Blocks {
			total++
			if b.Style() != seed.style {
				t.Errorf("%s:%d: style %q, want %q", seed.file, b.Line, b.Style(), seed.style)
			}
		}
	}
	if total != 39 {
		t.Errorf("%d blocks, want 39", total)
	}
}

// summaryOf returns the summary of a run that prints b.
func summaryOf(t *testing.T, b *report.Block) metric.Summary {
	whole := func(key string) int { return int(number(t, b, key)) }
	optional := func(key string) float64 { v, _ := b.Number(key); return v }
	s := metric.Summary{
		Counts: metric.Counts{DurationS: number(t, b, "duration"), Completed: whole("completed"), Failed: int(optional("failed"))},
		Tokens: metric.Tokens{Input: whole("total_input_tokens"), Output: whole("total_output_tokens")},
		Throughput: &metric.Throughput{
			RequestsPerS:     number(t, b, "request_throughput"),
			OutputTokensPerS: number(t, b, "output_throughput"),
			TotalTokensPerS:  number(t, b, "total_token_throughput"),
		},
		Peaks: &metric.Peaks{
			EventsPerS:      int(optional("max_output_tokens_per_s")),
			TouchingASecond: int(optional("max_concurrent_requests")),
		},
	}
	for _, m := range metric.Classic {
		mean, err := b.Number("mean_" + m.Name + "_ms")
		if err != nil {
			continue
		}
		stats := &metric.Stats{Mean: mean, Median: number(t, b, "median_"+m.Name+"_ms")}
		s.Config.Percentiles = nil
		for v := range b.Values() {
			word, ok := strings.CutSuffix(strings.TrimPrefix(v.Key, "p"), "_"+m.Name+"_ms")
			if p, err := strconv.ParseFloat(word, 64); ok && err == nil {
				stats.Percentiles = append(stats.Percentiles, metric.Percentile{P: p, Value: v.Number})
				s.Config.Percentiles = append(s.Config.Percentiles, p)
			}
		}
		s.Config.Metrics = append(s.Config.Metrics, m.Name)
		s.Dists = append(s.Dists, metric.Dist{Name: m.Name, N: 1, Stats: stats})
	}
	return s
}

// A run with the numbers of a seed prints the same block in the seed's style.
func TestSeedsFromSummaries(t *testing.T) {
	for _, seed := range seeds {
		for _, b := range parse(t, readSeed(t, seed.file)).Blocks {
			r := of(outcome.Level{Summary: summaryOf(t, b)})
			r.Style = seed.style
			got := render(t, "classic", r)
			if diff := cmp.Diff(b.String()+"\n", got); diff != "" {
				t.Errorf("%s:%d: -want +got\n%s", seed.file, b.Line, diff)
			}
		}
	}
}

// The printed throughputs follow from the other printed numbers, within two decimals.
func TestSeedsKeepTheFormulas(t *testing.T) {
	const half = 0.005 // of the last printed digit
	checked := 0
	for _, seed := range seeds {
		for _, b := range parse(t, readSeed(t, seed.file)).Blocks {
			duration := number(t, b, "duration")
			output := number(t, b, "total_output_tokens")
			for key, amount := range map[string]float64{
				"request_throughput":     number(t, b, "completed"),
				"output_throughput":      output,
				"total_token_throughput": number(t, b, "total_input_tokens") + output,
			} {
				got := number(t, b, key)
				low, high := amount/(duration+half)-half, amount/(duration-half)+half
				if got < low || got > high {
					t.Errorf("%s:%d: %s is %v, want %v..%v", seed.file, b.Line, key, got, low, high)
				}
				checked++
			}
		}
	}
	if checked != 3*39 {
		t.Errorf("%d lines checked, want %d", checked, 3*39)
	}
}

// JSON and CSV of a seed contain all numbers of the text.
func TestSeedsInOtherFormats(t *testing.T) {
	for _, seed := range seeds {
		f := parse(t, readSeed(t, seed.file))
		var decoded struct {
			Blocks []struct {
				Line   int                `json:"line"`
				Style  string             `json:"style"`
				Before string             `json:"text_before"`
				Values map[string]float64 `json:"values"`
			} `json:"blocks"`
			After string `json:"text_after"`
		}
		must.Do(t, json.Unmarshal([]byte(renderFile(t, "json", f)), &decoded))
		table := must.Get(csv.NewReader(strings.NewReader(renderFile(t, "csv", f))).ReadAll())(t)
		if decoded.After != f.After || len(decoded.Blocks) != seed.blocks || len(table) != seed.blocks+1 {
			t.Fatalf("%s: %d blocks in JSON, %d lines of CSV, want %d blocks", seed.file, len(decoded.Blocks), len(table), seed.blocks)
		}
		for i, b := range f.Blocks {
			want, cells := map[string]float64{}, map[string]float64{}
			for v := range b.Values() {
				want[v.Key] = v.Number
			}
			for j, key := range table[0][2:] {
				if v, err := strconv.ParseFloat(table[i+1][j+2], 64); err == nil {
					cells[key] = v
				}
			}
			if diff := cmp.Diff(want, decoded.Blocks[i].Values); diff != "" {
				t.Errorf("%s:%d: JSON: -want +got\n%s", seed.file, b.Line, diff)
			}
			if diff := cmp.Diff(want, cells); diff != "" {
				t.Errorf("%s:%d: CSV: -want +got\n%s", seed.file, b.Line, diff)
			}
			if decoded.Blocks[i].Before != b.Before || decoded.Blocks[i].Line != b.Line {
				t.Errorf("%s:%d: JSON has line %d after %q", seed.file, b.Line, decoded.Blocks[i].Line, decoded.Blocks[i].Before)
			}
		}
	}
}

func renderFile(t *testing.T, format string, f *report.File) string {
	t.Helper()
	ff := must.Get(report.FileFormatNamed(format))(t)
	var b bytes.Buffer
	must.Do(t, ff.Render(&b, f))
	return b.String()
}
