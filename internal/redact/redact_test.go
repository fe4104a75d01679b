package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// canary contains characters changed by every kind of escaping.
const canary = `sk-Ca/na+ry==42 "&<é`

func TestPublic(t *testing.T) {
	const key = "CANARY-1"
	for _, tt := range []struct {
		place      Place
		text, want string
	}{
		{InURL, "http://me:CANARY-1@host:80/v1", "http://[redacted]@host:80/v1"},
		{InURL, "http://CANARY-1@host", "http://[redacted]@host"},
		{InURL, "http://CANARY-1:@host", "http://[redacted]@host"},
		{InURL, "http://me:CANARY%2D1@host", "http://[redacted]@host"},
		{InURL, "http://me:CANARY-1/x@host:80/y", "http://[redacted]@host:80/y"},
		{InURL, "http://me:CANARY-1@ho st:bad", "http://[redacted]@ho st:bad"},
		{InURL, "http://host/metrics?token=CANARY-1&api-version=2024-02-01", "http://host/metrics?token=[redacted]&api-version=2024-02-01"},
		{InURL, "http://host/metrics?CANARY-1", "http://host/metrics?[redacted]"},
		{InURL, "http://[::1]:8000/a@b", "http://[::1]:8000/a@b"},
		{InURL, "http://host:8000/a@b", "http://host:8000/a@b"},
		{InURL, "/data/what?.txt", "/data/what?.txt"},
		{InPath, "/v1/completions?code=CANARY-1", "/v1/completions?code=[redacted]"},
		{InHeader, "Authorization=Bearer CANARY-1", "Authorization=[redacted]"},
		{InHeader, "X-Other=CANARY-1", "X-Other=[redacted]"},
		{InHeader, "X-Short=ab", "X-Short=[redacted]"},
		{InHeader, "Cookie=a=1; sid=CANARY-1", "Cookie=[redacted]"},
		{InHeader, "Content-Type=application/json", "Content-Type=application/json"},
		{InPair, "hf_token=CANARY-1", "hf_token=[redacted]"},
		{InPair, "author=somebody", "author=somebody"},
		{InBody, `{"max_tokens":5,"api_key":"CANARY-1","tokenizer":"gpt2"}`, `{"api_key":"[redacted]","max_tokens":5,"tokenizer":"gpt2"}`},
		{InBody, `{"auth":{"user":"me","with":["CANARY-1",77]},"x":1.50}`, `{"auth":{"user":"[redacted]","with":["[redacted]","[redacted]"]},"x":1.50}`},
		{InBody, `{"image":"http://CANARY-1@host/x"}`, `{"image":"http://[redacted]@host/x"}`},
		{InBody, `{"temperature": 0, "stop": ["a"]}`, `{"temperature": 0, "stop": ["a"]}`},
		{InBody, `{api_key: CANARY-1}`, `{api_key: [redacted]}`},
		{InBody, `{"api_key":"CANARY-1"`, `{"api_key":"[redacted]"`},
		{InMix, "weight=2  label=a", "weight=2  label=a"},
		{InMix, "weight=2 header.x-api-key=CANARY-1 label=a", "weight=2 header.x-api-key=[redacted] label=a"},
		{InMix, "header.authorization=Bearer CANARY-1 label=a", "header.authorization=[redacted] [redacted] label=a"},
		{InSalt, "CANARY-1", "[redacted]"},
		{InSalt, "unique", "unique"},
		{InBody, `{"cache_salt":"CANARY-1"}`, `{"cache_salt":"[redacted]"}`},
		{InAll, "CANARY-1", "[redacted]"},
	} {
		var s Secrets
		if got := s.Public(tt.place, tt.text); got != tt.want {
			t.Errorf("%s %s is shown as %s, not %s", tt.place, tt.text, got, tt.want)
		}
		if strings.Contains(tt.text, key) && s.Sweep("they said CANARY-1!") != "they said [redacted]!" {
			t.Errorf("%s %s: the key is not known from then on", tt.place, tt.text)
		}
		if got := (*Secrets)(nil).Public(tt.place, tt.text); strings.Contains(got, key) && tt.place != InBody {
			t.Errorf("by place alone: %s", got)
		}
	}
}

// A secret is found in any escaping.
func TestSpellings(t *testing.T) {
	inJSON, _ := json.Marshal(canary)
	twice, _ := json.Marshal(string(inJSON))
	b64 := base64.StdEncoding.EncodeToString([]byte(canary))
	for _, spelling := range []string{
		canary, string(inJSON), string(twice), fmt.Sprintf("%q", canary), fmt.Sprintf("%+q", canary), html.EscapeString(canary),
		url.QueryEscape(canary), url.PathEscape(canary), url.QueryEscape(url.QueryEscape(canary)),
		url.UserPassword("u", canary).String(), b64, base64.URLEncoding.EncodeToString([]byte(canary)), url.QueryEscape(b64),
		base64.StdEncoding.EncodeToString([]byte("me:" + canary)),
	} {
		var s Secrets
		s.Public(InURL, "http://me:"+url.PathEscape(canary)+"@host")
		got := s.Sweep("before " + spelling + " after")
		if strings.Trim(strings.NewReplacer("=", "", "%3D", "", `\`, "", `"`, "", "u:", "").Replace(got), " ") != "before "+Mark+" after" {
			t.Errorf("%s is shown as %s", spelling, got)
		}
	}
}

// If secrets overlap, no piece of them remains.
func TestOverlap(t *testing.T) {
	for _, order := range [][2]string{{"abc-def", "def-ghi-jkl"}, {"def-ghi-jkl", "abc-def"}} {
		var s Secrets
		s.Add(order[0])
		s.Add(order[1])
		if got := s.Sweep("x abc-def-ghi-jkl, abc-defdef-ghi-jkl y"); got != "x [redacted], [redacted][redacted] y" {
			t.Errorf("%v: %s", order, got)
		}
	}
}

// Ordinary text is unchanged for any key.
func TestOrdinaryText(t *testing.T) {
	const report = "openai served 123456 tokens; test, EMPTY, a, in 12.50 s, by localhost: no completed request"
	var s Secrets
	for _, key := range []string{"", "a", "in", "no", "test", "EMPTY", "openai", "tokens", "completed", "localhost", "123456", "12.50", "Request"} {
		s.Add(key)
		s.Header("Authorization", "Bearer "+key)
	}
	if got := s.Sweep(report); got != report {
		t.Errorf("it reads %s", got)
	}
	if got := s.Hide("bad key openai, Bearer wanted"); got != "bad key [redacted], Bearer wanted" {
		t.Errorf("text of a server: %s", got)
	}
}

// SweepJSON returns valid JSON and does not change numbers.
func TestSweepJSON(t *testing.T) {
	var s Secrets
	s.Add("123456789012")
	s.Add("nfoo-12")
	s.Add(canary)
	in := map[string]any{"n": 123456789012, "s": "id 123456789012", "line": "a\nfoo-12 b", "key": "a\nnfoo-12", "c": canary, "quote": `"\`}
	doc := must.Get(json.Marshal(in))(t)
	var got map[string]any
	must.Do(t, json.Unmarshal(s.SweepJSON(doc), &got))
	for name, want := range map[string]any{"n": 123456789012., "s": "id [redacted]", "line": "a\nfoo-12 b", "key": "a\n[redacted]", "c": Mark, "quote": `"\`} {
		if got[name] != want {
			t.Errorf("%s is %v, not %v", name, got[name], want)
		}
	}
	if clean := []byte(`{"a":1}`); &s.SweepJSON(clean)[0] != &clean[0] {
		t.Error("a clean document was written anew")
	}
}
