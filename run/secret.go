package run

import (
	"net/url"
	"strings"

	"tacho"
)

const redacted = "[redacted]"

// redactAll hides the values of KEY=VALUE entries.
func redactAll(entries []string) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		key, _, _ := strings.Cut(e, "=")
		out[i] = key + "=" + redacted
	}
	return out
}

// redactURL hides the password of a URL.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	u.User = url.User(redacted)
	return u.String()
}

func redactURLs(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = redactURL(s)
	}
	return out
}

// secrets are the strings that must not appear in anything that is kept or
// shown: the API key, the values of headers, the password of the URL.
func (p *Plan) secrets(apiKey string) []string {
	var out []string
	add := func(s string) {
		if len(s) >= 6 { // shorter ones are no secret, and would eat words
			out = append(out, s)
		}
	}
	add(apiKey)
	add(p.APIKey)
	for _, h := range p.Header {
		_, v, _ := strings.Cut(h, "=")
		add(v)
		for part := range strings.FieldsSeq(v) {
			add(part)
		}
	}
	for _, base := range p.BaseURL {
		if u, err := url.Parse(base); err == nil && u.User != nil {
			if pw, ok := u.User.Password(); ok {
				add(pw)
			}
		}
	}
	return out
}

// RedactArgs is a command line without its secrets.
func (p *Plan) RedactArgs(args []string, apiKey string) []string {
	r := replacer(p.secrets(apiKey))
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = r.Replace(a)
	}
	return out
}

func replacer(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, redacted)
	}
	return strings.NewReplacer(pairs...)
}

// scrubber is a Sink that takes secrets out of records before anybody keeps
// them: servers like to quote a key they do not like.
type scrubber struct {
	tacho.Sink
	words *strings.Replacer
}

// Add implements tacho.Sink.
func (s scrubber) Add(r *tacho.Record) error {
	if r.Failure != nil {
		r.Failure.Message = s.words.Replace(r.Failure.Message)
	}
	r.Text = s.words.Replace(r.Text)
	return s.Sink.Add(r)
}
