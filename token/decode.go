package token

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder is one step from token texts back to the original text. The output of the last
// step is joined.
type decoder func(tokens []string) []string

// newDecoders builds the decoder steps of a tokenizer.json.
func newDecoders(c component) ([]decoder, error) {
	parts, err := c.sequence("decoders")
	if err != nil {
		return nil, err
	}
	var steps []decoder
	for _, part := range parts {
		step, err := newDecoder(part)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func newDecoder(c component) (decoder, error) {
	switch c.kind {
	case "ByteLevel":
		return decodeByteLevel, nil
	case "ByteFallback":
		return decodeByteFallback, nil
	case "Fuse":
		return func(tokens []string) []string { return []string{strings.Join(tokens, "")} }, nil
	case "Replace":
		replace, err := newReplaceNormalizer(c)
		if err != nil {
			return nil, err
		}
		return func(tokens []string) []string {
			w := newWork(totalLength(tokens))
			return eachToken(func(_ int, token string) string { return replace(&w, token) })(tokens)
		}, nil
	case "Strip":
		return newStripDecoder(c)
	case "Metaspace":
		return newMetaspaceDecoder(c)
	case "WordPiece":
		return newWordPieceDecoder(c)
	case "BPEDecoder":
		return newSuffixDecoder(c)
	case "CTC":
		return newCTCDecoder(c)
	}
	return nil, c.unsupported()
}

func eachToken(f func(i int, token string) string) decoder {
	return func(tokens []string) []string {
		for i, t := range tokens {
			tokens[i] = f(i, t)
		}
		return tokens
	}
}

// decodeByteLevel turns the characters of tokens back into bytes. A token with characters
// outside the byte-level alphabet is an added token and is copied unchanged.
func decodeByteLevel(tokens []string) []string {
	var b []byte
	for _, t := range tokens {
		var ok bool
		if b, ok = appendFromByteLevel(b, t); !ok {
			b = append(b, t...)
		}
	}
	return []string{toValid(string(b))}
}

// toValid replaces invalid UTF-8 with U+FFFD, one for each maximal valid prefix of a
// truncated sequence, as most decoders do.
func toValid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			size = brokenLength(s)
		}
		b.WriteRune(r)
		s = s[size:]
	}
	return b.String()
}

// brokenLength returns the length of the longest prefix of s that could start a
// character, at least 1.
func brokenLength(s string) int {
	for n := 2; n < utf8.UTFMax && n <= len(s); n++ {
		if utf8.FullRuneInString(s[:n]) {
			return n - 1
		}
	}
	return min(utf8.UTFMax-1, len(s))
}

// decodeByteFallback joins runs of <0xNN> into text. If the bytes of a run are not UTF-8,
// each byte becomes a U+FFFD.
func decodeByteFallback(tokens []string) []string {
	var out []string
	var run []byte
	flush := func() {
		if utf8.Valid(run) {
			out = append(out, string(run))
		} else {
			for range run {
				out = append(out, "\uFFFD")
			}
		}
		run = run[:0]
	}
	for _, t := range tokens {
		if b, ok := byteOfToken(t); ok {
			run = append(run, b)
			continue
		}
		if len(run) > 0 {
			flush()
		}
		out = append(out, t)
	}
	if len(run) > 0 {
		flush()
	}
	return out
}

func byteOfToken(t string) (byte, bool) {
	if len(t) != 6 || !strings.HasPrefix(t, "<0x") || t[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(t[3:5], 16, 8)
	return byte(b), err == nil
}

func newStripDecoder(c component) (decoder, error) {
	var o struct {
		Content string `json:"content"`
		Start   int    `json:"start"`
		Stop    int    `json:"stop"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if o.Content == "" {
		return nil, c.errorf("content: empty")
	}
	return eachToken(func(_ int, t string) string {
		for n := 0; n < o.Start && strings.HasPrefix(t, o.Content); n++ {
			t = t[len(o.Content):]
		}
		for n := 0; n < o.Stop && strings.HasSuffix(t, o.Content); n++ {
			t = t[:len(t)-len(o.Content)]
		}
		return t
	}), nil
}

func newMetaspaceDecoder(c component) (decoder, error) {
	o, err := decodeMetaspace(c)
	if err != nil {
		return nil, err
	}
	return eachToken(func(i int, t string) string {
		space := " "
		if i == 0 && o.Scheme != "never" {
			space = ""
		}
		return strings.ReplaceAll(t, o.Replacement, space)
	}), nil
}

// cleanupSteps remove the spaces WordPiece puts before punctuation. Each step works on
// the result of the previous step.
var cleanupSteps = [][2]string{
	{" .", "."},
	{" ?", "?"},
	{" !", "!"},
	{" ,", ","},
	{" ' ", "'"},
	{" n't", "n't"},
	{" 'm", "'m"},
	{" do not", " don't"},
	{" 's", "'s"},
	{" 've", "'ve"},
	{" 're", "'re"},
}

func cleanUp(t string) string {
	for _, step := range cleanupSteps {
		t = strings.ReplaceAll(t, step[0], step[1])
	}
	return t
}

func newWordPieceDecoder(c component) (decoder, error) {
	o := struct {
		Prefix  string `json:"prefix"`
		Cleanup bool   `json:"cleanup"`
	}{"##", true}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	return eachToken(func(i int, t string) string {
		if i > 0 {
			if rest, ok := strings.CutPrefix(t, o.Prefix); ok {
				t = rest
			} else {
				t = " " + t
			}
		}
		if o.Cleanup {
			t = cleanUp(t)
		}
		return t
	}), nil
}

// newCTCDecoder builds the decoder of speech recognition models (CTC): repeated tokens
// collapse into one, and padding separates genuine repetitions.
func newCTCDecoder(c component) (decoder, error) {
	o := struct {
		Pad       string `json:"pad_token"`
		Delimiter string `json:"word_delimiter_token"`
		Cleanup   bool   `json:"cleanup"`
	}{"<pad>", "|", true}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	return func(tokens []string) []string {
		tokens = slices.Compact(tokens)
		for i, t := range tokens {
			tokens[i] = strings.ReplaceAll(t, o.Pad, "")
			if o.Cleanup {
				tokens[i] = strings.ReplaceAll(cleanUp(tokens[i]), o.Delimiter, " ")
			}
		}
		return tokens
	}, nil
}

func newSuffixDecoder(c component) (decoder, error) {
	o := struct {
		Suffix string `json:"suffix"`
	}{"</w>"}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	return func(tokens []string) []string {
		for i, t := range tokens {
			space := " "
			if i == len(tokens)-1 {
				space = ""
			}
			tokens[i] = strings.ReplaceAll(t, o.Suffix, space)
		}
		return tokens
	}, nil
}
