package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Place is the position of secrets in a text.
type Place string

// Places of secrets.
const (
	InURL    Place = ""       // user and query values of a URL; other texts are unchanged
	InPath   Place = "path"   // query values of a path
	InHeader Place = "header" // NAME=VALUE, hide the value unless the name is known to be harmless
	InPair   Place = "pair"   // NAME=VALUE, hide the value if the name suggests a secret
	InBody   Place = "body"   // JSON, hide the values of names that suggest a secret
	InMix    Place = "mix"    // words, hide headers written as header.NAME=VALUE
	InSalt   Place = "salt"   // hide the whole text unless it is a word for random salts
	InAll    Place = "all"    // hide the whole text
)

// Public returns text without the secrets at place p. The secrets are remembered, and Hide and Sweep remove them
// from other texts.
func (s *Secrets) Public(p Place, text string) string {
	switch p {
	case InHeader:
		name, value, ok := strings.Cut(text, "=")
		if !ok || strings.ContainsAny(name, ": \t\"") { // invalid syntax, rejected later
			_, behind, _ := strings.Cut(name, ":")
			s.Add(behind)
			return s.Public(InAll, text)
		}
		return name + "=" + s.Header(name, value)
	case InPair:
		if name, value, ok := strings.Cut(text, "="); ok && NamesSecret(name) && aName.MatchString(name) {
			return name + "=" + s.Header("", value)
		}
	case InBody:
		return s.body(text)
	case InPath:
		return s.query(text)
	case InMix:
		return s.mix(text)
	case InSalt:
		if text == "unique" || text == "" {
			return text
		}
		return s.Public(InAll, text)
	case InAll:
		s.Add(text)
		return Mark
	}
	return s.url(text)
}

var (
	harmless   = regexp.MustCompile(`(?i)^(accept(-.*)?|content-.*|user-agent|host|connection|.*version|x-request-id|priority|.*-tier|format|model|traceparent)$`)
	secretName = regexp.MustCompile(`auth([^o]|$|oriz)|key([^a-z]|$)|token|secret|passw|pwd|cookie|credential|signature|(^|[^a-z])sig([^a-z]|$)|bearer|jwt|salt|session_?id`)
	schemes    = regexp.MustCompile(`(?i)^(bearer|basic|token|digest|apikey|negotiate)$`)
	aName      = regexp.MustCompile(`^[\w.-]+$`)
	noSecret   = regexp.MustCompile(`tokens|tokeniz|token_?ids?|client-key|.*[-_](file|path)$`)
)

// URL returns a URL without its secrets.
func URL(text string) string { return (*Secrets)(nil).Public(InURL, text) }

// NamesSecret reports whether a name suggests a secret value.
func NamesSecret(name string) bool {
	return secretName.MatchString(noSecret.ReplaceAllString(strings.ToLower(name), ""))
}

// Header returns the value of a header without secrets. The scheme before a credential (Bearer) stays; each cookie
// value is hidden separately.
func (s *Secrets) Header(name, value string) string {
	if harmless.MatchString(name) {
		return value
	}
	if value = strings.TrimSpace(value); !schemes.MatchString(value) {
		s.Add(value)
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" ;,", r) }) {
		if schemes.MatchString(part) {
			continue
		}
		s.Add(part)
		if _, v, ok := strings.Cut(part, "="); ok {
			s.Add(v)
		}
		if user, password, ok := basic(part); ok {
			s.user(user, password)
		}
	}
	return Mark
}

// basic decodes the user and password of basic authentication.
func basic(text string) (user, password string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !utf8.Valid(b) {
		return "", "", false
	}
	return strings.Cut(string(b), ":")
}

func (s *Secrets) user(user, password string) {
	s.Add(user)
	s.Add(password)
	s.Add(base64.RawStdEncoding.EncodeToString([]byte(user + ":" + password)))
}

// url hides the user and the query values of a URL. It works on the text, because even an invalid URL may contain a
// secret.
func (s *Secrets) url(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	if at := userEnd(rest); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		s.user(unescaped(user), unescaped(password))
		for part := range strings.SplitSeq(password, "/") { // errors may quote the start of a password that looks like a port
			s.Add(part)
		}
		rest = Mark + rest[at:]
	}
	return scheme + "://" + s.query(rest)
}

func (s *Secrets) query(text string) string {
	path, query, hasQuery := strings.Cut(text, "?")
	if !hasQuery {
		return text
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, named := strings.Cut(pair, "=")
		switch {
		case !named:
			s.Add(unescaped(name))
			pairs[i] = Mark
		case !harmless.MatchString(name):
			s.Add(unescaped(value))
			pairs[i] = name + "=" + Mark
		}
	}
	return path + "?" + strings.Join(pairs, "&")
}

// userEnd returns the index of the @ after the user, or -1. An unescaped slash in a password makes the password
// look like an invalid port.
func userEnd(rest string) int {
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(authority, '@')
	if at >= 0 || strings.HasPrefix(authority, "[") {
		return at
	}
	if _, port, ok := strings.Cut(authority, ":"); ok && strings.Trim(port, "0123456789") != "" {
		return strings.LastIndexByte(rest, '@')
	}
	return -1
}

func unescaped(s string) string {
	if t, err := url.QueryUnescape(strings.ReplaceAll(s, "+", "%2B")); err == nil {
		return t
	}
	return s
}

// valueInText matches values in invalid JSON.
var valueInText = regexp.MustCompile(`[:=]\s*(?:"([^"]*)|'([^']*)|([^\s,{}"']+))`)

// maxInvalid limits the text that Learn reads.
const maxInvalid = 64 << 10

// Learn adds the values in the first 64 KiB of a text of invalid JSON or YAML. Each value takes time in every later call.
func (s *Secrets) Learn(text string) {
	for _, m := range valueInText.FindAllStringSubmatch(text[:min(len(text), maxInvalid)], -1) {
		s.Add(m[1] + m[2] + m[3])
	}
}

func (s *Secrets) body(text string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		for _, m := range valueInText.FindAllStringSubmatch(text, -1) {
			s.Add(m[1] + m[2] + m[3])
		}
		return s.Hide(text)
	}
	if !s.hideIn(&v, false) {
		return text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return Mark // a decoded value can always be encoded
	}
	return strings.TrimSpace(b.String())
}

// hideIn hides values whose names suggest a secret, and reports whether it hid any.
func (s *Secrets) hideIn(v *any, all bool) (hidden bool) {
	switch t := (*v).(type) {
	case map[string]any:
		for name, value := range t {
			hidden = s.hideIn(&value, all || NamesSecret(name)) || hidden
			t[name] = value
		}
	case []any:
		for i := range t {
			hidden = s.hideIn(&t[i], all) || hidden
		}
	case string:
		shown := s.url(t)
		if all {
			s.Header("", t)
			shown = Mark
		}
		hidden = shown != t
		*v = shown
	case json.Number:
		if all {
			s.Add(t.String())
			*v, hidden = Mark, true
		}
	}
	return hidden
}

// mix hides headers. A word without a name continues the previous header; the syntax is invalid, but the word may
// contain a secret.
func (s *Secrets) mix(text string) string {
	words := strings.Fields(text)
	inHeader, cut, hidden := false, false, false
	for i, word := range words {
		name, value, named := strings.Cut(word, "=")
		dressed := strings.HasPrefix(strings.TrimLeft(word, "-"), "header.")
		switch {
		case dressed && named:
			at := strings.Index(word, ".") + 1
			words[i] = word[:at] + s.Public(InHeader, word[at:])
		case inHeader && (cut || !named):
			s.Add(name) // the error message quotes the name
			words[i] = s.Public(InAll, word)
		default:
			words[i] = s.url(word)
		}
		inHeader, cut = dressed || inHeader && !named, dressed && schemes.MatchString(value)
		hidden = hidden || words[i] != word
	}
	if !hidden {
		return text
	}
	return strings.Join(words, " ")
}
