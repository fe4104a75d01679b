package workload

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// The published traces, in the units of their publishers.

var mooncake = Kind{
	Name: "mooncake", Doc: "a Mooncake trace: JSON lines with timestamp (ms), input_length, output_length and hash_ids of 512 tokens",
	reads: [][]string{{"timestamp", "input_length", "output_length"}},
	Timed: true, Tokens: true, New: newTrace(&mooncakeFormat),
}

var mooncakeFormat = traceFormat{
	name: "mooncake", block: 512,
	parse: func(line []byte, _ []string, o *TraceOptions) (traceRow, error) {
		return parseHashed(line, 1e-3, o)
	},
}

var bailian = Kind{
	Name: "bailian", Doc: "a Qwen Bailian trace: JSON lines with timestamp (s), input_length, output_length, type, chat_id, parent_chat_id and hash_ids of 16 tokens",
	reads: [][]string{{"timestamp", "input_length", "output_length"}},
	Timed: true, Tokens: true, New: newTrace(&bailianFormat),
}

var bailianFormat = traceFormat{
	name: "bailian", block: 16,
	parse: func(line []byte, _ []string, o *TraceOptions) (traceRow, error) {
		return parseHashed(line, 1, o)
	},
}

// hashedFields are the usual names of the fields of parseHashed.
var hashedFields = [...]string{"timestamp", "input_length", "output_length", "hash_ids"}

// parseHashed parses a line of a trace with hash ids. TraceOptions.Fields has other names for hashedFields.
func parseHashed(line []byte, unitS float64, o *TraceOptions) (row traceRow, err error) {
	names, wrong := hashedFields, [...]string{"no", "no", "no", ""}
	for i, name := range names {
		names[i] = cmp.Or(o.Fields[name], name)
	}
	var s jsonscan.Scanner
	var at float64
	var session, parent string
	err = s.Document(line, func(key []byte) {
		i, ok := slices.Index(names[:], string(key)), true
		switch i {
		case 0:
			var err error
			at, err = strconv.ParseFloat(string(s.Skip()), 64)
			ok = err == nil
		case 1, 2:
			var n int64
			if n, ok = s.Int(); i == 1 {
				row.Input = int(n)
			} else {
				row.Output = int(n)
			}
		case 3:
			ok = row.readHashes(&s, o.countOnly)
		default:
			switch string(key) {
			case "type":
				row.Type = plainText(s.Skip())
			case "session_id":
				session = plainText(s.Skip())
			case "chat_id":
				row.ID = plainText(s.Skip())
			case "parent_chat_id":
				parent = plainText(s.Skip())
			}
		}
		switch {
		case !ok:
			wrong[i] = "not a valid"
		case i >= 0:
			wrong[i] = ""
		}
	})
	if err != nil {
		return row, fmt.Errorf("not a JSON object of the trace: %w", err)
	}
	for i, text := range wrong {
		if text != "" {
			return row, fmt.Errorf("%s %q", text, names[i])
		}
	}
	if parent != "-1" {
		row.Parent = parent
	}
	if session != "" {
		row.ID, row.Parent = "", session
	}
	row.At, err = secondsOf(at, unitS)
	return row, err
}

// readHashes reads the hash ids, or only counts them.
func (row *traceRow) readHashes(s *jsonscan.Scanner, countOnly bool) (ok bool) {
	if s.Type() == 'n' { // null
		return true
	}
	var few [128]int64 // enough for almost all lists of Mooncake
	ids := few[:0]
	if rest := s.Rest(); !countOnly {
		ids = make([]int64, 0, bytes.Count(rest[:bytes.IndexByte(rest, ']')+1], []byte(","))+1)
	}
	ids, ok = s.Ints(ids)
	if row.Blocks = len(ids); !countOnly {
		row.Hashes = ids
	}
	return ok
}

var timedTrace = Kind{
	Name: "timed_trace", Doc: "a trace in the format of vllm bench serve: JSON lines whose fields and units the --timed-trace flags set (seconds, hash_ids of 16 tokens)",
	reads: [][]string{{"timestamp", "input_length", "output_length"}},
	Timed: true, Tokens: true, New: newTrace(&timedFormat),
	options: func(d *Dataset, o *Options) { d.timedFlags.options(&o.Trace) },
	check:   func(d *Dataset) error { return d.timedFlags.check() },
}

// timedFlags are the options of timed_trace besides the options of all traces.
type timedFlags struct {
	TimedChunk     int     `flag:"timed-trace-chunk-hash-size" default:"16" most:"tokens" help:"timed_trace: tokens per hash id"`
	TimedUnit      float64 `flag:"timed-trace-sec-multiplier" default:"1" help:"timed_trace: seconds per time unit"`
	TimedTimestamp string  `flag:"timed-trace-label-timestamp" default:"timestamp" help:"timed_trace: field of the time"`
	TimedInput     string  `flag:"timed-trace-label-input-length" default:"input_length" help:"timed_trace: field of the prompt tokens"`
	TimedOutput    string  `flag:"timed-trace-label-output-length" default:"output_length" help:"timed_trace: field of the output tokens"`
	TimedHashes    string  `flag:"timed-trace-label-hash-ids" default:"hash_ids" help:"timed_trace: field of the hash ids"`
}

func (f *timedFlags) options(o *TraceOptions) {
	o.Block, o.UnitS = cmp.Or(o.Block, f.TimedChunk), f.TimedUnit
	o.Fields = map[string]string{
		"timestamp": f.TimedTimestamp, "input_length": f.TimedInput, "output_length": f.TimedOutput, "hash_ids": f.TimedHashes,
	}
}

func (f *timedFlags) check() error {
	switch {
	case f.TimedChunk < 1:
		return fmt.Errorf("--timed-trace-chunk-hash-size %d: must be at least 1", f.TimedChunk)
	case !(f.TimedUnit > 0):
		return fmt.Errorf("--timed-trace-sec-multiplier %v: must be above 0", f.TimedUnit)
	}
	return nil
}

var timedFormat = traceFormat{
	name: "timed_trace", block: 16,
	parse: func(line []byte, _ []string, o *TraceOptions) (traceRow, error) {
		row, err := parseHashed(line, cmp.Or(o.UnitS, 1), o)
		return traceRow{At: row.At, Input: row.Input, Output: row.Output, Hashes: row.Hashes, Blocks: row.Blocks}, err
	},
}

var azure = Kind{
	Name: "azure", Doc: "an Azure LLM inference trace of 2023 or 2024: CSV with TIMESTAMP (date and time), ContextTokens, GeneratedTokens",
	reads: [][]string{{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}},
	Timed: true, Tokens: true, New: newTrace(&azureFormat),
}

var azureFormat = traceFormat{name: "azure", header: true, parse: parseAzure}

// azureTimes are the time formats of the different years; all are UTC.
var azureTimes = []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", time.RFC3339Nano}

func parseAzure(line []byte, columns []string, _ *TraceOptions) (row traceRow, err error) {
	f, err := fieldsOf(line, columns, "TIMESTAMP", "ContextTokens", "GeneratedTokens")
	if err != nil {
		return row, err
	}
	if row.At, err = parseDate(f[0]); err != nil {
		return row, err
	}
	return row, firstError(whole("ContextTokens", f[1], &row.Input), whole("GeneratedTokens", f[2], &row.Output))
}

func parseDate(text string) (time.Duration, error) {
	for _, layout := range azureTimes {
		if t, err := time.Parse(layout, text); err == nil {
			return time.Duration(t.UnixNano()), nil
		}
	}
	return 0, fmt.Errorf("TIMESTAMP %q is not a date and time", text)
}

var burstgptTrace = Kind{
	Name: "burstgpt_trace", Doc: "a BurstGPT trace with its arrivals: CSV with Timestamp (s), Model, Request tokens, Response tokens",
	reads: [][]string{{"Timestamp", "Request tokens", "Response tokens"}},
	Timed: true, Tokens: true, New: newTrace(&burstgptFormat),
}

var burstgptFormat = traceFormat{name: "burstgpt_trace", header: true, parse: parseBurstGPT}

func parseBurstGPT(line []byte, columns []string, _ *TraceOptions) (row traceRow, err error) {
	f, err := fieldsOf(line, columns, "Timestamp", "Model", "Request tokens", "Response tokens")
	if err != nil {
		return row, err
	}
	at, err := strconv.ParseFloat(f[0], 64)
	if err != nil {
		return row, fmt.Errorf("timestamp %q is not a number of seconds", f[0])
	}
	if row.At, err = secondsOf(at, 1); err != nil {
		return row, err
	}
	row.Model = f[1]
	return row, firstError(whole("Request tokens", f[2], &row.Input), whole("Response tokens", f[3], &row.Output))
}

// fieldsOf returns the named fields of a CSV line. The traces have no commas inside
// fields.
func fieldsOf(line []byte, columns []string, names ...string) ([]string, error) {
	parts := strings.Split(string(line), ",")
	out := make([]string, len(names))
	for i, name := range names {
		at := slices.Index(columns, name)
		if at < 0 { // checked first, because the file may not be a table
			return nil, fmt.Errorf("the header has no column %q (it has %s); check that the file is a trace of this format", name, strings.Join(columns, ", "))
		}
		if len(parts) != len(columns) {
			return nil, fmt.Errorf("%d fields under %d columns", len(parts), len(columns))
		}
		out[i] = strings.Trim(parts[at], "\" \r")
	}
	return out, nil
}

// whole parses a number of tokens.
func whole(name, text string, n *int) error {
	v, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%s %q is not an integer", name, text)
	}
	*n = v
	return nil
}
