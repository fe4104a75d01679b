package report_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report"
)

// cells is a table as rows of text by column.
type cells []map[string]string

func csvCells(t *testing.T, text string) (out cells) {
	t.Helper()
	lines := must.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			row[lines[0][i]] = cell
		}
		out = append(out, row)
	}
	return out
}

func parquetCells(t *testing.T, file string) (out cells) {
	t.Helper()
	r := parquet.NewReader(bytes.NewReader([]byte(file)))
	for {
		values := map[string]any{}
		if err := r.Read(&values); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, asText(values))
	}
}

func asText(values map[string]any) map[string]string {
	row := map[string]string{}
	for k, v := range values {
		switch v := v.(type) {
		case nil:
			row[k] = ""
		case float64:
			row[k] = strconv.FormatFloat(v, 'f', -1, 64)
		case time.Time:
			row[k] = v.Format("2006-01-02T15:04:05.000Z07:00")
		default:
			row[k] = fmt.Sprint(v)
		}
	}
	return row
}

// CSV and Parquet have the same rows for every kind of row.
func TestTablesAgree(t *testing.T) {
	for rows, want := range map[string]int{"level": 1, "request": 400, "token": 1200} {
		r := withRecords(healthyStage())
		r.Rows = rows
		a, b := csvCells(t, render(t, "csv", r)), parquetCells(t, render(t, "parquet", r))
		if len(a) != want || len(b) != want {
			t.Fatalf("%s: %d and %d rows, want %d", rows, len(a), len(b), want)
		}
		titles, _, _ := strings.Cut(render(t, "csv", r), "\n")
		if names := strings.Join(parquetNames(t, render(t, "parquet", r)), ","); names != titles {
			t.Fatalf("%s: columns of Parquet %s, of CSV %s", rows, names, titles)
		}
		for i := range a {
			for k := range a[i] {
				if a[i][k] != b[i][k] {
					t.Fatalf("%s %d, %s: csv %q, parquet %q", rows, i, k, a[i][k], b[i][k])
				}
			}
		}
	}
}

func parquetNames(t *testing.T, file string) (names []string) {
	t.Helper()
	f := must.Get(parquet.OpenFile(strings.NewReader(file), int64(len(file))))(t)
	for _, field := range f.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names
}

// The columns of rows of levels are those of docs/formats.md, whatever the run. --columns all adds others
// behind them.
func TestColumnsOfLevels(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/formats.md"))(t)
	_, section, _ := strings.Cut(string(text), "\n## Columns\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, line := range regexp.MustCompile("(?m)^- (`.*?`):").FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(line[1], ", ") {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	want := strings.Join(listed, ",")
	if len(listed) < 35 || len(listed) > 45 {
		t.Errorf("%d columns, want about 40", len(listed))
	}
	for name, r := range map[string]*report.Report{
		"healthy": withRecords(healthyStage()), "sick": of(sickStage()), "full": of(fullStage()), "empty": of(emptyStage()), "predicted": predicted(),
	} {
		got, _, _ := strings.Cut(render(t, "csv", r), "\n")
		if got != want {
			t.Errorf("%s: columns\n%s\ndocs/formats.md\n%s", name, got, want)
		}
		r.Columns = report.ColumnsAll
		all, _, _ := strings.Cut(render(t, "csv", r), "\n")
		if !strings.HasPrefix(all, want+",") {
			t.Errorf("%s: --columns all begins with %.600s", name, all)
		}
		if names := strings.Split(all, ","); len(names) < 200 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
			t.Errorf("%s: %d columns, or one twice", name, len(names))
		}
	}
}

// Rows have absolute times, and the status of the answer.
func TestTimesAndStatusOfRows(t *testing.T) {
	r := withRecords(healthyStage())
	epoch := time.Date(2026, 3, 1, 13, 0, 0, 250e6, time.FixedZone("", 3600))
	r.Runs[0].Levels[0].Epoch = epoch
	list := records(400)
	for rows, column := range map[string]string{"level": "started_at", "request": "started_at", "token": "arrived_at"} {
		r.Rows = rows
		want := map[string]time.Duration{"request": list[0].Sent, "token": list[0].Events[0].At}[rows]
		got := csvCells(t, render(t, "csv", r))[0][column]
		if at := epoch.Add(want).UTC().Format("2006-01-02T15:04:05.000Z"); got != at {
			t.Errorf("%s: %s %s, want %s", rows, column, got, at)
		}
	}
	refused, late, silent := *list[0], *list[0], *list[0]
	refused.Failure = &tacho.Failure{Cause: tacho.Status, Status: 429}
	late.Failure, late.Sent = &tacho.Failure{Cause: tacho.Timeout}, tacho.Never
	r.Rows = "request"
	r.Runs[0].Levels[0].Records = func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			_ = yield(&silent, nil) && yield(&refused, nil) && yield(&late, nil)
		}
	}
	rows := csvCells(t, render(t, "csv", r))
	for i, want := range []string{"200", "429", ""} {
		if got := rows[i]["status"]; got != want {
			t.Errorf("request %d: status %q, want %q", i, got, want)
		}
	}
	if got := rows[2]["started_at"]; got != "" {
		t.Errorf("a request that was never sent started at %s", got)
	}
	r.Runs[0].Levels[0].Summary.Config.Predicted = true
	if got := csvCells(t, render(t, "csv", r))[0]["status"]; got != "" {
		t.Errorf("a predicted request has status %s", got)
	}
}

// A 0 in the result of another tool is a figure that it does not report, except a number of requests.
func TestZerosOfOtherTools(t *testing.T) {
	level := healthyStage()
	s := &level.Summary
	s.Verdict = metric.Verdict{Severity: metric.Unjudged}
	s.Failed, s.DurationS, s.Tokens.Input, s.Peaks = 0, 0, 0, nil
	s.Throughput = &metric.Throughput{RequestsPerS: 3}
	row := csvCells(t, render(t, "csv", of(level)))[0]
	for column, want := range map[string]string{"failed": "0", "duration_s": "", "total_input_tokens": "", "output_throughput": "", "request_throughput": "3"} {
		if row[column] != want {
			t.Errorf("%s: %q, want %q", column, row[column], want)
		}
	}
	text := render(t, "classic", of(level))
	for _, want := range []string{`Failed requests: +0 *\n`, `Benchmark duration \(s\): +n/a`, `Peak concurrent requests: +n/a`, `Request throughput \(req/s\): +3\.00`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s.Verdict.Severity = metric.Valid
	if text := render(t, "classic", of(level)); strings.Contains(text, "n/a") {
		t.Errorf("a run of tacho has zeros like vLLM's block:\n%s", text)
	}
}

// A level without a name is called "all" in tables for people.
func TestTheOnlyLevelHasAName(t *testing.T) {
	r := withRecords(healthyStage())
	r.Runs[0].Levels[0].Name, r.Runs[0].Levels[0].Value = "", ""
	for format, want := range map[string]string{"markdown": "\n| all | 400 |", "levels": "\n  all  400 "} {
		if text := render(t, format, r); !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", format, text)
		}
	}
}

// A row of a request contains the values of the metrics.
func TestRequestRows(t *testing.T) {
	r := withRecords(healthyStage())
	r.Rows = "request"
	rows := csvCells(t, render(t, "csv", r))
	for i, rec := range records(400) {
		for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT, metric.E2EL} {
			got, err := strconv.ParseFloat(rows[i][m.Name+"_ms"], 64)
			m.Of(rec, func(want float64) {
				if err != nil || math.Abs(got-want) > 1e-9 {
					t.Errorf("request %d, %s: %v (%v), want %v", i, m.Name, got, err, want)
				}
			})
		}
	}
	if row := rows[0]; row["run"] != about.Name || row["model"] != "tiny" || row["url"] == "" || row["dataset"] != "random" || row["level"] != "rate 20" {
		t.Errorf("%v", row)
	}
}

func TestRowsNeedRecords(t *testing.T) {
	r := of(healthyStage())
	for _, rows := range []string{"request", "token"} {
		r.Rows = rows
		f := must.Get(report.FormatNamed("csv"))(t)
		if err := f.Render(io.Discard, r); err == nil || !strings.Contains(err.Error(), "use a run directory") {
			t.Errorf("%s: %v", rows, err)
		}
	}
	r.Rows = "week"
	f, _ := report.FormatNamed("csv")
	if err := f.Render(io.Discard, r); err == nil || !strings.Contains(err.Error(), "level, request, token") {
		t.Error(err)
	}
}
