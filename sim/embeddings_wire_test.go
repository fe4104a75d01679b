package sim

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestEmbeddingsInputs(t *testing.T) {
	for _, tt := range []struct {
		body string
		want embeddingsInputs
		back string
	}{
		{`"a b"`, embeddingsInputs{Texts: []string{"a b"}}, `["a b"]`},
		{`["a","b"]`, embeddingsInputs{Texts: []string{"a", "b"}}, `["a","b"]`},
		{`[1,2]`, embeddingsInputs{IDs: [][]int32{{1, 2}}}, `[[1,2]]`},
		{`[[1],[2,3]]`, embeddingsInputs{IDs: [][]int32{{1}, {2, 3}}}, `[[1],[2,3]]`},
	} {
		var got embeddingsInputs
		must.Do(t, json.Unmarshal([]byte(tt.body), &got))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.body, diff)
		}
		back, err := json.Marshal(got)
		if err != nil || string(back) != tt.back {
			t.Errorf("%s came back as %s (%v)", tt.body, back, err)
		}
	}
	for _, body := range []string{`1`, `{}`, `[1,"a"]`, `[[1],"a"]`} {
		if err := json.Unmarshal([]byte(body), new(embeddingsInputs)); err == nil {
			t.Errorf("%s was accepted", body)
		}
	}
}

func FuzzEmbeddingsRequest(f *testing.F) {
	f.Add([]byte(`{"input":["a"],"dimensions":3}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var q embeddingsRequest
		if json.Unmarshal(body, &q) != nil {
			return
		}
		again := must.Get(json.Marshal(q))(t)
		if err := json.Unmarshal(again, new(embeddingsRequest)); err != nil && len(q.Input.Texts)+len(q.Input.IDs) > 0 {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
