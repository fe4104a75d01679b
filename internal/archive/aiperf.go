package archive

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/metric"
)

// aiperfKind is AIPerf's export: JSON with a file of requests beside it, or CSV, or the requests alone.
// Its inter_token_latency is our TPOT, and its inter_chunk_latency is our ITL.
var aiperfKind = Kind{
	Name: "aiperf", Doc: "JSON or CSV export of AIPerf; with profile_export.jsonl beside it, or alone, every request",
	Copies: []string{"profile_export_aiperf.csv", aiperfRequestsFile, "server_metrics_export.json"},
	read: func(f *file) ([]entry, error) {
		if bytes.HasPrefix(f.bytes, []byte("Metric,avg,")) {
			return aiperfCSV(f.bytes)
		}
		if docs := f.objects(); len(docs) > 0 && docs[0].has("metadata", "benchmark_phase") && docs[0].has("metrics") {
			return aiperfAlone(docs), nil
		}
		var out []entry
		for _, d := range f.objects() {
			if d.has("request_latency", "avg") && d.has("request_throughput", "avg") {
				s := newSheet("aiperf", d.text("aiperf_version"))
				s.aiperfConfig(d.object("input_config"))
				s.level.Epoch = began(d.text("start_time"))
				s.aiperf(d)
				if err := s.aiperfRequests(filepath.Join(filepath.Dir(f.path), aiperfRequestsFile)); err != nil {
					return nil, err
				}
				out = append(out, s.entries(aiperfNote)...)
			}
		}
		return out, nil
	},
}

// aiperfRequestsFile contains a line for each request.
const aiperfRequestsFile = "profile_export.jsonl"

const aiperfNote = "TPOT is its inter-token latency (mean per request), ITL its inter-chunk latency"

// aiperf reads the figures by AIPerf's tags.
func (s *sheet) aiperf(d doc) {
	value := func(tag string) float64 { return d.number(tag, "avg") }
	completed := int(value("request_count"))
	failed := int(value("error_request_count"))
	if failed == 0 && d.has("completed_request_count") {
		failed = int(value("completed_request_count")) - completed
	}
	s.summary().DurationS = value("benchmark_duration")
	s.counts(completed, failed, 0)
	if s.level.Prompts == 0 {
		s.load(completed+failed, s.level.Rate, s.level.Concurrency)
	}
	s.summary().Tokens = metric.Tokens{Input: int(value("total_isl")), Output: int(value("total_osl"))}
	total := value("total_token_throughput")
	if total == 0 {
		total = value("input_token_throughput") + value("output_token_throughput")
	}
	s.throughput(value("request_throughput"), value("output_token_throughput"), total)
	if d.has("goodput", "avg") {
		good := value("goodput")
		s.summary().Throughput.GoodPerS = &good
	}
	for _, t := range []struct {
		m   *metric.Metric
		tag string
	}{{metric.TTFT, "time_to_first_token"}, {metric.TPOT, "inter_token_latency"}, {metric.ITL, "inter_chunk_latency"}, {metric.E2EL, "request_latency"}} {
		s.dist(t.m, d.whole(t.tag, "count"), statsOf(d.object(t.tag), 1))
	}
}

// aiperfConfig reads the configured load, which AIPerf repeats in its export.
func (s *sheet) aiperfConfig(c doc) {
	for _, m := range c.list("models", "items") {
		s.about.Model = m.text("name")
	}
	s.about.Backend, s.about.Tokenizer = c.text("endpoint", "type"), c.text("tokenizer", "name")
	urls, _ := c.at("endpoint", "urls").([]any)
	for _, u := range urls {
		if text, ok := u.(string); ok {
			s.about.URLs = append(s.about.URLs, text)
		}
	}
	for _, set := range c.list("datasets") {
		s.about.Dataset = set.text("type")
	}
	for _, phase := range c.list("phases") {
		if phase.text("kind") == "profiling" {
			rate := phase.number("rate")
			if rate == 0 {
				rate = phase.number("request_rate")
			}
			s.load(phase.whole("requests"), rate, phase.whole("concurrency"))
		}
	}
}

// aiperfRequests reads the requests from the file beside the export, if it exists.
func (s *sheet) aiperfRequests(path string) error {
	b, err := atomicfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := checkSize(b); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var docs []doc
	for line := range bytes.Lines(b) {
		var d doc
		if json.Unmarshal(line, &d) == nil {
			docs = append(docs, d)
		}
	}
	s.aiperfRequestLines(docs)
	return nil
}

// aiperfAlone summarizes requests as a level, if there is no export.
func aiperfAlone(docs []doc) []entry {
	s := newSheet("aiperf", "")
	s.aiperfRequestLines(docs)
	if len(s.requests) == 0 {
		return nil
	}
	s.addUp()
	return s.entries(aiperfNote + "; throughput is computed from the times of the requests")
}

// aiperfRequestLines reads requests, without the warm-up.
func (s *sheet) aiperfRequestLines(docs []doc) {
	for _, d := range docs {
		if d.text("metadata", "benchmark_phase") != "profiling" {
			continue
		}
		value := func(tag string) float64 { return d.number("metrics", tag, "value") }
		t := sheetRequest{
			start: d.number("metadata", "request_start_ns") / 1e9, ttft: value("time_to_first_token") / 1e3, end: value("request_latency") / 1e3,
			input: int(value("input_sequence_length")), output: int(value("output_sequence_length")), failure: d.text("error", "message"),
		}
		for _, gap := range d.numbers("metrics", "inter_chunk_latency", "value") {
			t.gaps = append(t.gaps, gap/1e3)
		}
		s.requests = append(s.requests, t)
	}
	fromZero(s.requests)
}

// aiperfCSV reads the export as a table, which has titles instead of tags: "Time to First Token (ms)"
// is time_to_first_token.
func aiperfCSV(b []byte) ([]entry, error) {
	r := csv.NewReader(bufio.NewReader(bytes.NewReader(b)))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	d := doc{}
	var names []string
	for _, row := range rows {
		if row[0] == "Metric" {
			names = row
			continue
		}
		title, _, _ := strings.Cut(row[0], " (")
		values := map[string]any{}
		for i := 1; i < min(len(row), len(names)); i++ {
			if v, err := strconv.ParseFloat(row[i], 64); err == nil {
				values[strings.ReplaceAll(names[i], "Value", "avg")] = v
			}
		}
		tag := strings.ReplaceAll(strings.ToLower(title), " ", "_")
		if tag == "completed_requests" {
			tag = "completed_request_count"
		}
		d[tag] = values
	}
	for long, short := range map[string]string{"input_sequence_length": "total_isl", "output_sequence_length": "total_osl"} {
		d[short] = map[string]any{"avg": d.number(long, "sum")}
	}
	s := newSheet("aiperf", "")
	s.aiperf(d)
	return s.entries(aiperfNote), nil
}
