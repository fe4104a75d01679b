// Package redact removes secrets from text. It finds secrets by their place (the password of a URL, a header, a key
// in a body). After finding a secret, it removes the secret from all other texts, in any escaping. All knowledge
// about secrets is in this package.
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

// Mark replaces a secret.
const Mark = "[redacted]"

// Secrets is the set of known secrets. A nil *Secrets hides secrets only by place. Secrets is safe for concurrent
// use.
type Secrets struct {
	mu    sync.RWMutex
	known []secret
}

type secret struct {
	text      string
	core      string // a substring not changed by any escaping
	spellings *regexp.Regexp
	plain     bool // possibly an ordinary word or number
}

const (
	// minLength is the length of the shortest secret to look for.
	minLength = 4
	// minDistinct is the length from which a text rarely occurs in a report by accident. Plain words and numbers need
	// minPlain.
	minDistinct = 6
	minPlain    = 12
	// maxLength limits the part of a secret to look for, because the pattern of its spellings is much longer.
	maxLength = 2000
	// maxKnown limits the number of secrets, because a dataset may contain different headers for each request.
	maxKnown = 3000
)

// Add adds a secret, to be hidden as it is and in base64.
func (s *Secrets) Add(text string) {
	text = strings.TrimSpace(text)
	if len(text) > maxLength {
		text = strings.ToValidUTF8(text[:maxLength], "")
	}
	if s == nil || len(text) < minLength || s.knows(text) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) > maxKnown {
		return
	}
	for _, t := range []string{text, base64.RawStdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text))} {
		if !slices.ContainsFunc(s.known, func(k secret) bool { return k.text == t }) {
			s.known = append(s.known, secret{t, core(t), spellings(t), len(t) < minDistinct || len(t) < minPlain && plainText.MatchString(t)})
		}
	}
}

func (s *Secrets) knows(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.known, func(k secret) bool { return k.text == text })
}

var plainText = regexp.MustCompile(`^(\pL\p{Ll}+|[0-9.,:-]+)$`)

// Hide returns a text of a server, proxy or library without secrets.
func (s *Secrets) Hide(text string) string {
	return s.replace(text, func(secret) bool { return true })
}

// Sweep removes secrets from complete outputs, which include our own words and numbers. Sweep ignores secrets that
// look like ordinary words: the key "openai" must not destroy a report.
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
	// If two secrets overlap, hide both as one range; otherwise a piece of the other would remain.
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

// touches reports whether Sweep may find a secret in text.
func (s *Secrets) touches(text []byte) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.known, func(k secret) bool { return !k.plain && bytes.Contains(text, []byte(k.core)) })
}

// SweepJSON is Sweep for the strings of a JSON document. The result is valid JSON.
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
		return literal // a string can always be encoded
	}
	return b
}

// core returns the longest run of letters and digits, which no escaping changes.
func core(s string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
