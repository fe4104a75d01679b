package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/wire"
)

func TestOpenAIPrompt(t *testing.T) {
	for _, tc := range []struct {
		wire string
		want wire.OpenAIPrompt
		out  string // expected encoding; empty if the input is invalid
	}{
		{`"a <b> & c"`, wire.OpenAIPrompt{Text: "a <b> & c"}, `"a <b> & c"`},
		{`[1,2,3]`, wire.OpenAIPrompt{IDs: []int32{1, 2, 3}}, `[1,2,3]`},
		{`["a"]`, wire.OpenAIPrompt{Text: "a"}, `"a"`},
		{`[[4,5]]`, wire.OpenAIPrompt{IDs: []int32{4, 5}}, `[4,5]`},
		{`[]`, wire.OpenAIPrompt{IDs: []int32{}}, `[]`},
		{`["a","b"]`, wire.OpenAIPrompt{}, ""},
		{`{"a":1}`, wire.OpenAIPrompt{}, ""},
		{`[1.5]`, wire.OpenAIPrompt{}, ""},
		{`[9999999999]`, wire.OpenAIPrompt{}, ""},
	} {
		var got wire.OpenAIPrompt
		err := json.Unmarshal([]byte(tc.wire), &got)
		if (err == nil) != (tc.out != "") {
			t.Errorf("%s: error %v", tc.wire, err)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.wire, diff)
		}
		out, err := got.MarshalJSON()
		if err != nil || string(out) != tc.out {
			t.Errorf("%s: written as %s, %v, want %s", tc.wire, out, err, tc.out)
		}
	}
}
