package token

import (
	"slices"
	"strings"
)

// piece is a section of text on its way to the model. first is set if the piece starts at
// the beginning of the complete text.
type piece struct {
	text  string
	first bool
	work  *work
}

// part returns p.text[start:end].
func (p piece) part(start, end int) piece {
	return piece{p.text[start:end], p.first && start == 0, p.work}
}

// preTokenizer splits or rewrites a piece and calls emit for each resulting piece.
type preTokenizer func(p piece, emit func(piece))

// newPreTokenizers builds the pre-tokenizer steps of a tokenizer.json. byteLevel is set
// if the resulting words are bytes.
func newPreTokenizers(c component) (steps []preTokenizer, byteLevel bool, err error) {
	parts, err := c.sequence("pretokenizers")
	if err != nil {
		return nil, false, err
	}
	for i, part := range parts {
		byteLevel = part.kind == "ByteLevel"
		step, err := newPreTokenizer(part)
		if err != nil {
			return nil, false, err
		}
		if step != nil {
			steps = append(steps, step)
		}
		if byteLevel && i < len(parts)-1 { // later steps see the byte-level characters
			steps = append(steps, func(p piece, emit func(piece)) { emit(piece{toByteLevel(p.text), p.first, p.work}) })
		}
	}
	return steps, byteLevel, nil
}

// newPreTokenizer builds one step, or nil if the component does nothing.
func newPreTokenizer(c component) (preTokenizer, error) {
	switch c.kind {
	case "ByteLevel":
		return newByteLevel(c)
	case "Split":
		return newSplit(c)
	case "Metaspace":
		return newMetaspace(c)
	case "Digits":
		return newDigits(c)
	case "Punctuation":
		return newPunctuation(c)
	case "CharDelimiterSplit":
		return newCharDelimiter(c)
	case "WhitespaceSplit":
		return splitAt(findRunes(isSpace), removed), nil
	case "Whitespace":
		return splitAt(findWords, removed), nil
	case "BertPreTokenizer":
		return splitBert, nil
	case "UnicodeScripts":
		return splitScripts, nil
	case "FixedLength":
		return newFixedLength(c)
	}
	return nil, c.unsupported()
}

// splitAt splits a text at the matches of find.
func splitAt(find finder, b behavior) preTokenizer {
	return func(p piece, emit func(piece)) {
		for _, s := range b.apply(find(p.work, nil, p.text)) {
			emit(p.part(s.start, s.end))
		}
	}
}

// byteLevelPattern is GPT-2's split pattern, which ByteLevel uses by default.
const byteLevelPattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func newByteLevel(c component) (preTokenizer, error) {
	o := struct {
		AddPrefixSpace bool `json:"add_prefix_space"`
		UseRegex       bool `json:"use_regex"`
	}{UseRegex: true}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if !o.UseRegex && !o.AddPrefixSpace {
		return nil, nil
	}
	cut := func(p piece, emit func(piece)) { emit(p) }
	if o.UseRegex {
		p, err := parsePattern(byteLevelPattern)
		if err != nil {
			return nil, c.errorf("%w", err)
		}
		cut = p.cut
	}
	if !o.AddPrefixSpace {
		return cut, nil
	}
	return func(p piece, emit func(piece)) {
		if !strings.HasPrefix(p.text, " ") {
			p.text = " " + p.text
		}
		cut(p, emit)
	}, nil
}

// cut is splitAt with isolated matches, without allocating spans.
func (p *pattern) cut(in piece, emit func(piece)) {
	for done := 0; done < len(in.text); {
		start, end := p.find(in.text, done, in.work)
		if done < start {
			emit(in.part(done, start))
		}
		if start < end {
			emit(in.part(start, end))
		}
		done = end
	}
}

func newSplit(c component) (preTokenizer, error) {
	var o struct {
		Pattern  textPattern `json:"pattern"`
		Behavior behavior    `json:"behavior"`
		Invert   bool        `json:"invert"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if !slices.Contains(behaviors, o.Behavior) {
		return nil, c.errorf("behavior: %q is not one of %q", o.Behavior, behaviors)
	}
	if o.Pattern.Regex != nil && o.Behavior == isolated {
		if p, err := parsePattern(*o.Pattern.Regex); err == nil {
			return p.cut, nil // Isolated keeps all spans, inverted or not
		}
	}
	find, err := o.Pattern.finder()
	if err != nil {
		return nil, c.errorf("%w", err)
	}
	if o.Invert {
		find = inverted(find)
	}
	return splitAt(find, o.Behavior), nil
}

func inverted(find finder) finder {
	return func(w *work, spans []span, s string) []span {
		spans = find(w, spans, s)
		for i := range spans {
			spans[i].match = !spans[i].match
		}
		return spans
	}
}

func newMetaspace(c component) (preTokenizer, error) {
	o, err := decodeMetaspace(c)
	if err != nil {
		return nil, err
	}
	mark := []rune(o.Replacement)[0]
	cut := splitAt(findRunes(func(r rune) bool { return r == mark }), mergedWithNext)
	return func(p piece, emit func(piece)) {
		p.text = strings.ReplaceAll(p.text, " ", o.Replacement)
		if (o.Scheme == "always" || o.Scheme == "first" && p.first) && !strings.HasPrefix(p.text, o.Replacement) {
			p.text = o.Replacement + p.text
		}
		if o.Split {
			cut(p, emit)
		} else {
			emit(p)
		}
	}, nil
}

// metaspaceOptions are shared by the pre-tokenizer and the decoder.
type metaspaceOptions struct {
	Replacement string `json:"replacement"`
	Scheme      string `json:"prepend_scheme"`
	AddPrefix   *bool  `json:"add_prefix_space"` // used by older files instead of a scheme
	Split       bool   `json:"split"`
}

func decodeMetaspace(c component) (metaspaceOptions, error) {
	o := metaspaceOptions{Replacement: metaspace, Split: true}
	if err := c.decode(&o); err != nil {
		return o, err
	}
	if o.Scheme == "" {
		o.Scheme = "always"
		if o.AddPrefix != nil && !*o.AddPrefix {
			o.Scheme = "never"
		}
	}
	if !slices.Contains([]string{"always", "first", "never"}, o.Scheme) {
		return o, c.errorf("prepend_scheme: %q is not one of always, first, never", o.Scheme)
	}
	if len([]rune(o.Replacement)) != 1 {
		return o, c.errorf("replacement: %q is not one character", o.Replacement)
	}
	return o, nil
}

func newDigits(c component) (preTokenizer, error) {
	var o struct {
		Individual bool `json:"individual_digits"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	b := contiguous
	if o.Individual {
		b = isolated
	}
	return splitAt(findRunes(isNumber), b), nil
}

func newPunctuation(c component) (preTokenizer, error) {
	o := struct {
		Behavior behavior `json:"behavior"`
	}{isolated}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if !slices.Contains(behaviors, o.Behavior) {
		return nil, c.errorf("behavior: %q is not one of %q", o.Behavior, behaviors)
	}
	return splitAt(findRunes(isPunctuation), o.Behavior), nil
}

func newCharDelimiter(c component) (preTokenizer, error) {
	var o struct {
		Delimiter string `json:"delimiter"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if o.Delimiter == "" {
		return nil, c.errorf("delimiter: empty")
	}
	return splitAt(findText(o.Delimiter), removed), nil
}

// findWords matches the white space between words. A word is a run of word characters or
// a run of other characters except white space.
func findWords(_ *work, spans []span, s string) []span {
	class := func(r rune) int {
		switch {
		case isWordRune(r):
			return 1
		case isSpace(r):
			return 0
		}
		return 2
	}
	start, current := 0, -1
	for i, r := range s {
		if k := class(r); k != current {
			if i > start {
				spans = append(spans, span{start, i, current == 0})
			}
			start, current = i, k
		}
	}
	if start < len(s) {
		spans = append(spans, span{start, len(s), current == 0})
	}
	return spans
}

var (
	splitSpaces      = splitAt(findRunes(isSpace), removed)
	splitPunctuation = splitAt(findRunes(isPunctuation), isolated)
)

// splitBert removes white space and isolates each punctuation mark.
func splitBert(p piece, emit func(piece)) {
	splitSpaces(p, func(word piece) { splitPunctuation(word, emit) })
}
