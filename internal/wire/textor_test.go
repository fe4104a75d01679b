package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestTextOr(t *testing.T) {
	type part struct{ Name string }
	type content = TextOr[part]
	for body, want := range map[string]content{
		`"a <b>"`:        {Text: "a <b>"},
		`""`:             {},
		`[{"Name":"a"}]`: {Parts: []part{{"a"}}},
		`[]`:             {Parts: []part{}},
	} {
		var got content
		must.Do(t, json.Unmarshal([]byte(body), &got))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if back, err := Marshal(got); err != nil || string(back) != body {
			t.Errorf("%s came back as %s (%v)", body, back, err)
		}
	}
	for _, body := range []string{`1`, `{}`, `[1]`} {
		if err := json.Unmarshal([]byte(body), new(content)); err == nil {
			t.Errorf("%s was accepted", body)
		}
	}
}
