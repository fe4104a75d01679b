package bench

import (
	"strings"
	"testing"
)

// --report accepts lists, and commas in paths.
func TestReportLists(t *testing.T) {
	t.Parallel()
	out, err := Outputs([]string{"json=a.json,html=/tmp/b.html,csv", "csv:token=x,1.csv", "markdown"})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, o := range out {
		got.WriteString(o.Format.Name + ":" + o.Rows + "=" + o.Path + " ")
	}
	if want := "json:=a.json html:=/tmp/b.html csv:= csv:token=x,1.csv markdown:= "; got.String() != want {
		t.Errorf("%s, want %s", got.String(), want)
	}
}
