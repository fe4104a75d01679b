package token

import (
	"encoding/json"
	"fmt"
)

// surround holds the special tokens a post-processor adds before and after a text.
type surround struct{ before, after []int32 }

// newSurround reads the post-processor of a tokenizer.json. Post-processors that only
// adjust offsets add nothing.
func newSurround(c component) (surround, error) {
	parts, err := c.sequence("processors")
	if err != nil {
		return surround{}, err
	}
	var s surround
	for _, part := range parts {
		inner, err := newSurroundPart(part)
		if err != nil {
			return surround{}, err
		}
		s.before = append(inner.before, s.before...)
		s.after = append(s.after, inner.after...)
		if n := len(s.before) + len(s.after); n > maxSurround {
			return surround{}, c.errorf("more than %d special tokens around a text", maxSurround)
		}
	}
	return s, nil
}

func newSurroundPart(c component) (surround, error) {
	switch c.kind {
	case "ByteLevel":
		return surround{}, nil
	case "TemplateProcessing":
		return newTemplate(c)
	case "BertProcessing", "RobertaProcessing":
		var o struct {
			Sep namedID `json:"sep"`
			Cls namedID `json:"cls"`
		}
		if err := c.decode(&o); err != nil {
			return surround{}, err
		}
		return surround{[]int32{o.Cls.id}, []int32{o.Sep.id}}, nil
	}
	return surround{}, c.unsupported()
}

// namedID is a pair such as ["[SEP]", 102].
type namedID struct{ id int32 }

// UnmarshalJSON implements json.Unmarshaler.
func (n *namedID) UnmarshalJSON(b []byte) error {
	var name string
	pair := []any{&name, &n.id}
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("%s is not a token and its id", b)
	}
	return nil
}

// newTemplate reads the template for a single text.
func newTemplate(c component) (surround, error) {
	type part struct {
		ID string `json:"id"`
	}
	var o struct {
		Single []struct {
			SpecialToken *part
			Sequence     *part
		} `json:"single"`
		SpecialTokens map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := c.decode(&o); err != nil {
		return surround{}, err
	}
	var s surround
	into := &s.before
	for i, p := range o.Single {
		switch {
		case p.Sequence != nil && into == &s.before:
			into = &s.after
		case p.SpecialToken != nil:
			special, ok := o.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return surround{}, c.errorf("special_tokens: %q is missing", p.SpecialToken.ID)
			}
			if *into = append(*into, special.IDs...); len(*into) > maxSurround {
				return surround{}, c.errorf("more than %d special tokens around a text", maxSurround)
			}
		default:
			return surround{}, c.errorf("single[%d]: neither a special token nor the one sequence", i)
		}
	}
	if into == &s.before {
		return surround{}, c.errorf("single: the sequence itself is missing")
	}
	return s, nil
}
