package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// An encodingSpec is what a tiktoken rank file leaves unsaid: how text is cut,
// and the special tokens.
type encodingSpec struct {
	name     string
	ranks    int // in the file, by which a file with another name is known
	pattern  string
	specials map[string]int32
}

const (
	cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwenPattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// encodingSpecs are the encodings known by name.
var encodingSpecs = []encodingSpec{
	{"r50k_base", 50256, byteLevelPattern, map[string]int32{"<|endoftext|>": 50256}},
	{"p50k_base", 50280, byteLevelPattern, map[string]int32{"<|endoftext|>": 50256}},
	{"cl100k_base", 100256, cl100kPattern, map[string]int32{
		"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276,
	}},
	{"o200k_base", 199998, o200kPattern, map[string]int32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018}},
	{"llama3", 128000, cl100kPattern, map[string]int32{
		"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, "<|start_header_id|>": 128006, "<|end_header_id|>": 128007,
		"<|eom_id|>": 128008, "<|eot_id|>": 128009, "<|python_tag|>": 128010,
	}},
	{"qwen", 151643, qwenPattern, map[string]int32{"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}},
}

// findEncoding is the encoding of a rank file, by its name or its size.
func findEncoding(fileName string, ranks int) (*encodingSpec, error) {
	var names []string
	for i := range encodingSpecs {
		e := &encodingSpecs[i]
		if strings.HasPrefix(fileName, e.name) || ranks == e.ranks {
			return e, nil
		}
		names = append(names, e.name)
	}
	return nil, fmt.Errorf("%d ranks are no encoding known; name the file after one of %s", ranks, strings.Join(names, ", "))
}

// isRankFile says whether data starts with a line of base64 and a number.
func isRankFile(data []byte) bool {
	line, _, _ := bytes.Cut(data[:min(len(data), 1<<10)], []byte("\n"))
	_, _, err := parseRank(line)
	return err == nil
}

func parseRank(line []byte) (token []byte, rank int32, err error) {
	text, number, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	if !ok {
		return nil, 0, fmt.Errorf("%q is not a token and its rank", line)
	}
	token = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(token, text)
	if err != nil || n == 0 {
		return nil, 0, fmt.Errorf("%q is not a token in base64", text)
	}
	r, err := strconv.ParseUint(string(number), 10, 24)
	if err != nil {
		return nil, 0, fmt.Errorf("%q is not a rank", number)
	}
	return token[:n], int32(r), nil
}

// parseRanks reads a tiktoken file: a token and its rank on each line. The
// rank is the id, and any two tokens that make a third may merge into it.
func parseRanks(data []byte, fileName string) (*definition, error) {
	var entries []vocabEntry
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		token, rank, err := parseRank(line)
		if err != nil {
			return nil, fmt.Errorf("tiktoken file: line %d: %w", len(entries)+1, err)
		}
		entries = append(entries, vocabEntry{text: token, id: rank})
	}
	spec, err := findEncoding(fileName, len(entries))
	if err != nil {
		return nil, fmt.Errorf("tiktoken file: %w", err)
	}
	d := &definition{}
	if err := d.setVocab(entries); err != nil {
		return nil, fmt.Errorf("tiktoken file: %w", err)
	}
	var rules []mergeRule
	for _, e := range entries {
		rules = append(rules, splitsOf(&d.vocab, e.id)...)
	}
	d.merges = newMergeTable(len(rules))
	for _, r := range rules {
		d.merges.set(r.left, r.right, r.merged, r.merged)
	}
	return d, d.setEncoding(spec)
}

// setEncoding puts an encoding in the words of a tokenizer.json.
func (d *definition) setEncoding(spec *encodingSpec) error {
	d.Model.Type = "BPE"
	d.Model.IgnoreMerges = true
	d.Decoder = json.RawMessage(`{"type":"ByteLevel"}`)
	pattern, err := json.Marshal(spec.pattern)
	if err != nil {
		return err
	}
	d.PreTokenizer = fmt.Appendf(nil, `{"type":"Sequence","pretokenizers":[
		{"type":"Split","pattern":{"Regex":%s},"behavior":"Isolated","invert":false},
		{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}`, pattern)
	for text, id := range spec.specials {
		d.AddedTokens = append(d.AddedTokens, addedToken{ID: id, Content: text, Special: true})
	}
	d.FixedIDs = true
	return nil
}
