package backend

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"tacho/internal/jsonscan"
)

// maxMessage is how much of a server's words is kept.
const maxMessage = 300

var (
	htmlTitle  = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	htmlHidden = regexp.MustCompile(`(?is)<(script|style|head)\b.*?</(script|style|head)>|<!--.*?-->`)
	htmlTag    = regexp.MustCompile(`(?s)<[^>]*>`)
)

// words is what the body of a failed answer says to a human being, or
// otherwise if it says nothing.
func (c *client) words(body []byte, otherwise string) string {
	text := bytes.TrimSpace(body)
	var said string
	switch {
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		said = jsonWords(text)
	case len(text) > 0 && text[0] == '<':
		said = htmlWords(text)
	default:
		said = string(text)
	}
	if said = c.clip(said); said == "" {
		return otherwise
	}
	return said
}

// jsonWords finds the message in the ways servers and proxies nest it: in
// error, beside it, or in the detail of a Python framework.
func jsonWords(doc []byte) string {
	var s jsonscan.Scanner
	var failure, message, detail []byte
	s.Reset(doc)
	s.Object(func(key []byte) {
		switch string(key) {
		case "error":
			failure, _ = s.Failure(failure[:0])
		case "message":
			message, _ = s.String(message[:0])
		case "detail":
			if s.Type() == '"' {
				detail, _ = s.String(detail[:0])
			} else {
				detail = s.Skip()
			}
		}
	})
	for _, said := range [][]byte{failure, message, detail} {
		if len(said) > 0 {
			return string(said)
		}
	}
	return string(doc)
}

func htmlWords(doc []byte) string {
	if m := htmlTitle.FindSubmatch(doc); m != nil && len(bytes.TrimSpace(m[1])) > 0 {
		return string(m[1])
	}
	return string(htmlTag.ReplaceAll(htmlHidden.ReplaceAll(doc, []byte{' '}), []byte{' '}))
}

// clip makes one line of at most maxMessage bytes.
func (c *client) clip(s string) string { return c.clipTo(s, maxMessage) }

// quote shows the beginning of a payload that could not be read.
func (c *client) quote(payload []byte) string {
	return fmt.Sprintf("%q", c.clipTo(string(payload[:min(len(payload), maxBody)]), maxQuote))
}

func (c *client) clipTo(s string, limit int) string {
	s = c.Secrets.Hide(s) // before the cut, which might leave half a secret
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
