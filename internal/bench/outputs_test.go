package bench

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// --report accepts lists, and commas in paths.
func TestReportLists(t *testing.T) {
	t.Parallel()
	out := must.Get(Outputs([]string{"json=a.json,html=/tmp/b.html,csv", "csv:token=x,1.csv", "markdown"}))(t)
	var got strings.Builder
	for _, o := range out {
		got.WriteString(o.Format.Name + ":" + o.Rows + "=" + o.Path + " ")
	}
	if want := "json:=a.json html:=/tmp/b.html csv:= csv:token=x,1.csv markdown:= "; got.String() != want {
		t.Errorf("%s, want %s", got.String(), want)
	}
}
