package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/outcome"
)

// A file is a result file in memory.
type file struct {
	path  string
	bytes []byte
	docs  []doc
	tried bool
	cut   error // the error that ended the parsing of its JSON
}

// Limits of a JSON file, because a value takes up to 100 bytes of memory, and an object 600. A file of 256 MiB with details
// of each request has fewer: a latency has about 20 digits, and a request of AIPerf 3 kB and 25 objects.
const (
	maxValues  = 16 << 20
	maxObjects = 3 << 20
)

// checkSize returns an error if a JSON file has too many values or objects.
func checkSize(text []byte) error {
	const advice = "give the summary of the run, without details of each request"
	if values(text) > maxValues {
		return fmt.Errorf("more than %d million JSON values: %s", maxValues>>20, advice)
	}
	if bytes.Count(text, []byte("{")) > maxObjects {
		return fmt.Errorf("more than %d million JSON objects: %s", maxObjects>>20, advice)
	}
	return nil
}

// values returns the approximate number of values in JSON.
func values(text []byte) int {
	return bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{"))
}

// isJSON reports whether the file starts like a JSON object or list.
func (f *file) isJSON() bool {
	text := bytes.TrimSpace(f.bytes)
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// objects returns the JSON objects of a file: one, a list of them, or one per line. A file without JSON
// has none.
func (f *file) objects() []doc {
	if f.tried {
		return f.docs
	}
	f.tried = true
	if !f.isJSON() {
		return nil
	}
	text := bytes.TrimSpace(f.bytes)
	decoder := json.NewDecoder(bytes.NewReader(standardJSON(text)))
	for decoder.More() {
		var one any
		if err := decoder.Decode(&one); err != nil {
			// Lines of a log may begin with a bracket too.
			if len(f.docs) > 0 || strings.HasPrefix(strings.ToLower(filepath.Ext(f.path)), ".json") {
				f.cut = err
			}
			return f.docs
		}
		switch one := one.(type) {
		case map[string]any:
			f.docs = append(f.docs, one)
		case []any:
			for _, item := range one {
				if d, ok := item.(map[string]any); ok {
					f.docs = append(f.docs, d)
				}
			}
		}
	}
	return f.docs
}

// standardJSON replaces Python's NaN and Infinity by null.
func standardJSON(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	out := make([]byte, 0, len(text))
	inString := false
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case inString && text[i] == '\\' && i+1 < len(text):
			out = append(out, text[i])
			i++
		case text[i] == '"':
			inString = !inString
		case !inString:
			if at := slices.IndexFunc(notNumbers, func(w string) bool { return bytes.HasPrefix(rest, []byte(w)) }); at >= 0 {
				out = append(out, "null"...)
				i += len(notNumbers[at]) - 1
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

var notNumbers = []string{"NaN", "Infinity", "-Infinity"}

// A doc is a JSON object with lookups that tolerate missing keys.
type doc map[string]any

// at returns the value at a path of keys, or nil.
func (d doc) at(path ...string) any {
	var v any = map[string]any(d)
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func (d doc) has(path ...string) bool { return d.at(path...) != nil }

// number returns 0 if there is none.
func (d doc) number(path ...string) float64 {
	v, _ := d.at(path...).(float64)
	return v
}

func (d doc) whole(path ...string) int { return int(d.number(path...)) }

func (d doc) text(path ...string) string {
	v, _ := d.at(path...).(string)
	return v
}

// object returns an empty object if there is none.
func (d doc) object(path ...string) doc {
	v, _ := d.at(path...).(map[string]any)
	return v
}

// list returns the objects of a list.
func (d doc) list(path ...string) []doc {
	items, _ := d.at(path...).([]any)
	var out []doc
	for _, item := range items {
		if one, ok := item.(map[string]any); ok {
			out = append(out, one)
		}
	}
	return out
}

// numbers returns a list of numbers, with 0 for other values.
func (d doc) numbers(path ...string) []float64 {
	items, _ := d.at(path...).([]any)
	return floats(items)
}

func floats(items []any) []float64 {
	out := make([]float64, len(items))
	for i, item := range items {
		out[i], _ = item.(float64)
	}
	return out
}

// Limits of JSON with runs. A level takes more memory than its text if it is empty. A plan has at most 10,000 levels, and a
// level has about 2,000 values.
const (
	maxDocumentLevels = 10_000
	maxDocumentValues = 4 << 20
)

var errTooLarge = errors.New("this is not a summary of tacho")

// decodeRuns decodes the JSON output of tacho report.
func decodeRuns(text []byte) ([]outcome.Run, error) {
	if n := values(text); n > maxDocumentValues {
		return nil, fmt.Errorf("more than %d million JSON values: %w", maxDocumentValues>>20, errTooLarge)
	}
	var parts struct {
		Runs []struct {
			Levels []json.RawMessage `json:"levels"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	levels := len(parts.Runs)
	for _, run := range parts.Runs {
		levels += len(run.Levels)
	}
	if levels > maxDocumentLevels {
		return nil, fmt.Errorf("more than %d levels: %w", maxDocumentLevels, errTooLarge)
	}
	var document struct {
		Runs []outcome.Run `json:"runs"`
	}
	err := json.Unmarshal(text, &document)
	return document.Runs, err
}

// documentKind is the JSON output of tacho report: the outcomes themselves.
var documentKind = Kind{
	Name: "tacho", Doc: "JSON of tacho report; bench --save-result is vllm's",
	read: func(f *file) ([]entry, error) {
		if !bytes.Contains(f.bytes[:min(len(f.bytes), 4096)], []byte(`"runs"`)) {
			return nil, nil
		}
		runs, err := decodeRuns(f.bytes)
		if errors.Is(err, errTooLarge) {
			return nil, err
		} else if err != nil {
			return nil, nil
		}
		var out []entry
		for _, run := range runs {
			if !strings.HasPrefix(run.Tool, "tacho") {
				return nil, nil
			}
			for _, level := range run.Levels {
				out = append(out, entry{run.About, level})
			}
		}
		return out, nil
	},
}
