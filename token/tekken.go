package token

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// tekkenSpecials are the default special tokens, by id, for files without a list of
// special tokens.
var tekkenSpecials = strings.Fields("<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] " +
	"[TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]")

// tekkenLastUnlisted is the last file version that may omit the list of special tokens.
const tekkenLastUnlisted = 7

// tekkenBegin is the special token at the beginning of every text.
const tekkenBegin = "<s>"

// tekkenConfig is the field config of a tekken.json.
type tekkenConfig struct {
	Pattern     string `json:"pattern"`
	VocabSize   int    `json:"default_vocab_size"`
	NumSpecials int    `json:"default_num_special_tokens"`
	Version     string `json:"version"`
}

// parseTekken reads Mistral's tekken.json: tiktoken ranks in a vocabulary that starts
// with the special tokens. Ranks beyond the size of the vocabulary are ignored.
func parseTekken(fields map[string]json.RawMessage) (*definition, error) {
	c, err := parseTekkenConfig(fields["config"])
	if err != nil {
		return nil, err
	}
	entries, err := parseTekkenVocab(fields["vocab"], c)
	if err != nil {
		return nil, err
	}
	d, err := newRankDefinition(entries)
	if err != nil {
		return nil, fmt.Errorf("vocab: %w", err)
	}
	if err := d.setTekkenSpecials(fields["special_tokens"], c); err != nil {
		return nil, err
	}
	if _, err := findExpr(c.Pattern); err != nil {
		return nil, fmt.Errorf("config.pattern: %w", err)
	}
	return d, d.setPattern(c.Pattern)
}

func parseTekkenConfig(raw json.RawMessage) (c tekkenConfig, err error) {
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("config: %w", err)
	}
	switch {
	case c.Pattern == "":
		return c, fmt.Errorf("config.pattern: missing")
	case c.NumSpecials <= 0 || c.NumSpecials > maxTokenID:
		return c, fmt.Errorf("config.default_num_special_tokens: %d is not a number of tokens", c.NumSpecials)
	case c.VocabSize <= c.NumSpecials || c.VocabSize > maxTokenID:
		return c, fmt.Errorf("config.default_vocab_size: %d must be greater than the number of special tokens, %d", c.VocabSize, c.NumSpecials)
	}
	return c, nil
}

// number returns the file version, or 0 if the version is unknown.
func (c *tekkenConfig) number() int {
	digits, _ := strings.CutPrefix(c.Version, "v")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// parseTekkenVocab reads [{"rank": 0, "token_bytes": "AA==", ...}, ...].
func parseTekkenVocab(raw []byte, c tekkenConfig) ([]vocabEntry, error) {
	s := tableScanner{}
	wanted := c.VocabSize - c.NumSpecials
	var entries []vocabEntry
	err := s.array("vocab", raw, func(i int) error {
		if i >= wanted {
			return nil
		}
		text, err := s.tekkenToken(int32(i))
		if err != nil {
			return fmt.Errorf("[%d]%w", i, err)
		}
		entries = append(entries, vocabEntry{text: text, id: int32(i + c.NumSpecials)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(entries) < wanted {
		return nil, fmt.Errorf("vocab: %d tokens, but config.default_vocab_size is %d including %d special tokens", len(entries), c.VocabSize, c.NumSpecials)
	}
	return entries, nil
}

// tekkenToken reads the token of a rank. Its errors continue the path of the entry, such
// as ".rank".
func (s *tableScanner) tekkenToken(rank int32) (text []byte, err error) {
	found := noToken
	s.Object(func(key []byte) {
		var wrong error
		switch string(key) {
		case "rank":
			if found, wrong = s.id(); wrong != nil {
				err = fmt.Errorf(".rank: %w", wrong)
			}
		case "token_bytes":
			s.texts[0], _ = s.String(s.texts[0][:0])
			if text, wrong = decodeToken(s.texts[0]); wrong != nil {
				err = fmt.Errorf(".token_bytes: %w", wrong)
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case found != rank:
		return nil, fmt.Errorf(".rank: %d, want %d: ranks are in order", found, rank)
	case text == nil:
		return nil, fmt.Errorf(".token_bytes: missing")
	case rank < 256 && (len(text) != 1 || text[0] != byte(rank)):
		return nil, fmt.Errorf(".token_bytes: %q, want the byte %d: single bytes come first", text, rank)
	}
	return text, nil
}

// setTekkenSpecials reads [{"rank": 1, "token_str": "<s>", ...}, ...]. Unlisted ids get a
// name made from the id.
func (d *definition) setTekkenSpecials(raw []byte, c tekkenConfig) error {
	names := make([]string, c.NumSpecials)
	if len(raw) == 0 || string(raw) == "null" {
		if c.number() > tekkenLastUnlisted {
			return fmt.Errorf("special_tokens: missing, but required in version %s", c.Version)
		}
		copy(names, tekkenSpecials)
	} else if err := parseTekkenSpecials(raw, names); err != nil {
		return err
	}
	begin := noToken
	for id, name := range names {
		if name == "" {
			name = fmt.Sprintf("<SPECIAL_%d>", id)
		}
		if name == tekkenBegin {
			begin = int32(id)
		}
		d.AddedTokens = append(d.AddedTokens, addedToken{ID: int32(id), Content: name, Special: true})
	}
	if begin == noToken {
		return fmt.Errorf("special_tokens: %s is missing", tekkenBegin)
	}
	d.setBegin(begin)
	d.HiddenSpecials = true
	return nil
}

func parseTekkenSpecials(raw []byte, names []string) error {
	var list []struct {
		Rank *int   `json:"rank"`
		Text string `json:"token_str"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("special_tokens: %w", err)
	}
	seen := map[string]bool{}
	for i, t := range list {
		switch {
		case t.Rank == nil || *t.Rank < 0 || *t.Rank >= len(names):
			return fmt.Errorf("special_tokens[%d].rank: missing, or not below config.default_num_special_tokens, %d", i, len(names))
		case t.Text == "" || seen[t.Text] || names[*t.Rank] != "":
			return fmt.Errorf("special_tokens[%d]: text %q or rank %d is empty or a duplicate", i, t.Text, *t.Rank)
		}
		names[*t.Rank], seen[t.Text] = t.Text, true
	}
	return nil
}
