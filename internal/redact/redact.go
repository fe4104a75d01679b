// Package redact knows what is secret: by its place (the password of a URL, a
// header, a key in a body), and, once it has been seen in its place, wherever
// else it turns up, in whatever spelling. No other package does.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Mark stands where a secret stood.
const Mark = "[redacted]"

// Secrets are what must not be seen in anything that is kept or shown. The
// methods of a nil *Secrets hide by place alone. It is safe for concurrent use.
type Secrets struct {
	mu    sync.RWMutex
	known []secret
}

type secret struct {
	text      string
	core      string // a part of it that every spelling has
	spellings *regexp.Regexp
	plain     bool // it might be an ordinary word or number
}

const (
	// shortest is what can be told from the words around it.
	shortest = 4
	// notable is what does not stand in a report by chance, unless it is plain:
	// a plain word or number must be longPlain for that.
	notable   = 6
	longPlain = 12
	// mostKnown bounds what a file can have us look for: a dataset may have a
	// header of its own for each request.
	mostKnown = 3000
)

// Add has a secret hidden wherever it turns up, as it is or in base64.
func (s *Secrets) Add(text string) {
	text = strings.TrimSpace(text)
	if s == nil || len(text) < shortest || s.knows(text) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) > mostKnown {
		return
	}
	for _, t := range []string{text, base64.RawStdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text))} {
		if !slices.ContainsFunc(s.known, func(k secret) bool { return k.text == t }) {
			s.known = append(s.known, secret{t, core(t), spellings(t), len(t) < notable || len(t) < longPlain && isPlain(t)})
		}
	}
}

func (s *Secrets) knows(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.known, func(k secret) bool { return k.text == text })
}

var plainText = regexp.MustCompile(`^(\pL\p{Ll}+|[0-9.,:-]+)$`)

func isPlain(s string) bool { return plainText.MatchString(s) }

// Hide is what others said (a server, a proxy, a library) without our secrets.
func (s *Secrets) Hide(text string) string {
	return s.replace(text, func(secret) bool { return true })
}

// Sweep is for whole outputs, our own words and figures among them. Secrets that
// look like one of those are left alone: a key of "openai" must not eat the report.
func (s *Secrets) Sweep(text string) string {
	return s.replace(text, func(k secret) bool { return !k.plain })
}

func (s *Secrets) replace(text string, wanted func(secret) bool) string {
	if s == nil || text == "" {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found [][]int
	for _, k := range s.known {
		if wanted(k) && strings.Contains(text, k.core) {
			found = append(found, k.spellings.FindAllStringIndex(text, -1)...)
		}
	}
	if found == nil {
		return text
	}
	// Where two overlap, hiding one would leave a piece of the other.
	slices.SortFunc(found, func(a, b []int) int { return a[0] - b[0] })
	var out strings.Builder
	shown := 0
	for _, at := range found {
		if at[0] >= shown {
			out.WriteString(text[shown:at[0]] + Mark)
		}
		shown = max(shown, at[1])
	}
	return out.String() + text[shown:]
}

// touches says whether Sweep may find something in text.
func (s *Secrets) touches(text []byte) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.known, func(k secret) bool { return !k.plain && bytes.Contains(text, []byte(k.core)) })
}

// SweepJSON is Sweep for the strings of a JSON document. The result is JSON, too.
func (s *Secrets) SweepJSON(doc []byte) []byte {
	if !s.touches(doc) {
		return doc
	}
	var out bytes.Buffer
	for len(doc) > 0 {
		from := bytes.IndexByte(doc, '"')
		if from < 0 {
			break
		}
		to := from + 1
		for to < len(doc) && doc[to] != '"' {
			if doc[to] == '\\' {
				to++
			}
			to++
		}
		to = min(to+1, len(doc))
		out.Write(doc[:from])
		out.Write(s.sweepString(doc[from:to]))
		doc = doc[to:]
	}
	out.Write(doc)
	return out.Bytes()
}

func (s *Secrets) sweepString(literal []byte) []byte {
	var text string
	if json.Unmarshal(literal, &text) != nil {
		return literal
	}
	swept := s.Sweep(text)
	if swept == text {
		return literal
	}
	b, err := json.Marshal(swept)
	if err != nil {
		return literal // a string is always written
	}
	return b
}

// core is the longest run of letters and digits, which no escaping changes.
func core(s string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
