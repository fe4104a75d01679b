package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A shape is one kind of wrong or unusual response.
type shape struct {
	name string
	// want lists the right causes, or "ok" for success: first for all kinds, then for some kinds by class (events,
	// lines, document, unmarked) or name. Example: "truncated document=malformed tgi=ok|empty".
	want   string
	stalls bool // ends only by the request's timeout
	bend   func(o *out)
}

// wants returns the right causes for a kind.
func (s *shape) wants(kind, class string) []string {
	words := strings.Fields(s.want)
	right := words[0]
	for _, who := range []string{class, kind} {
		for _, w := range words[1:] {
			if name, causes, _ := strings.Cut(w, "="); name == who {
				right = causes
			}
		}
	}
	return strings.Split(right, "|")
}

// changed replaces the body.
func changed(body func(a *answer) []byte) func(*out) {
	return func(o *out) { o.send(body(o.answer)) }
}

// rawBytes sends exactly these bytes and closes the connection.
func rawBytes(format string, a ...any) func(*out) {
	return func(o *out) { o.raw(fmt.Sprintf(format, a...)) }
}

// headed sends a custom head and the correct body.
func headed(head string) func(*out) {
	return func(o *out) {
		o.raw(strings.NewReplacer("{type}", o.typ, "{length}", fmt.Sprint(len(o.body))).Replace(head))
		o.raw(string(o.body))
	}
}

// middle returns the index of the middle event.
func middle(a *answer) int { return len(a.events) / 2 }

// inserted inserts a text between two events, or replaces a document.
func inserted(what string) func(*out) {
	return changed(func(a *answer) []byte {
		if len(a.events) == 1 {
			return []byte(what)
		}
		return bytes.Join(slices.Insert(slices.Clone(a.events), middle(a), []byte(what)), nil)
	})
}

// event sends a payload in the framing of the response.
func event(payload string) func(*out) {
	return func(o *out) {
		if bytes.HasPrefix(bytes.TrimSpace(o.body), []byte("{")) {
			inserted(payload + "\n")(o)
			return
		}
		inserted("data: " + payload + "\n\n")(o)
	}
}

// replaced replaces a pattern in the body.
func replaced(pattern, by string) func(*out) {
	re := regexp.MustCompile(pattern)
	return changed(func(a *answer) []byte { return re.ReplaceAll(a.body, []byte(by)) })
}

// everyEvent rewrites each event.
func everyEvent(change func(e []byte) []byte) func(*out) {
	return changed(func(a *answer) []byte {
		var b []byte
		for _, e := range a.events {
			b = append(b, change(e)...)
		}
		return b
	})
}

// shapes lists all shapes.
var shapes = slices.Concat(cuts(), statuses(), events, payloads, framings, heads, floods, waits)

// cuts end the response early at various points: with a regular end, by closing the connection, and by resetting
// the connection.
func cuts() (all []shape) {
	places := []struct {
		name  string
		clean string // causes if the body ends regularly
		upTo  func(a *answer) []byte
	}{
		{"behind the head", "truncated unmarked=empty triton-vllm=empty", func(*answer) []byte { return nil }},
		{"inside the first event", "malformed", func(a *answer) []byte { return a.body[:len(a.events[0])/2] }},
		{"behind the first event", "truncated document=ok unmarked=ok tgi=truncated", func(a *answer) []byte { return a.events[0] }},
		{"inside an event", "truncated document=malformed", func(a *answer) []byte {
			b := bytes.Join(a.events[:middle(a)], nil)
			return append(b, a.events[middle(a)][:len(a.events[middle(a)])/2]...)
		}},
		{"inside a character", "truncated document=malformed", func(a *answer) []byte {
			b := bytes.Join(a.events[:middle(a)], nil)
			return append(append(b, a.events[middle(a)][:len(a.events[middle(a)])/2]...), 0xc3)
		}},
		{"between events", "truncated document=truncated unmarked=ok", func(a *answer) []byte { return bytes.Join(a.events[:middle(a)], nil) }},
		{"before the last byte", "ok document=malformed", func(a *answer) []byte { return a.body[:len(a.body)-1] }},
	}
	for _, p := range places {
		broken := "reset"
		if p.name == "before the last byte" {
			broken = "ok unmarked=reset document=reset"
		}
		if p.name == "behind the first event" {
			broken = "reset document=ok"
		}
		all = append(all,
			shape{name: "ends " + p.name, want: p.clean, bend: changed(p.upTo)},
			shape{name: "closed " + p.name, want: broken, bend: func(o *out) { o.head(); o.chunk(p.upTo(o.answer)) }},
			shape{name: "reset " + p.name, want: strings.ReplaceAll(broken, "ok", "ok|reset"), bend: func(o *out) { o.head(); o.chunk(p.upTo(o.answer)); o.reset() }},
		)
	}
	return all
}

// statuses are responses with various statuses, with and without a body.
func statuses() (all []shape) {
	for _, code := range []int{201, 202, 206, 226, 299, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 408, 413, 418, 422, 429, 451, 499, 500, 501, 502, 503, 504, 511, 599, 600, 999} {
		all = append(all, shape{name: fmt.Sprintf("status %d", code), want: "status", bend: rawBytes(
			"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nLocation: http://127.0.0.2:9/\r\nContent-Length: 35\r\n\r\n{\"error\":{\"message\":\"as I please\"}}", code, http.StatusText(code))})
	}
	for _, code := range []int{204, 205, 304, 404, 429, 500, 503} {
		all = append(all, shape{name: fmt.Sprintf("status %d without a body", code), want: "status", bend: rawBytes("HTTP/1.1 %d\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", code)})
	}
	for _, code := range []int{100, 102, 103, 110, 199} {
		all = append(all,
			shape{name: fmt.Sprintf("status %d and then the answer", code), want: "ok", bend: func(o *out) {
				o.raw(fmt.Sprintf("HTTP/1.1 %d Wait\r\nLink: </x>\r\n\r\n", code))
				o.send(o.body)
			}},
			shape{name: fmt.Sprintf("status %d and then nothing", code), want: "reset", bend: rawBytes("HTTP/1.1 %d Wait\r\n\r\n", code)})
	}
	for _, code := range []string{"0", "099", "20", "2000", "abc", "-200", "2 0"} {
		all = append(all, shape{name: "status " + code, want: "malformed|status", bend: rawBytes("HTTP/1.1 %s OK\r\nContent-Length: 0\r\n\r\n", code)})
	}
	return append(all,
		shape{name: "another protocol", want: "status", bend: func(o *out) {
			o.raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			o.stall()
		}},
		shape{name: "another protocol and noise", want: "status", bend: rawBytes("HTTP/1.1 101 Switching Protocols\r\n\r\n%s", strings.Repeat("noise", 1000))},
		shape{name: "hints without an end", want: "too-large", bend: func(o *out) {
			for o.raw(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 100)) {
			}
		}},
		shape{name: "redirect to itself", want: "status", bend: rawBytes("HTTP/1.1 307 Away\r\nConnection: close\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")},
		shape{name: "redirect nowhere", want: "status", bend: rawBytes("HTTP/1.1 302 Away\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")},
		shape{name: "redirect to nonsense", want: "status", bend: rawBytes("HTTP/1.1 302 Away\r\nConnection: close\r\nLocation: http://[::%%zz\r\nContent-Length: 0\r\n\r\n")},
		shape{name: "refusal as a page", want: "status", bend: rawBytes("HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html><head><title>502 Bad Gateway</title></head></html>")},
		shape{name: "refusal of 100 MB", want: "status", bend: func(o *out) { o.status = 500; o.head(); o.flood(strings.Repeat("no ", 1<<16), 100<<20) }},
		shape{name: "refusal cut short", want: "status", bend: rawBytes("HTTP/1.1 500 Oops\r\nContent-Length: 1000\r\n\r\n{\"error\":")},
	)
}

// events are complete payloads in an unusual order.
var events = []shape{
	{name: "as it should be", want: "ok", bend: func(o *out) { o.send(o.body) }},
	{name: "every event twice", want: "ok document=malformed", bend: everyEvent(func(e []byte) []byte { return slices.Concat(e, e) })},
	{name: "the last event twice", want: "ok document=malformed", bend: changed(func(a *answer) []byte { return slices.Concat(a.body, a.events[len(a.events)-1]) })},
	{name: "the whole answer twice", want: "ok document=malformed", bend: changed(func(a *answer) []byte { return slices.Concat(a.body, a.body) })},
	{name: "the first event missing", want: "ok document=truncated", bend: changed(func(a *answer) []byte { return bytes.Join(a.events[1:], nil) })},
	{name: "a middle event missing", want: "ok document=truncated", bend: changed(func(a *answer) []byte {
		return bytes.Join(slices.Delete(slices.Clone(a.events), middle(a), middle(a)+1), nil)
	})},
	{name: "two events swapped", want: "ok", bend: changed(func(a *answer) []byte {
		e := slices.Clone(a.events)
		if len(e) > 4 {
			e[2], e[3] = e[3], e[2]
		}
		return bytes.Join(e, nil)
	})},
	{name: "backwards", want: "any document=ok", bend: changed(func(a *answer) []byte {
		e := slices.Clone(a.events)
		slices.Reverse(e)
		return bytes.Join(e, nil)
	})},
	{name: "only the last event", want: "ok|empty", bend: changed(func(a *answer) []byte { return a.events[len(a.events)-1] })},
	{name: "nothing at all", want: "truncated unmarked=empty triton-vllm=empty", bend: rawBytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")},
	{name: "blank lines alone", want: "malformed unmarked=empty triton-vllm=empty", bend: changed(func(*answer) []byte { return []byte("\n\n\n\n\n\n") })},
	{name: "comments alone", want: "malformed unmarked=empty triton-vllm=empty", bend: changed(func(*answer) []byte { return []byte(strings.Repeat(": ping\n\n", 100)) })},
}

// payloads are events with unusual contents.
var payloads = []shape{
	{name: "broken JSON", want: "malformed", bend: event("{nonsense")},
	{name: "a list", want: "malformed", bend: event("[1,2,3]")},
	{name: "a number", want: "malformed", bend: event("42")},
	{name: "a string", want: "malformed", bend: event(`"hello"`)},
	{name: "a null", want: "malformed", bend: event("null")},
	{name: "an empty object", want: "ok document=any", bend: event("{}")},
	{name: "lists in lists", want: "malformed", bend: event(strings.Repeat("[", 200_000))},
	{name: "objects in objects", want: "malformed", bend: event(strings.Repeat(`{"a":`, 200_000))},
	{name: "two documents in an event", want: "malformed", bend: event("{} {}")},
	{name: "a zero byte in an event", want: "malformed", bend: event("{\"a\":\"\x00\"}")},
	{name: "zero bytes between events", want: "ok lines=malformed document=malformed", bend: inserted("\x00\x00\x00\n\n")},
	{name: "bytes that are not text", want: "ok lines=malformed document=malformed", bend: inserted("\xff\xfe\xfd\n\n")},
	{name: "texts that are not UTF-8", want: "ok", bend: replaced(`"(text|content|response|token)":"`, "$0\xff\xc3")},
	{name: "escape codes in texts", want: "ok", bend: replaced(`"(text|content|response)":"`, `$0\u001b[2J\u0007`)},
	{name: "numbers for texts", want: "any", bend: replaced(`:\s*"[^"]*"`, ":7")},
	{name: "texts for numbers", want: "any", bend: replaced(`:\s*-?[0-9][0-9.e+-]*`, `:"x"`)},
	{name: "lists for objects", want: "any", bend: replaced(`:\s*\{[^{}]*\}`, ":[]")},
	{name: "nulls for all", want: "any", bend: replaced(`:\s*("[^"]*"|-?[0-9][0-9.e+-]*)`, ":null")},
	{name: "numbers without an end", want: "any", bend: replaced(`:\s*-?[0-9]+`, ":"+strings.Repeat("9", 400))},
	{name: "numbers below zero", want: "ok sglang=empty lmdeploy-generate=empty", bend: replaced(`:\s*([1-9][0-9]*)([,}])`, ":-$1$2")},
	{name: "numbers beyond counting", want: "ok sglang=empty lmdeploy-generate=empty", bend: replaced(`:\s*[0-9]+([,}])`, ":1e308$1")},
	{name: "counts beyond counting", want: "ok", bend: replaced(`(tokens?"):\s*[0-9]+`, "$1:999999999999999999")},
	{name: "keys twice", want: "ok", bend: replaced(`\{"`, `{"x":1,"x":2,"`)},
	{name: "an error with a message", want: "in-band", bend: event(`{"error":{"message":"out of memory","type":"server_error","code":500}}`)},
	{name: "an error as a text", want: "in-band", bend: event(`{"error":"out of memory","error_type":"generation"}`)},
	{name: "an error of Anthropic", want: "in-band", bend: event(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)},
	{name: "an event called error", want: "in-band lines=malformed document=malformed", bend: inserted("event: error\ndata: out of memory\n\n")},
	{name: "an error in one document", want: "in-band", bend: rawBytes("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"error\":{\"message\":\"out of memory\"}}")},
	{name: "one document", want: "malformed document=any", bend: rawBytes("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"choices\":[{\"text\":\"all at once\"}]}")},
	{name: "a page", want: "malformed", bend: rawBytes("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html><html><title>Log in</title><body>Please</body></html>")},
	{name: "a page without a type", want: "malformed", bend: rawBytes("HTTP/1.1 200 OK\r\n\r\n<!doctype html><html><title>Log in</title><body>Please</body></html>")},
}

// framings are correct events in unusual framing.
var framings = []shape{
	{name: "CRLF", want: "ok", bend: changed(func(a *answer) []byte { return bytes.ReplaceAll(a.body, []byte("\n"), []byte("\r\n")) })},
	{name: "CR", want: "ok lines=malformed", bend: changed(func(a *answer) []byte { return bytes.ReplaceAll(a.body, []byte("\n"), []byte("\r")) })},
	{name: "comments between", want: "ok lines=malformed document=malformed", bend: everyEvent(func(e []byte) []byte { return append([]byte(": ping\n\n"), e...) })},
	{name: "unknown fields", want: "ok lines=malformed document=malformed", bend: everyEvent(func(e []byte) []byte { return append([]byte("id: 1\nretry: 1\nfoo\n"), e...) })},
	{name: "blank lines between", want: "ok", bend: everyEvent(func(e []byte) []byte { return append([]byte("\n\n\n"), e...) })},
	{name: "a byte order mark", want: "ok lines=malformed document=malformed", bend: changed(func(a *answer) []byte { return append([]byte("\xef\xbb\xbf"), a.body...) })},
	{name: "no blank behind the colon", want: "ok", bend: changed(func(a *answer) []byte { return bytes.ReplaceAll(a.body, []byte("data: "), []byte("data:")) })},
	{name: "blanks before the newline", want: "ok", bend: replaced(`([^\n])\n`, "$1 \t\n")},
	{name: "no blank lines", want: "malformed lines=ok document=ok", bend: changed(func(a *answer) []byte { return bytes.ReplaceAll(a.body, []byte("\n\n"), []byte("\n")) })},
	{name: "no newlines", want: "malformed document=ok", bend: changed(func(a *answer) []byte { return bytes.ReplaceAll(a.body, []byte("\n"), nil) })},
	{name: "an event in several lines", want: "ok", bend: func(o *out) {
		if !bytes.Contains(o.body, []byte("data:")) {
			o.send(o.body)
			return
		}
		replaced(`(?m)^data: ?\{`, "data: {\ndata: ")(o)
	}},
	{name: "gzip", want: "malformed", bend: func(o *out) { o.send(zipped(o.body), "Content-Encoding: gzip") }},
	{name: "gzip without a word", want: "malformed", bend: changed(func(a *answer) []byte { return zipped(a.body) })},
	{name: "gzip that is none", want: "ok", bend: func(o *out) { o.send(o.body, "Content-Encoding: gzip") }},
	{name: "an unknown encoding", want: "ok", bend: func(o *out) { o.send(o.body, "Content-Encoding: x-lies") }},
	{name: "junk behind the end", want: "ok lines=malformed document=malformed", bend: changed(func(a *answer) []byte { return append(slices.Clone(a.body), "junk\n\n"...) })},
	{name: "byte by byte", want: "ok", bend: func(o *out) {
		o.head()
		for _, b := range o.body {
			o.chunk([]byte{b})
		}
		o.end()
		o.keep = true
	}},
}

func zipped(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b)
	_ = w.Close()
	return z.Bytes()
}

// heads violate HTTP.
var heads = []shape{
	{name: "length", want: "ok", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")},
	{name: "length too long", want: "ok unmarked=reset", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nContent-Length: 9{length}\r\n\r\n")},
	{name: "length too short", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nContent-Length: 9\r\n\r\n")},
	{name: "length below zero", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nContent-Length: -5\r\n\r\n")},
	{name: "length beyond counting", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nContent-Length: 99999999999999999999\r\n\r\n")},
	{name: "length that is none", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nContent-Length: many\r\n\r\n")},
	{name: "two lengths", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nContent-Length: {length}\r\nContent-Length: 5\r\n\r\n")},
	{name: "length and chunks", want: "ok", bend: func(o *out) { o.send(o.body, "Content-Length: 5") }},
	{name: "neither length nor chunks", want: "ok", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: {type}\r\n\r\n")},
	{name: "HTTP/1.0", want: "ok", bend: headed("HTTP/1.0 200 OK\r\nContent-Type: {type}\r\n\r\n")},
	{name: "no type", want: "ok", bend: headed("HTTP/1.1 200 OK\r\n\r\n")},
	{name: "a type that is none", want: "ok", bend: headed("HTTP/1.1 200 OK\r\nContent-Type: ;;;=\r\n\r\n")},
	{name: "no reason", want: "ok", bend: headed("HTTP/1.1 200\r\nContent-Type: {type}\r\n\r\n")},
	{name: "lines that end in LF", want: "ok", bend: headed("HTTP/1.1 200 OK\nContent-Type: {type}\n\n")},
	{name: "HTTP/9.9", want: "malformed|ok", bend: headed("HTTP/9.9 200 OK\r\n\r\n")},
	{name: "HTTP in small letters", want: "malformed", bend: headed("http/1.1 200 OK\r\n\r\n")},
	{name: "HTTP/0.9", want: "malformed", bend: func(o *out) { o.raw(string(o.body)) }},
	{name: "a header without a colon", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n")},
	{name: "a header with a zero byte", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n")},
	{name: "a header in two lines", want: "ok|malformed", bend: headed("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Type: {type}\r\n\r\n")},
	{name: "an alert of TLS", want: "malformed", bend: rawBytes("\x15\x03\x01\x00\x02\x02\x28")},
	{name: "a banner of SSH", want: "malformed", bend: rawBytes("SSH-2.0-OpenSSH_9.9\r\n")},
	{name: "frames of HTTP/2", want: "malformed", bend: rawBytes("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x00\x00\xff\xff\r\n")},
	{name: "a request for an answer", want: "malformed", bend: rawBytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n")},
	{name: "half a status line", want: "reset|malformed", bend: rawBytes("HTTP/1.1 2")},
	{name: "half a header", want: "reset|malformed", bend: rawBytes("HTTP/1.1 200 OK\r\nContent-Ty")},
	{name: "no answer", want: "reset", bend: func(*out) {}},
	{name: "a reset for an answer", want: "reset", bend: func(o *out) { o.reset() }},
	{name: "chunks that are none", want: "malformed", bend: func(o *out) { o.head(); o.raw("zz\r\nhello\r\n0\r\n\r\n") }},
	{name: "a chunk below zero", want: "malformed", bend: func(o *out) { o.head(); o.raw("-5\r\nhello\r\n0\r\n\r\n") }},
	{name: "a chunk beyond counting", want: "malformed", bend: func(o *out) { o.head(); o.raw("ffffffffffffffffff\r\nhello\r\n") }},
	{name: "a chunk longer than it says", want: "malformed", bend: func(o *out) { o.head(); o.raw("2\r\nhello\r\n0\r\n\r\n") }},
	{name: "a chunk shorter than it says", want: "reset lines=malformed", bend: func(o *out) { o.head(); o.raw("ff\r\nhello\r\n0\r\n\r\n") }},
	{name: "a chunk size without an end", want: "malformed", bend: func(o *out) {
		o.head()
		for o.raw(strings.Repeat("0", 1<<16)) {
		}
	}},
	{name: "chunks with remarks", want: "ok", bend: func(o *out) {
		o.head()
		o.raw(fmt.Sprintf("%x;remark=\"x\"\r\n%s\r\n", len(o.body), o.body))
		o.end()
		o.keep = true
	}},
	{name: "a trailer", want: "ok", bend: func(o *out) {
		o.head("Trailer: X-Sum")
		o.chunk(o.body)
		o.raw("0\r\nX-Sum: 1\r\n\r\n")
		o.keep = true
	}},
	{name: "an unknown transfer encoding", want: "malformed", bend: headed("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n")},
	{name: "a second answer behind the first", want: "ok|malformed", bend: func(o *out) {
		o.send(o.body)
		o.raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	}},
	{name: "keeps and closes", want: "ok", bend: func(o *out) { o.send(o.body, "Connection: keep-alive", "Keep-Alive: timeout=60"); o.keep = false }},
	{name: "says it closes and keeps", want: "ok", bend: func(o *out) { o.send(o.body, "Connection: close") }},
	{name: "a reset behind the answer", want: "ok|reset", bend: func(o *out) { o.send(o.body); o.reset() }},
}

// floods exceed all limits.
var floods = []shape{
	{name: "1 GiB without a newline", want: "too-large", bend: func(o *out) { o.head(); o.flood(strings.Repeat("x", 1<<18), 1<<30) }},
	{name: "1 GiB of data lines", want: "too-large lines=malformed", bend: func(o *out) { o.head(); o.flood(strings.Repeat("data: {\"a\":1}\n", 1<<14), 1<<30) }},
	{name: "1 GiB of one event's text", want: "too-large", bend: func(o *out) {
		o.head()
		o.chunk([]byte("data: {\"choices\":[{\"text\":\""))
		o.flood(strings.Repeat("x", 1<<18), 1<<30)
	}},
	{name: "64 MiB of comments", want: "ok lines=malformed document=too-large", bend: func(o *out) {
		o.head()
		for range 64 {
			o.chunk([]byte(strings.Repeat(": "+strings.Repeat("ping ", 200)+"\n\n", 1<<10)))
		}
		o.chunk(o.body)
		o.end()
	}},
	{name: "a finish reason of 5 MB", want: "ok", bend: replaced(`"(finish_reason|done_reason|stop_reason|finishReason)":\s*"[^"]*"`, `"$1":"`+strings.Repeat("x", 5<<20)+`"`)},
	{name: "a text of 1 MB", want: "ok", bend: func(o *out) {
		re := regexp.MustCompile(`"(text|content|response|token|text_output)":\s*"`)
		done := false
		o.send(re.ReplaceAllFunc(o.body, func(m []byte) []byte {
			if done {
				return m
			}
			done = true
			return append(slices.Clone(m), strings.Repeat("x", 1<<20)...)
		}))
	}},
	{name: "an error of 5 MB", want: "in-band", bend: event(`{"error":{"message":"` + strings.Repeat("x", 5<<20) + `"}}`)},
	{name: "a header of 1 MiB", want: "too-large", bend: func(o *out) { o.head("X: " + strings.Repeat("x", 1<<20)) }},
	{name: "a header without an end", want: "too-large", bend: func(o *out) {
		o.raw("HTTP/1.1 200 OK\r\nX: ")
		for o.raw(strings.Repeat("x", 1<<16)) {
		}
	}},
	{name: "100,000 headers", want: "too-large", bend: func(o *out) { o.head(strings.TrimSuffix(strings.Repeat("X: y\r\n", 100_000), "\r\n")) }},
	{name: "a status line without an end", want: "too-large|malformed", bend: func(o *out) {
		o.raw("HTTP/1.1 200 ")
		for o.raw(strings.Repeat("x", 1<<16)) {
		}
	}},
	{name: "a bomb of gzip", want: "malformed", bend: func(o *out) { o.send(bomb(), "Content-Encoding: gzip") }},
	{name: "a trailer without an end", want: "malformed", bend: func(o *out) {
		o.head("Trailer: X")
		o.chunk(o.body)
		o.raw("0\r\nX: ")
		for o.raw(strings.Repeat("x", 1<<16)) {
		}
	}},
}

// bomb is 64 MiB of zeros compressed to 64 KB, in 64 parts.
var bomb = sync.OnceValue(func() []byte { return bytes.Repeat(zipped(make([]byte, 1<<20)), 64) })

// waits are late or missing responses.
var waits = []shape{
	{name: "silence", want: "timeout", stalls: true, bend: func(o *out) { o.stall() }},
	{name: "silence in the head", want: "timeout", stalls: true, bend: func(o *out) { o.raw("HTTP/1.1 200 OK\r\nContent-Ty"); o.stall() }},
	{name: "silence behind the head", want: "timeout", stalls: true, bend: func(o *out) { o.head(); o.stall() }},
	{name: "silence inside an event", want: "timeout", stalls: true, bend: func(o *out) { o.head(); o.chunk(o.body[:len(o.body)/2]); o.stall() }},
	{name: "silence behind the answer", want: "timeout done=ok", stalls: true, bend: func(o *out) { o.head(); o.chunk(o.body); o.stall() }},
	{name: "silence in a refusal", want: "status", stalls: true, bend: func(o *out) { o.raw("HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\n{"); o.stall() }},
	{name: "a head that trickles", want: "timeout", stalls: true, bend: func(o *out) {
		for o.raw("HTTP/1.1 200 OK\r\nX: ") {
			for o.raw("x") {
				time.Sleep(50 * time.Millisecond)
			}
		}
	}},
	{name: "an answer that trickles", want: "timeout lines=malformed", stalls: true, bend: func(o *out) {
		o.head()
		for o.chunk([]byte(": ping\n\n")) {
			time.Sleep(50 * time.Millisecond)
		}
	}},
	{name: "hints that trickle", want: "timeout", stalls: true, bend: func(o *out) {
		for o.raw("HTTP/1.1 103 Early Hints\r\n\r\n") {
			time.Sleep(50 * time.Millisecond)
		}
	}},
}
