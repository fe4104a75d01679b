package token

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/tacho-bench/tacho/token/internal/ranks"
)

// encodingSpec describes the parts of an encoding that a tiktoken rank file does not
// contain: the split pattern and the special tokens.
type encodingSpec struct {
	name     string
	ranks    int // number of ranks; identifies a file whose name is unknown
	pattern  string
	specials map[string]int32
	reserved [][2]int32  // half-open id ranges of special tokens named after their id
	format   string      // name format of reserved tokens
	begin    string      // special token at the beginning of every text
	builtin  []rankTable // embedded rank tables, if any
}

// rankTable is an embedded table of consecutive ranks.
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

// encodingSpecs are the encodings known by name. If two encodings have the same number of
// ranks, a file with an unknown name is taken for the first.
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
	// Kimi's other special tokens are in the tokenizer_config.json next to the rank file.
	{name: "kimi", ranks: 163584, pattern: kimiPattern, specials: map[string]int32{"[BOS]": 163584, "[EOS]": 163585}, reserved: [][2]int32{{163586, 163840}}, format: "<|reserved_token_%d|>"},
}

// modelEncodings maps models to encodings, by model name and by prefixes of versioned
// names.
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

// encodingNames returns the names of the built-in encodings.
func encodingNames() []string {
	var names []string
	for i := range encodingSpecs {
		if encodingSpecs[i].builtin != nil {
			names = append(names, encodingSpecs[i].name)
		}
	}
	return names
}

// encodingOf returns the built-in encoding with that name, or the encoding of the OpenAI
// model with that name.
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

// Builtin returns the tokenizer of an embedded encoding. name is an encoding or an OpenAI
// model. If name is neither, the error matches fs.ErrNotExist.
func Builtin(name string) (*Tokenizer, error) {
	encoding, ok := encodingOf(name)
	if !ok {
		return nil, fmt.Errorf("%q is not an OpenAI model or a built-in encoding (%s): %w", name, strings.Join(encodingNames(), ", "), fs.ErrNotExist)
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

// readBuiltin is newRankDefinition for embedded tables, which list the two parts each
// token is merged from.
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
			return nil, fmt.Errorf("rank table %s: the parts of rank %d are not tokens", spec.name, e.id)
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
