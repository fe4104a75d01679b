package token

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func FuzzScanString(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u0120\ud83d\ude00"`, `"\ud83d x"`, `"\ud83d\u0041"`, `"\n\t\/\\\""`, `"`, `"\`, `"\u12`, `""`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := jsonScanner{data: data}
		got, err := s.str()
		var want string
		if !utf8.Valid(data) || json.Unmarshal(data, &want) != nil || bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
			return // not to be read, but not to panic on either
		}
		if err != nil || string(got) != want {
			t.Errorf("str(%q) = %q, %v, want %q", data, got, err, want)
		}
	})
}

func FuzzScanSkip(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"]}"}],"c":null}`, `[`, `{"a"`, `tru`, `-1.5e3`, `]`, `"\"`, ` [ ] `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := jsonScanner{data: data}
		raw, err := s.skip()
		if !json.Valid(data) {
			return
		}
		if err != nil {
			t.Fatalf("skip(%q): %v", data, err)
		}
		if got, want := bytes.TrimSpace(raw), bytes.TrimSpace(data); !bytes.Equal(got, want) {
			t.Errorf("skip(%q) = %q", want, got)
		}
	})
}
