package workload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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
		return parseHashed(line, 1e-3, o.countOnly)
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
		return parseHashed(line, 1, o.countOnly)
	},
}

// hashedFields are the fields of a line of Mooncake or Bailian.
type hashedFields struct {
	timestamp                         float64
	input, output                     int64
	hasTimestamp, hasInput, hasOutput bool
	hashes                            []int64
	blocks                            int // number of hashes
	kind                              string
	session, chat, parent             string
}

// hashedLine is a line of Mooncake or Bailian for encoding/json.
type hashedLine struct {
	Timestamp    *float64        `json:"timestamp"`
	InputLength  *int64          `json:"input_length"`
	OutputLength *int64          `json:"output_length"`
	HashIDs      []int64         `json:"hash_ids"`
	Type         string          `json:"type"`
	Session      json.RawMessage `json:"session_id"` // ids are numbers or strings
	Chat         json.RawMessage `json:"chat_id"`
	Parent       json.RawMessage `json:"parent_chat_id"`
}

// parseHashedJSON parses any valid JSON line.
func parseHashedJSON(line []byte) (f hashedFields, err error) {
	var l hashedLine
	if err := json.Unmarshal(line, &l); err != nil {
		return f, fmt.Errorf("not a JSON object of the trace: %w", err)
	}
	f = hashedFields{hashes: l.HashIDs, blocks: len(l.HashIDs), kind: l.Type}
	if f.hasTimestamp = l.Timestamp != nil; f.hasTimestamp {
		f.timestamp = *l.Timestamp
	}
	if f.hasInput = l.InputLength != nil; f.hasInput {
		f.input = *l.InputLength
	}
	if f.hasOutput = l.OutputLength != nil; f.hasOutput {
		f.output = *l.OutputLength
	}
	f.session, f.chat, f.parent = plainText(l.Session), plainText(l.Chat), plainText(l.Parent)
	return f, nil
}

func parseHashed(line []byte, unitS float64, countOnly bool) (row traceRow, err error) {
	l, ok := scanHashed(line, countOnly)
	if !ok {
		if l, err = parseHashedJSON(line); err != nil {
			return row, err
		}
	}
	switch {
	case !l.hasTimestamp:
		return row, errors.New(`no "timestamp"`)
	case !l.hasInput:
		return row, errors.New(`no "input_length"`)
	case !l.hasOutput:
		return row, errors.New(`no "output_length"`)
	}
	row = traceRow{Input: int(l.input), Output: int(l.output), Hashes: l.hashes, Blocks: l.blocks, Type: l.kind, ID: l.chat}
	if l.parent != "-1" {
		row.Parent = l.parent
	}
	if l.session != "" {
		row.ID, row.Parent = "", l.session
	}
	row.At, err = secondsOf(l.timestamp, unitS)
	return row, err
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

var timedFormat = traceFormat{name: "timed_trace", block: 16, parse: parseTimed}

func parseTimed(line []byte, _ []string, o *TraceOptions) (row traceRow, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return row, fmt.Errorf("not a JSON object of the trace: %w", err)
	}
	field := func(name string, v any, must bool) error {
		if other := o.Fields[name]; other != "" {
			name = other
		}
		text, ok := fields[name]
		if !ok && must {
			return fmt.Errorf("no %q", name)
		} else if !ok {
			return nil
		}
		if err := json.Unmarshal(text, v); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	}
	var at float64
	var ids []int64
	if err := firstError(field("timestamp", &at, true), field("input_length", &row.Input, true),
		field("output_length", &row.Output, true), field("hash_ids", &ids, false)); err != nil {
		return row, err
	}
	unit := o.UnitS
	if unit == 0 {
		unit = 1
	}
	row.Hashes, row.Blocks = ids, len(ids)
	row.At, err = secondsOf(at, unit)
	return row, err
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
