package jsonscan_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/internal/jsonscan"
	"github.com/tacho-bench/tacho/internal/must"
)

// read decodes the document like encoding/json into an any, but returns integers as int64 and all other numbers as
// nil.
func read(s *jsonscan.Scanner) any {
	switch s.Type() {
	case '{':
		m := map[string]any{}
		s.Object(func(key []byte) { k := string(key); m[k] = read(s) })
		return m
	case '[':
		list := []any{}
		s.Array(func() { list = append(list, read(s)) })
		return list
	case '"':
		b, _ := s.String(nil)
		return string(b)
	case 't', 'f':
		return string(s.Skip()) == "true"
	case 'n':
		s.Skip()
		return nil
	}
	if n, ok := s.Int(); ok {
		return n
	}
	return nil
}

// integers converts each json.Number as read does.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil && len(strings.TrimPrefix(v.String(), "-")) <= 18 {
			return n
		}
		return nil
	}
	return v
}

func check(t *testing.T, doc []byte) {
	t.Helper()
	var s jsonscan.Scanner
	s.Reset(doc)
	got := read(&s)
	err := s.Err()
	if valid := json.Valid(doc); valid != (err == nil) {
		t.Fatalf("%q: valid for encoding/json: %v; for us: %v", doc, valid, err)
	}
	s.Reset(doc)
	s.Skip()
	if skipped := s.Err(); (skipped == nil) != (err == nil) {
		t.Fatalf("%q: read %v, skipped %v", doc, err, skipped)
	}
	if err != nil || !utf8.Valid(doc) {
		return
	}
	d := json.NewDecoder(strings.NewReader(string(doc)))
	d.UseNumber()
	var want any
	must.Do(t, d.Decode(&want))
	if want = integers(want); !reflect.DeepEqual(want, got) { // cmp.Diff does not terminate on deep nesting
		t.Errorf("%q encoding/json reads %v, we %v", doc, want, got)
	}
}

var documents = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `-1`, `12.5e+3`, `1e400`, `null`, `true`, `false`, ` [ 1 , 2 ] `, "\t{\"a\" :\n[ ] }\r",
	`{"a":{"b":[{"c":"d"}]},"e":"\u00e9\ud83d\ude00\n\"\\\/\b\f\r\t"}`, `"\ud800"`, `"\ud800\ud800"`, `"\udc00x"`, `"\ud800\u0041"`,
	`{"\u0061":1}`, `{"a":1,"a":2}`, `123456789012345678`, `1234567890123456789`, `99999999999999999999`, "\"\u00ff\ufffd\"",
	``, ` `, `{`, `[`, `"`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `[1,]`, `[1 2]`, `{1:2}`, `{"a" 1}`, `01`, `1.`, `.5`, `-`, `1e`, `+1`,
	`nul`, `nulll`, `tru`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"a", `"\`, `{}{}`, `[] x`, `'a'`, "\xef\xbb\xbf{}", `[1}`, `{"a":1]`,
	"\"a long string with\x01a control\"", "\"a long string with \x7f and \u00e9, which are none\"", `{"a long key, with \" in it":1}`, `"a long string with \q"`,
	`{"a":tru}`, `{"a":[1,{"b":-}]}`, `x`,
}

func TestAgreesWithEncodingJSON(t *testing.T) {
	for _, doc := range documents {
		check(t, []byte(doc))
	}
	check(t, []byte(strings.Repeat("[", 10000)+strings.Repeat("]", 10000)))
	check(t, []byte(strings.Repeat("[", 10001)+strings.Repeat("]", 10001)))
	check(t, []byte(strings.Repeat(`{"a":`, 1<<20)))
}

func FuzzScan(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(check)
}

func TestUnreadMembersAreSkipped(t *testing.T) {
	var s jsonscan.Scanner
	s.Reset([]byte(`{"a":{"x":[1,2]},"b":7,"c":"d"}`))
	var got int64
	ok := s.Object(func(key []byte) {
		if string(key) == "b" {
			got, _ = s.Int()
		}
	})
	if err := s.Err(); err != nil || !ok || got != 7 {
		t.Errorf("got %d, %v, %v", got, ok, err)
	}
}

func TestFailure(t *testing.T) {
	for _, tc := range []struct {
		value, want string
		failed      bool
	}{
		{`null`, "", false},
		{`false`, "", false},
		{`""`, "", false},
		{`"overloaded"`, "overloaded", true},
		{`{"message":"too \"long\"","code":400}`, `too "long"`, true},
		{`{"code":400} `, `{"code":400}`, true},
		{`{"message":null}`, `{"message":null}`, true},
	} {
		var s jsonscan.Scanner
		s.Reset([]byte(tc.value))
		got, failed := s.Failure(nil)
		if err := s.Err(); err != nil || string(got) != tc.want || failed != tc.failed {
			t.Errorf("%s: got %q, %v, %v, want %q, %v", tc.value, got, failed, err, tc.want, tc.failed)
		}
	}
}

func TestFloat(t *testing.T) {
	for doc, want := range map[string]float64{"1.5": 1.5, " -2e3 ": -2000, "7": 7, `"7"`: 0, "null": 0, "[1]": 0, "1e999": 0} {
		var s jsonscan.Scanner
		s.Reset([]byte(doc))
		if got := s.Float(); got != want || s.Err() != nil {
			t.Errorf("%s: %v, %v, want %v", doc, got, s.Err(), want)
		}
	}
}

// Null and other values without an integer leave the count unset.
func TestNaturalIfPresent(t *testing.T) {
	for doc, want := range map[string]int{"0": 0, "7": 7, "-1": 0, "null": -1, `"7"`: -1, "1.5": -1, "{}": -1} {
		var s jsonscan.Scanner
		s.Reset([]byte(doc))
		n, present := -1, false
		s.NaturalIfPresent(&n, &present)
		if n != want || present != (want >= 0) || s.Err() != nil {
			t.Errorf("%s: %v, %v, %v, want %v", doc, n, present, s.Err(), want)
		}
	}
}

// Ints agrees with encoding/json on lists of integers. For any other list, Ints reports false and the scanner still
// finds the next member.
func TestInts(t *testing.T) {
	for _, list := range []string{
		`[]`, `[ ]`, `[1]`, `[0,-0,10]`, `[1, 2 ,3]`, "[ 7,\n  8 ,\t9 ]", `[-1,999999999999999999]`, // integers only
		`[1,1.5]`, `[1e3]`, `["1"]`, `[null,2]`, `[1,[2]]`, `{"a":1}`, `3`, `[1000000000000000000000]`, // other values
		`[01]`, `[1,]`, `[,1]`, `[1 2]`, `[-]`, `[1`, `[1,`, `[1, `, // invalid JSON
	} {
		var s jsonscan.Scanner
		s.Reset([]byte(`{"list":` + list + `,"after":5}`))
		var got []int64
		whole, after := false, int64(0)
		s.Object(func(key []byte) {
			if string(key) == "list" {
				got, whole = s.Ints([]int64{})
				return
			}
			after, _ = s.Int()
		})
		var want []int64
		isWhole := json.Unmarshal([]byte(list), &want) == nil && list[0] == '[' && !strings.Contains(list, "null") && !strings.Contains(list, "e")
		if whole != isWhole || whole && !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", list, got, whole)
		}
		if valid := json.Valid([]byte(list)); valid != (s.Err() == nil) || valid && after != 5 {
			t.Errorf("%s: %v, then %d", list, s.Err(), after)
		}
	}
}
