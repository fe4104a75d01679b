package workload

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// namedSet describes how vLLM's benchmark uses a dataset of the hub.
type namedSet struct {
	names         []string
	subset, split string // defaults if there are several
	output        int    // default output tokens; negative means the length of the answer in the data
	suffix        string // appended to each prompt
	cut           string // text that ends the prompt
	column        string // prompt column; if empty, found by name
	answer        string // answer column if not one of answerColumns
	pairs         bool   // use the first two turns of a conversation, regardless of role
	plain         bool   // sent to a completions endpoint without chat template
	interleaved   bool   // take rows from the files in turn
	bounds        *bounds
	forceBounds   bool // apply bounds even if an output length is given
}

// defaultOutput is the number of output tokens if no length is given.
const defaultOutput = 256

var namedSets = []namedSet{
	{names: []string{"lmarena-ai/VisionArena-Chat", "lmarena-ai/vision-arena-bench-v0.1"}, output: 128},
	{names: []string{"yale-nlp/MMVU"}, split: "validation", output: 128},
	{names: []string{"Lin-Chen/MMStar"}, split: "val", output: 128, cut: "Options:"},
	{names: []string{"likaixin/InstructCoder"}, output: 200, suffix: " Just output the code, do not include any explanation."},
	{names: []string{"philschmid/mt-bench"}},
	{names: []string{"openai/openai_humaneval"}, split: "test"},
	{names: []string{"openai/gsm8k"}, subset: "main", split: "test"},
	{names: []string{"lmms-lab/LLaVA-OneVision-Data", "Aeala/ShareGPT_Vicuna_unfiltered"}, output: -1, bounds: &shareGPTBounds, pairs: true, plain: true},
	{names: []string{"AI-MO/aimo-validation-aime", "AI-MO/NuminaMath-1.5", "AI-MO/NuminaMath-CoT"}, output: -1, bounds: &mathBounds, answer: "solution", plain: true},
	{names: []string{"zed-industries/zeta"}, output: -1, plain: true},
	{names: []string{"vdaita/edit_5k_char", "vdaita/edit_10k_char"}, output: 4000},
	{names: []string{"mgoin/mlperf-inference-llama2-data", "mgoin/mlperf-inference-llama3.1-data"}, output: -1, bounds: &chatBounds, forceBounds: true},
	{names: []string{functionSet}, output: 512, interleaved: true},
}

// knownSet returns the description of a dataset, or the zero value if the dataset is
// unknown.
func knownSet(name string) namedSet {
	i := slices.IndexFunc(namedSets, func(s namedSet) bool { return slices.Contains(s.names, name) })
	if i < 0 {
		return namedSet{}
	}
	return namedSets[i]
}

// DefaultSplit returns the split of a hub dataset used by default.
func DefaultSplit(name string) string {
	if s := knownSet(name); s.split != "" {
		return s.split
	}
	return "train"
}

// DefaultSubset returns the subset of a hub dataset used by default, or "".
func DefaultSubset(name string) string { return knownSet(name).subset }

// SentPlain reports whether prompts of a hub dataset go to a completions endpoint without
// the chat template.
func SentPlain(name string) bool { return knownSet(name).plain }

// functionSet is the only dataset whose files are its subsets.
const functionSet = "gorilla-llm/Berkeley-Function-Calling-Leaderboard"

// NamedFiles returns the file names of a hub dataset for a list of categories. It returns
// nil if files are found by subset and split.
func NamedFiles(name, categories string) []string {
	if name != functionSet {
		return nil
	}
	var out []string
	for c := range strings.SplitSeq(categories, ",") {
		out = append(out, "BFCL_v3_"+strings.TrimSpace(c)+".json")
	}
	return out
}

// outputOf returns the requested output length, or the default of the dataset.
func (s *namedSet) outputOf(given Length) Length {
	if n, constant := given.Constant(); !constant || n != 0 {
		return given
	}
	return Fixed(s.output)
}

// unsentColumns contain media that hf requests do not send.
var unsentColumns = []string{"video", "videos", "audio"}

// unsent counts the columns of the row that are not sent. pictured is set if the images
// of the row are sent.
func (r tableRow) unsent(counts map[string]int, pictured bool) {
	for _, name := range unsentColumns {
		if v := r[name]; len(v) > 0 && !bytes.Equal(v, []byte("null")) {
			counts[name]++
		}
	}
	if len(r["image"])+len(r["images"]) > 0 && !pictured {
		counts["image"]++
	}
}

// tools converts the functions of a row from the Berkeley function calling leaderboard to
// OpenAI's format.
func (r tableRow) tools() (json.RawMessage, error) {
	if own := r["tools"]; len(own) > 0 && own[0] == '[' {
		return own, nil
	}
	var functions []map[string]any
	if json.Unmarshal(r["function"], &functions) != nil {
		one := map[string]any{}
		_ = json.Unmarshal(r["function"], &one) // ignore columns of another type
		functions = []map[string]any{one}
	}
	type tool struct {
		Type     string `json:"type"`
		Function any    `json:"function"`
	}
	var out []tool
	for _, f := range functions {
		if _, ok := f["name"].(string); ok {
			out = append(out, tool{"function", schemaTypes(f)})
		}
	}
	if out == nil {
		return nil, nil
	}
	return json.Marshal(out)
}

// pythonTypes maps Python type names to JSON schema types.
var pythonTypes = map[string]string{"dict": "object", "float": "number", "tuple": "array", "any": "string"}

// schemaTypes replaces Python type names in a schema.
func schemaTypes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if name, ok := inner.(string); ok && key == "type" {
				if other := pythonTypes[name]; other != "" {
					v[key] = other
				}
				continue
			}
			v[key] = schemaTypes(inner)
		}
	case []any:
		for i := range v {
			v[i] = schemaTypes(v[i])
		}
	}
	return v
}

// Range is a range of numbers. Its zero value contains all numbers.
type Range struct{ Low, High float64 }

// holds reports whether the normalised edit distance of a row is in the range. A row
// without a distance is always in the range.
func (g Range) holds(r tableRow) bool {
	var distance float64
	if g == (Range{}) || json.Unmarshal(r["norm_distance"], &distance) != nil {
		return true
	}
	return distance >= g.Low && distance <= g.High
}

// choices returns the options of a multiple-choice question with their letters, including
// empty ones, as the reference does.
func (r tableRow) choices() string {
	var by map[string]string
	_ = json.Unmarshal(r["choices"], &by) // ignore columns of another type
	var b strings.Builder
	for _, letter := range slices.Sorted(maps.Keys(by)) {
		b.WriteString(" " + letter + "." + by[letter])
	}
	return b.String()
}
