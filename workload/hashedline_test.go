package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzHashedLine checks that the fast scanner agrees with encoding/json on every line it
// accepts.
func FuzzHashedLine(f *testing.F) {
	for _, s := range []string{
		`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}`,
		`{"chat_id":159,"parent_chat_id":-1,"timestamp":61.114,"input_length":521,"output_length":132,"type":"text","turn":1,"hash_ids":[1089,1090]}`,
		`{"session_id":"a","timestamp":-0.50,"hash_ids":[]}`, `{"timestamp":01}`, `{"timestamp":1.}`, `{"timestamp":.1}`, `{"timestamp":1e3}`,
		`{"Timestamp":1}`, `{"hash_ids":[1 ,2 ]}`, `{"hash_ids":[1,]}`, `{"hash_ids":[-1,00]}`, `{"type":"é"}`, `{"type":5}`, `{"turn":1,"turn":2} x`,
		`{"chat_id":null}`, `{"chat_id":"9","input_length":99999999999999999999}`, `{ }`, `{"timestamp":5,"timestamp":null}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := scanHashed([]byte(s), false)
		if !ok {
			return
		}
		want, err := parseHashedJSON([]byte(s))
		if err != nil {
			t.Fatalf("%q is taken, and is no JSON: %v", s, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(hashedFields{})); diff != "" {
			t.Errorf("%q (-JSON +scanner):\n%s", s, diff)
		}
		counted, ok := scanHashed([]byte(s), true)
		if !ok || counted.blocks != got.blocks || counted.timestamp != got.timestamp || counted.chat != got.chat {
			t.Errorf("%q: counted %+v, want %+v", s, counted, got)
		}
	})
}

// TestUsualLinesAreQuick checks that the fast scanner accepts the usual lines.
func TestUsualLinesAreQuick(t *testing.T) {
	for _, s := range []string{
		`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}`,
		`{"chat_id":159,"parent_chat_id":-1,"timestamp":61.114,"input_length":521,"output_length":132,"type":"text","turn":1,"hash_ids":[1089,1090]}`,
		`{"timestamp": 0, "input_length": 1, "output_length": 2, "session_id": "x"}`,
	} {
		if _, ok := scanHashed([]byte(s), false); !ok {
			t.Errorf("%s is left to the parser of all JSON", s)
		}
	}
}
