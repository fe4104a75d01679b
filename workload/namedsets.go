package workload

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A namedSet is what is known of a dataset of the hub by its name: how vLLM's
// benchmark asks it.
type namedSet struct {
	names         []string
	subset, split string // where it has several
	output        int    // tokens to ask for; negative is as long as the answer in the data
	suffix        string // behind each prompt
	cut           string // where what is asked ends
	column        string // of what is asked; empty finds it by its name
	answer        string // column of the answer, where it is not the one that names tell
	pairs         bool   // of a conversation the first two turns, whoever said them
	plain         bool   // to a completions endpoint it goes as it is
	rounds        bool   // its files are read by turns, a row of each
	bounds        *bounds
	always        bool // the bounds hold for an output length that was asked for, too
}

// defaultOutput is asked for where nothing says how long an answer may be.
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
	{names: []string{"mgoin/mlperf-inference-llama2-data", "mgoin/mlperf-inference-llama3.1-data"}, output: -1, bounds: &chatBounds, always: true},
	{names: []string{functionSet}, output: 512, rounds: true},
}

// knownSet is what is known of the dataset of that name.
func knownSet(name string) namedSet {
	i := slices.IndexFunc(namedSets, func(s namedSet) bool { return slices.Contains(s.names, name) })
	if i < 0 {
		return namedSet{}
	}
	return namedSets[i]
}

// DefaultSplit is the split of a dataset of the hub that is used if no other
// is asked for.
func DefaultSplit(name string) string {
	if s := knownSet(name); s.split != "" {
		return s.split
	}
	return "train"
}

// DefaultSubset is the same of subsets; empty if none is known.
func DefaultSubset(name string) string { return knownSet(name).subset }

// SentPlain says whether the prompts of a dataset of the hub go to a completions
// endpoint without the chat template.
func SentPlain(name string) bool { return knownSet(name).plain }

// functionSet is the one dataset whose files are its subsets.
const functionSet = "gorilla-llm/Berkeley-Function-Calling-Leaderboard"

// NamedFiles are the files of a dataset of the hub that are known by name, for
// a list of categories; nil where files are found by subset and split.
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

// outputOf is the output length: the one asked for, or the dataset's own.
func (s *namedSet) outputOf(asked Length) Length {
	if n, constant := asked.Constant(); !constant || n != 0 {
		return asked
	}
	return Fixed(s.output)
}

// unsentColumns hold what a request could carry, and ours do not.
var unsentColumns = []string{"video", "videos", "audio"}

// unsent counts the columns of the row that are not sent; pictured says that
// its pictures are.
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

// tools are the functions of a row, as the Berkeley function calling
// leaderboard has them, in the form of OpenAI.
func (r tableRow) tools() (json.RawMessage, error) {
	if own := r["tools"]; len(own) > 0 && own[0] == '[' {
		return own, nil
	}
	var functions []map[string]any
	if json.Unmarshal(r["function"], &functions) != nil {
		one := map[string]any{}
		_ = json.Unmarshal(r["function"], &one) // a column of another type holds none
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

// pythonTypes are the names of types that a JSON schema calls otherwise.
var pythonTypes = map[string]string{"dict": "object", "float": "number", "tuple": "array", "any": "string"}

// schemaTypes gives the types in a schema their names.
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

// A Range is a range of numbers; its zero value is all of them.
type Range struct{ Low, High float64 }

// holds says whether the normalised distance of a row, if it has one, is in
// the range.
func (g Range) holds(r tableRow) bool {
	var distance float64
	if g == (Range{}) || json.Unmarshal(r["norm_distance"], &distance) != nil {
		return true
	}
	return distance >= g.Low && distance <= g.High
}

// choices are the answers of a question to choose from, by their letters: all
// of them, as the reference has them, empty ones too.
func (r tableRow) choices() string {
	var by map[string]string
	_ = json.Unmarshal(r["choices"], &by) // a column of another type holds none
	var b strings.Builder
	for _, letter := range slices.Sorted(maps.Keys(by)) {
		b.WriteString(" " + letter + "." + by[letter])
	}
	return b.String()
}
