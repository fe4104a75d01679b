package token

import (
	"fmt"
	"io/fs"
	"strings"

	"tacho/token/internal/ranks"
)

// An encodingSpec is what a tiktoken rank file leaves unsaid: how text is cut,
// and the special tokens.
type encodingSpec struct {
	name     string
	ranks    int // in the file, by which a file with another name is known
	pattern  string
	specials map[string]int32
	reserved [][2]int32  // runs of special tokens named by their id: the first, and the one after the last
	format   string      // of their names
	begin    string      // the special token that every text begins with
	builtin  []rankTable // the ranks, where they come with the program
}

// A rankTable is a run of ranks.
type rankTable struct {
	name  string
	first int32
}

const (
	cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwenPattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	kimiPattern = `[\p{Han}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

var (
	r50kTables   = []rankTable{{ranks.R50K, 0}}
	p50kTables   = []rankTable{{ranks.R50K, 0}, {ranks.P50K, ranks.FirstP50K}}
	cl100kTables = []rankTable{{ranks.CL100K, 0}}
	o200kTables  = []rankTable{{ranks.O200K, 0}}
)

// encodingSpecs are the encodings known by name. Where two have as many ranks,
// the first is the one a file with another name is taken for.
var encodingSpecs = []encodingSpec{
	{name: "r50k_base", ranks: 50256, pattern: byteLevelPattern, specials: map[string]int32{"<|endoftext|>": 50256}, builtin: r50kTables},
	{name: "gpt2", ranks: 50256, pattern: byteLevelPattern, specials: map[string]int32{"<|endoftext|>": 50256}, builtin: r50kTables},
	{name: "p50k_base", ranks: 50280, pattern: byteLevelPattern, specials: map[string]int32{"<|endoftext|>": 50256}, builtin: p50kTables},
	{name: "p50k_edit", ranks: 50280, pattern: byteLevelPattern, specials: map[string]int32{
		"<|endoftext|>": 50256, "<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283,
	}, builtin: p50kTables},
	{name: "cl100k_base", ranks: 100256, pattern: cl100kPattern, specials: map[string]int32{
		"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276,
	}, builtin: cl100kTables},
	{name: "o200k_base", ranks: 199998, pattern: o200kPattern, specials: map[string]int32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018}, builtin: o200kTables},
	{name: "o200k_harmony", ranks: 199998, pattern: o200kPattern, specials: map[string]int32{
		"<|startoftext|>": 199998, "<|endoftext|>": 199999, "<|return|>": 200002, "<|constrain|>": 200003, "<|channel|>": 200005,
		"<|start|>": 200006, "<|end|>": 200007, "<|message|>": 200008, "<|call|>": 200012, "<|endofprompt|>": 200018,
	}, reserved: [][2]int32{{200000, 200002}, {200004, 200005}, {200009, 200012}, {200013, 201088}}, format: "<|reserved_%d|>", builtin: o200kTables},
	{name: "llama3", ranks: 128000, pattern: cl100kPattern, specials: map[string]int32{
		"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, "<|start_header_id|>": 128006, "<|end_header_id|>": 128007,
		"<|eom_id|>": 128008, "<|eot_id|>": 128009, "<|python_tag|>": 128010,
	}, begin: "<|begin_of_text|>"},
	{name: "qwen", ranks: 151643, pattern: qwenPattern, specials: map[string]int32{"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}},
	// The other special tokens of a Kimi are in the tokenizer_config.json beside the file.
	{name: "kimi", ranks: 163584, pattern: kimiPattern, specials: map[string]int32{"[BOS]": 163584, "[EOS]": 163585}, reserved: [][2]int32{{163586, 163840}}, format: "<|reserved_token_%d|>"},
}

// modelEncodings are the models of each encoding, by name and by how the names
// of their versions begin.
var modelEncodings = []struct{ encoding, names, prefixes string }{
	{"o200k_base", "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o", "o1- o3- o4-mini- gpt-5 gpt-4.5- gpt-4.1- chatgpt-4o- gpt-4o- ft:gpt-4o"},
	{"o200k_harmony", "", "gpt-oss-"},
	{
		"cl100k_base",
		"gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 text-embedding-ada-002 text-embedding-3-small text-embedding-3-large",
		"gpt-4- gpt-3.5-turbo- gpt-35-turbo- ft:gpt-4 ft:gpt-3.5-turbo ft:davinci-002 ft:babbage-002",
	},
	{"p50k_edit", "text-davinci-edit-001 code-davinci-edit-001", ""},
	{
		"p50k_base",
		"text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 code-cushman-002 code-cushman-001 davinci-codex cushman-codex",
		"",
	},
	{
		"r50k_base",
		"text-davinci-001 text-curie-001 text-babbage-001 text-ada-001 davinci curie babbage ada text-similarity-davinci-001 " +
			"text-similarity-curie-001 text-similarity-babbage-001 text-similarity-ada-001 text-search-davinci-doc-001 " +
			"text-search-curie-doc-001 text-search-babbage-doc-001 text-search-ada-doc-001 code-search-babbage-code-001 code-search-ada-code-001",
		"",
	},
	{"gpt2", "gpt-2", ""},
}

// encodingNames is the names of the encodings that Builtin has.
func encodingNames() []string {
	var names []string
	for i := range encodingSpecs {
		if encodingSpecs[i].builtin != nil {
			names = append(names, encodingSpecs[i].name)
		}
	}
	return names
}

// encodingOf is the built-in encoding of that name, or of the OpenAI model of
// that name.
func encodingOf(name string) (string, bool) {
	for _, encoding := range encodingNames() {
		if name == encoding {
			return encoding, true
		}
	}
	name = strings.TrimPrefix(name, "openai/")
	found, longest := "", 0
	for _, m := range modelEncodings {
		for model := range strings.FieldsSeq(m.names) {
			if name == model {
				return m.encoding, true
			}
		}
		for prefix := range strings.FieldsSeq(m.prefixes) {
			if len(prefix) > longest && strings.HasPrefix(name, prefix) {
				found, longest = m.encoding, len(prefix)
			}
		}
	}
	return found, found != ""
}

// Builtin is the tokenizer of an encoding that comes with the program, by the
// name of the encoding or of an OpenAI model that has it. It needs no file. The
// error for a name that is neither is a fs.ErrNotExist.
func Builtin(name string) (*Tokenizer, error) {
	encoding, ok := encodingOf(name)
	if !ok {
		return nil, fmt.Errorf("%q is no OpenAI model and none of the built-in encodings %s: %w", name, strings.Join(encodingNames(), ", "), fs.ErrNotExist)
	}
	spec := findSpec(encoding)
	d, err := readBuiltin(spec)
	if err != nil {
		return nil, err
	}
	if err := d.setEncoding(spec); err != nil {
		return nil, err
	}
	shown := "built-in " + encoding
	if name != encoding {
		shown += " of " + name
	}
	return newTokenizer(d, shown)
}

// readBuiltin is newRankDefinition for tables that say what their tokens are
// merged from.
func readBuiltin(spec *encodingSpec) (*definition, error) {
	entries := make([]vocabEntry, 0, spec.ranks)
	lefts := make([]int, 0, spec.ranks)
	for _, table := range spec.builtin {
		tokens, err := ranks.Tokens(table.name)
		if err != nil {
			return nil, err
		}
		for i, t := range tokens {
			entries = append(entries, vocabEntry{text: t.Text, id: table.first + int32(i)})
			lefts = append(lefts, t.Left)
		}
	}
	d := &definition{}
	if err := d.setRanks(entries); err != nil {
		return nil, err
	}
	d.merges = newMergeTable(len(entries))
	for i, e := range entries {
		if lefts[i] == 0 {
			continue
		}
		left, leftOK := d.vocab.lookup(string(e.text[:lefts[i]]))
		right, rightOK := d.vocab.lookup(string(e.text[lefts[i]:]))
		if !leftOK || !rightOK {
			return nil, fmt.Errorf("rank table %s: rank %d is merged from what is no token", spec.name, e.id)
		}
		d.merges.set(left, right, e.id, e.id)
	}
	return d, nil
}

func findSpec(name string) *encodingSpec {
	for i := range encodingSpecs {
		if encodingSpecs[i].name == name {
			return &encodingSpecs[i]
		}
	}
	return nil
}
