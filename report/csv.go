package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"tacho/metric"
)

var csvFormat = Format{
	Name: "csv", Doc: "one line for each stage, for spreadsheets; empty is not measured",
	Render: renderCSV,
}

// A column is one column of the CSV of a Report.
type column struct {
	name string
	cell func(*Stage) string
}

func renderCSV(w io.Writer, r *Report) error {
	columns := append(stageColumns(), metricColumns(r)...)
	out := csv.NewWriter(w)
	var header []string
	for _, c := range columns {
		header = append(header, c.name)
	}
	_ = out.Write(header) // keeps the first error for Error
	for i := range r.Stages {
		var line []string
		for _, c := range columns {
			line = append(line, c.cell(&r.Stages[i]))
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

// stageColumns are named as in the JSON, or as in the reference's.
func stageColumns() []column {
	count := func(name string, of func(*metric.Summary) int) column {
		return column{name, func(s *Stage) string { return strconv.Itoa(of(&s.Summary)) }}
	}
	number := func(name string, of func(*metric.Summary) *float64) column {
		return column{name, func(s *Stage) string { return orEmpty(of(&s.Summary)) }}
	}
	throughput := func(name string, of func(*metric.Throughput) *float64) column {
		return number(name, func(s *metric.Summary) *float64 {
			if s.Throughput == nil {
				return nil
			}
			return of(s.Throughput)
		})
	}
	return []column{
		{"stage", func(s *Stage) string { return safeCell(s.Name) }},
		{"value", func(s *Stage) string { return safeCell(s.Value) }},
		{"verdict", func(s *Stage) string { return string(s.Summary.Verdict.Level) }},
		{"reasons", func(s *Stage) string { return safeCell(reasonCodes(&s.Summary.Verdict)) }},
		count("requests", func(s *metric.Summary) int { return s.Requests }),
		count("completed", func(s *metric.Summary) int { return s.Completed }),
		count("failed", func(s *metric.Summary) int { return s.Failed }),
		count("canceled", func(s *metric.Summary) int { return s.Canceled }),
		number("duration_s", func(s *metric.Summary) *float64 { return &s.DurationS }),
		count("total_input_tokens", func(s *metric.Summary) int { return s.Tokens.Input }),
		count("total_output_tokens", func(s *metric.Summary) int { return s.Tokens.Output }),
		throughput("request_throughput", func(t *metric.Throughput) *float64 { return &t.RequestsPerS }),
		throughput("request_goodput", func(t *metric.Throughput) *float64 { return t.GoodPerS }),
		throughput("output_throughput", func(t *metric.Throughput) *float64 { return &t.OutputTokensPerS }),
		throughput("total_token_throughput", func(t *metric.Throughput) *float64 { return &t.TotalTokensPerS }),
		{"requests_in_flight", func(s *Stage) string {
			if s.Summary.Peaks == nil {
				return ""
			}
			return strconv.Itoa(s.Summary.Peaks.InFlight)
		}},
		{"clock", func(s *Stage) string { return s.Summary.Clock.Name }},
		number("coalesced_share", func(s *metric.Summary) *float64 { return s.CoalescedShare() }),
	}
}

// metricColumns has for each metric its statistics, and every percentile that
// some stage has.
func metricColumns(r *Report) []column {
	var percentiles []float64
	for _, stage := range r.Stages {
		for _, d := range stage.Summary.Dists {
			for _, p := range statsOrZero(d.Stats).Percentiles {
				if !slices.Contains(percentiles, p.P) {
					percentiles = append(percentiles, p.P)
				}
			}
		}
	}
	var columns []column
	for _, m := range metric.All {
		name := func(statistic string) string {
			n := statistic + "_" + m.Name
			if m.Unit == metric.Millis {
				n += "_ms"
			}
			return n
		}
		add := func(statistic string, of func(*metric.Stats) *float64) {
			columns = append(columns, column{name(statistic), func(s *Stage) string {
				if stats := s.Summary.Dist(m).Stats; stats != nil {
					return orEmpty(of(stats))
				}
				return ""
			}})
		}
		columns = append(columns, column{"n_" + m.Name, func(s *Stage) string { return strconv.Itoa(s.Summary.Dist(m).N) }})
		add("mean", func(s *metric.Stats) *float64 { return &s.Mean })
		add("median", func(s *metric.Stats) *float64 { return &s.Median })
		add("std", func(s *metric.Stats) *float64 { return &s.Std })
		add("min", func(s *metric.Stats) *float64 { return &s.Min })
		add("max", func(s *metric.Stats) *float64 { return &s.Max })
		for _, p := range percentiles {
			add("p"+percentileWord(p), func(s *metric.Stats) *float64 { return percentileOf(s, p) })
		}
	}
	return columns
}

func statsOrZero(s *metric.Stats) metric.Stats {
	if s == nil {
		return metric.Stats{}
	}
	return *s
}

// percentileOf is nil where the stage did not ask for p.
func percentileOf(s *metric.Stats, p float64) *float64 {
	for _, v := range s.Percentiles {
		if v.P == p {
			return &v.Value
		}
	}
	return nil
}

func reasonCodes(v *metric.Verdict) string {
	var codes []string
	for _, r := range v.Reasons {
		codes = append(codes, r.Code)
	}
	return strings.Join(codes, " ")
}

func orEmpty(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// safeCell is safe for a cell: a spreadsheet takes a text that begins with one
// of these for a formula and would run it.
func safeCell(text string) string {
	text = safe(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		return "'" + text
	}
	return text
}

// renderFileCSV has one line for each block, and a column for every value some
// block has, in the order of the classic rows.
func renderFileCSV(w io.Writer, f *File) error {
	keys := fileKeys(f)
	out := csv.NewWriter(w)
	_ = out.Write(append([]string{"line", "style"}, keys...)) // keeps the first error for Error
	for _, b := range f.Blocks {
		cells := map[string]string{}
		for _, l := range b.lines {
			if l.row.key != "" {
				cells[l.key()] = l.number()
			}
		}
		line := []string{strconv.Itoa(b.Line), b.Style()}
		for _, key := range keys {
			line = append(line, cells[key])
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

func fileKeys(f *File) []string {
	var keys []string
	for i := range rows {
		for _, b := range f.Blocks {
			for _, l := range b.lines {
				if l.row == &rows[i] && l.row.key != "" && !slices.Contains(keys, l.key()) {
					keys = append(keys, l.key())
				}
			}
		}
	}
	return keys
}
