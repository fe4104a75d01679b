package report_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report"
)

// cells is a table as rows of text by column.
type cells []map[string]string

func csvCells(t *testing.T, text string) (out cells) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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
		for i := range a {
			for k := range a[i] {
				if a[i][k] != b[i][k] {
					t.Fatalf("%s %d, %s: csv %q, parquet %q", rows, i, k, a[i][k], b[i][k])
				}
			}
		}
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
		f, err := report.FormatNamed("csv")
		if err != nil {
			t.Fatal(err)
		}
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
