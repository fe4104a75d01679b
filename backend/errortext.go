package backend

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// maxMessage is the maximum length of an error message, in bytes.
const maxMessage = 300

var (
	htmlTitle  = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	htmlHidden = regexp.MustCompile(`(?is)<(script|style|head)\b.*?</(script|style|head)>|<!--.*?-->`)
	htmlTag    = regexp.MustCompile(`(?s)<[^>]*>`)
)

// errorMessage extracts the human-readable message from the body of an error response. If there is none,
// errorMessage returns otherwise.
func (c *client) errorMessage(body []byte, otherwise string) string {
	text := bytes.TrimSpace(body)
	var message string
	switch {
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		message = jsonMessage(text)
	case len(text) > 0 && text[0] == '<':
		message = htmlMessage(text)
	default:
		message = string(text)
	}
	if message = c.clip(message); message == "" {
		return otherwise
	}
	return message
}

// jsonMessage finds the message in the places used by servers and proxies: in error, next to error, or in the
// detail member of Python frameworks.
func jsonMessage(doc []byte) string {
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
	for _, found := range [][]byte{failure, message, detail} {
		if len(found) > 0 {
			return string(found)
		}
	}
	return string(doc)
}

func htmlMessage(doc []byte) string {
	if m := htmlTitle.FindSubmatch(doc); m != nil && len(bytes.TrimSpace(m[1])) > 0 {
		return string(m[1])
	}
	return string(htmlTag.ReplaceAll(htmlHidden.ReplaceAll(doc, []byte{' '}), []byte{' '}))
}

// clip returns s on one line and at most maxMessage bytes long.
func (c *client) clip(s string) string { return c.clipTo(s, maxMessage) }

// quote returns the beginning of an unreadable payload, quoted.
func (c *client) quote(payload []byte) string {
	return fmt.Sprintf("%q", c.clipTo(string(payload[:min(len(payload), maxBody)]), maxQuote))
}

func (c *client) clipTo(s string, limit int) string {
	s = c.Secrets.Hide(s) // before clipping, because clipping could leave half a secret
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
