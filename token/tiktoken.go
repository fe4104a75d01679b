package token

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// findEncoding identifies the encoding of a rank file by its name or its number of ranks.
func findEncoding(fileName string, ranks int) (*encodingSpec, error) {
	var names []string
	for i := range encodingSpecs {
		e := &encodingSpecs[i]
		names = append(names, e.name)
		if !strings.HasPrefix(fileName, e.name) {
			continue
		}
		if ranks != e.ranks {
			return nil, fmt.Errorf("%d ranks, but %s has %d; the file is truncated or has another encoding", ranks, e.name, e.ranks)
		}
		return e, nil
	}
	for i := range encodingSpecs {
		if e := &encodingSpecs[i]; ranks == e.ranks {
			return e, nil
		}
	}
	return nil, fmt.Errorf("no known encoding has %d ranks; name the file after one of %s", ranks, strings.Join(names, ", "))
}

// isRankFile reports whether data starts with a line of base64 and a number.
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
	if token, err = decodeToken(text); err != nil {
		return nil, 0, err
	}
	r, err := strconv.ParseUint(string(number), 10, 24)
	if err != nil {
		return nil, 0, fmt.Errorf("%q is not a rank", number)
	}
	return token, int32(r), nil
}

// decodeToken decodes a base64 token.
func decodeToken(text []byte) ([]byte, error) {
	token := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(token, text)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("%q is not a token in base64", text)
	}
	return token[:n], nil
}

// parseRanks reads a tiktoken file: one token and its rank per line.
func parseRanks(data []byte, fileName string) (*definition, error) {
	entries, err := parseRankLines(data)
	if err != nil {
		return nil, fmt.Errorf("tiktoken file: %w", err)
	}
	spec, err := findEncoding(fileName, len(entries))
	if err != nil {
		return nil, fmt.Errorf("tiktoken file: %w", err)
	}
	d, err := newRankDefinition(entries)
	if err != nil {
		return nil, fmt.Errorf("tiktoken file: %w", err)
	}
	return d, d.setEncoding(spec)
}

func parseRankLines(data []byte) ([]vocabEntry, error) {
	var entries []vocabEntry
	lineOf := map[int32]int{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		token, rank, err := parseRank(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if before := lineOf[rank]; before > 0 {
			return nil, fmt.Errorf("line %d: rank %d repeats the rank of line %d", number, rank, before)
		}
		if len(entries) == maxTokens {
			beyond("more than %d tokens", maxTokens)
		}
		lineOf[rank] = number
		entries = append(entries, vocabEntry{text: token, id: rank})
	}
	return entries, nil
}

// newRankDefinition builds byte-level BPE from ranks. The rank is the id. Two tokens may
// merge if their joined text is a third token, and the lowest rank merges first.
func newRankDefinition(entries []vocabEntry) (*definition, error) {
	d := &definition{}
	if err := d.setRanks(entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if id, _ := d.vocab.lookup(string(e.text)); id != e.id {
			return nil, fmt.Errorf("ranks %d and %d have the same token %q", e.id, id, e.text)
		}
	}
	d.merges = rankMerges(&d.vocab, entries)
	return d, nil
}

// setRanks sets everything except the merges.
func (d *definition) setRanks(entries []vocabEntry) error {
	d.Model.Type = "BPE"
	d.Model.IgnoreMerges = true
	d.Decoder = json.RawMessage(`{"type":"ByteLevel"}`)
	d.FixedIDs = true
	return d.setVocab(entries)
}

// rankMerges finds the two tokens each token is merged from. The pair is unique: if no
// merge crosses the ends of a section of text, the merges inside the section happen in
// the same order regardless of the surrounding text. The last two parts of a token are
// therefore the two parts its own text merges into. Tokens are processed by length
// because both parts are shorter than the token.
func rankMerges(vocab *vocabulary, entries []vocabEntry) mergeTable {
	t := newMergeTable(len(entries))
	order := make([]uint64, len(entries)) // length and index in one integer: sorts faster than the entries
	for i, e := range entries {
		order[i] = uint64(len(e.text))<<32 | uint64(i)
	}
	slices.Sort(order)
	var single [256]int32
	for b := range single {
		single[b] = noToken
		if id, ok := vocab.lookup(string([]byte{byte(b)})); ok {
			single[b] = id
		}
	}
	var symbols []int32
	for _, o := range order {
		e := &entries[uint32(o)]
		symbols = symbols[:0]
		for _, b := range e.text {
			symbols = append(symbols, single[b])
		}
		if slices.Contains(symbols, noToken) {
			continue // merges start from single bytes and never produce this token
		}
		if mergeSymbols(&t, symbols) == 2 {
			t.set(symbols[0], symbols[1], e.id, e.id)
		}
	}
	t.check()
	return t
}

// setEncoding writes an encoding as tokenizer.json settings.
func (d *definition) setEncoding(spec *encodingSpec) error {
	for _, run := range spec.reserved {
		for id := run[0]; id < run[1]; id++ {
			d.AddedTokens = append(d.AddedTokens, addedToken{ID: id, Content: fmt.Sprintf(spec.format, id), Special: true})
		}
	}
	for _, text := range slices.Sorted(maps.Keys(spec.specials)) {
		d.AddedTokens = append(d.AddedTokens, addedToken{ID: spec.specials[text], Content: text, Special: true})
	}
	if spec.begin != "" {
		d.setBegin(spec.specials[spec.begin])
	}
	return d.setPattern(spec.pattern)
}

// configFile may list the special tokens of a rank file.
const configFile = "tokenizer_config.json"

// setListed adds the special tokens listed in a tokenizer_config.json. They replace the
// encoding's special tokens with the same id or text.
func (d *definition) setListed(config []byte) error {
	var file struct {
		Tokens map[string]addedToken `json:"added_tokens_decoder"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		return fmt.Errorf("%s: %w", configFile, err)
	}
	var listed []addedToken
	ids, texts := map[int32]bool{}, map[string]bool{}
	for key, token := range file.Tokens {
		id, err := strconv.ParseUint(key, 10, 24)
		if err != nil || token.Content == "" {
			return fmt.Errorf("%s: added_tokens_decoder[%q]: invalid id or empty content", configFile, key)
		}
		token.ID = int32(id)
		listed = append(listed, token)
		ids[token.ID], texts[token.Content] = true, true
	}
	slices.SortFunc(listed, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	kept := slices.DeleteFunc(d.AddedTokens, func(a addedToken) bool { return ids[a.ID] || texts[a.Content] })
	d.AddedTokens = append(kept, listed...)
	return nil
}

// setPattern splits text with an expression and treats the parts as bytes.
func (d *definition) setPattern(expr string) error {
	pattern, err := json.Marshal(expr)
	if err != nil {
		return err
	}
	d.PreTokenizer = fmt.Appendf(nil, `{"type":"Sequence","pretokenizers":[
		{"type":"Split","pattern":{"Regex":%s},"behavior":"Isolated","invert":false},
		{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}`, pattern)
	return nil
}

// setBegin adds a special token at the beginning of every text.
func (d *definition) setBegin(id int32) {
	d.PostProcessor = fmt.Appendf(nil, `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"begin"}},{"Sequence":{"id":"A"}}],
		"special_tokens":{"begin":{"ids":[%d]}}}`, id)
}
