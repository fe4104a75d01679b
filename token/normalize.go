package token

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalizer rewrites text before pre-tokenization.
type normalizer func(w *work, text string) string

// plain returns a normalizer that takes time in proportion to the text.
func plain(f func(string) string) normalizer { return func(_ *work, s string) string { return f(s) } }

// newNormalizers builds the normalizer steps of a tokenizer.json.
func newNormalizers(c component) ([]normalizer, error) {
	parts, err := c.sequence("normalizers")
	if err != nil {
		return nil, err
	}
	var steps []normalizer
	for _, part := range parts {
		step, err := newNormalizer(part)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func newNormalizer(c component) (normalizer, error) {
	switch c.kind {
	case "NFC":
		return plain(formNormalizer(norm.NFC)), nil
	case "NFD":
		return plain(formNormalizer(norm.NFD)), nil
	case "NFKC":
		return plain(formNormalizer(norm.NFKC)), nil
	case "NFKD":
		return plain(formNormalizer(norm.NFKD)), nil
	case "Lowercase":
		return plain(lowercase), nil
	case "StripAccents":
		return plain(func(s string) string { return removeRunes(s, markRunes().has) }), nil
	case "Nmt":
		return plain(func(s string) string { return strings.Map(nmtRune, s) }), nil
	case "ByteLevel":
		return plain(toByteLevel), nil
	case "Strip":
		return newStripNormalizer(c)
	case "Prepend":
		return newPrependNormalizer(c)
	case "Replace":
		return newReplaceNormalizer(c)
	case "BertNormalizer":
		return newBertNormalizer(c)
	case "Precompiled":
		return newPrecompiledNormalizer(c)
	}
	return nil, c.unsupported()
}

// formNormalizer leaves characters unchanged if they are newer than the Unicode tables of
// the reference implementation, which treats them as letters that combine with nothing.
func formNormalizer(f norm.Form) func(string) string {
	tooNew := newCombiningRunes
	if f == norm.NFKC || f == norm.NFKD {
		tooNew = newCompatibilityRunes
	}
	return func(s string) string {
		if f.IsNormalString(s) {
			return s
		}
		keep := tooNew()
		var b strings.Builder
		for {
			i := strings.IndexFunc(s, keep.has)
			if i < 0 {
				break
			}
			size := runeSize(s, i)
			b.WriteString(formOf(f, s[:i]))
			b.WriteString(s[i : i+size])
			s = s[i+size:]
		}
		b.WriteString(formOf(f, s))
		return b.String()
	}
}

// lowercase maps each character on its own. The dotted capital I is special because its
// lower case is two characters.
func lowercase(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == 'İ' }) {
		return strings.Map(toLower, s)
	}
	return strings.Map(toLower, strings.ReplaceAll(s, "İ", "i̇"))
}

func removeRunes(s string, drop func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if drop(r) {
			return -1
		}
		return r
	}, s)
}

// nmtRune removes control characters and turns other white space into spaces.
func nmtRune(r rune) rune {
	switch {
	case r >= 0x01 && r <= 0x08, r == 0x0b, r >= 0x0e && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
		return -1
	case r == 0x09, r == 0x0a, r == 0x0c, r == 0x0d, r == 0x1680, r >= 0x200b && r <= 0x200f,
		r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == 0xfffd:
		return ' '
	}
	return r
}

func newStripNormalizer(c component) (normalizer, error) {
	var o struct {
		Left  bool `json:"strip_left"`
		Right bool `json:"strip_right"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	return func(_ *work, s string) string {
		if o.Left {
			s = strings.TrimLeftFunc(s, isSpace)
		}
		if o.Right {
			s = strings.TrimRightFunc(s, isSpace)
		}
		return s
	}, nil
}

func newPrependNormalizer(c component) (normalizer, error) {
	var o struct {
		Prepend string `json:"prepend"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if err := checkLength(c.field+".prepend", len(o.Prepend), maxContent); err != nil {
		return nil, err
	}
	return func(_ *work, s string) string {
		if s == "" {
			return s
		}
		return o.Prepend + s
	}, nil
}

func newReplaceNormalizer(c component) (normalizer, error) {
	var o struct {
		Pattern textPattern `json:"pattern"`
		Content string      `json:"content"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if err := checkLength(c.field+".content", len(o.Content), maxContent); err != nil {
		return nil, err
	}
	if p := o.Pattern.String; p != nil && *p != "" {
		return plain(func(s string) string { return strings.ReplaceAll(s, *p, o.Content) }), nil
	}
	find, err := o.Pattern.finder()
	if err != nil {
		return nil, c.errorf("%w", err)
	}
	return func(w *work, s string) string {
		var b strings.Builder
		for _, span := range find(w, nil, s) {
			if span.match {
				b.WriteString(o.Content)
			} else {
				b.WriteString(s[span.start:span.end])
			}
		}
		return b.String()
	}, nil
}

func newBertNormalizer(c component) (normalizer, error) {
	o := struct {
		CleanText    bool  `json:"clean_text"`
		Chinese      bool  `json:"handle_chinese_chars"`
		StripAccents *bool `json:"strip_accents"`
		Lowercase    bool  `json:"lowercase"`
	}{CleanText: true, Chinese: true, Lowercase: true}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	strip := o.Lowercase
	if o.StripAccents != nil {
		strip = *o.StripAccents
	}
	decompose := formNormalizer(norm.NFD)
	return func(_ *work, s string) string {
		if o.CleanText {
			s = strings.Map(cleanRune, s)
		}
		if o.Chinese {
			s = spaceChinese(s)
		}
		if strip {
			s = removeRunes(decompose(s), accentRunes().has)
		}
		if o.Lowercase {
			s = lowercase(s)
		}
		return s
	}, nil
}

// cleanRune removes characters that are not text and turns white space into spaces.
func cleanRune(r rune) rune {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return ' '
	case uncleanRunes().has(r):
		return -1
	case isSpace(r):
		return ' '
	}
	return r
}

// chineseRunes are the ideograph blocks BERT surrounds with spaces. The gap in the ranges
// is copied from the reference implementation.
var chineseRunes = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x3400, Hi: 0x4dbf, Stride: 1},
		{Lo: 0x4e00, Hi: 0x9fff, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x20000, Hi: 0x2a6df, Stride: 1},
		{Lo: 0x2a700, Hi: 0x2b73f, Stride: 1},
		{Lo: 0x2b740, Hi: 0x2b81f, Stride: 1},
		{Lo: 0x2b920, Hi: 0x2ceaf, Stride: 1},
		{Lo: 0x2f800, Hi: 0x2fa1f, Stride: 1},
	},
}

func spaceChinese(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(chineseRunes, r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.Is(chineseRunes, r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
