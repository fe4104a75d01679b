package report_test

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/report"
)

// A gate becomes JUnit XML with a case per condition: FAILED is a failure, NOT JUDGED an
// error. The message is the printed line.
func TestJUnit(t *testing.T) {
	gate := []compare.Finding{
		{State: compare.Passed, Name: "failures>1%", Text: "failures>1%: failures is 0.00 %"},
		{State: compare.Failed, Name: "ttft.p99>200ms", Text: "ttft.p99>200ms: ttft.p99 is 250.00 ms"},
		{State: compare.NotJudged, Name: `label "a<b>&c": itl.p99>1ms`, Text: "label \"a<b>&c\": itl.p99>1ms: the run has no itl.p99\x01"},
	}
	var out bytes.Buffer
	must.Do(t, report.JUnit(&out, gate, false))
	path := filepath.Join("testdata", "junit.golden")
	if *update {
		must.Do(t, os.WriteFile(path, out.Bytes(), 0o600))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var read struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
			Error struct {
				Message string `xml:"message,attr"`
			} `xml:"error"`
		} `xml:"testcase"`
	}
	must.Do(t, xml.Unmarshal(out.Bytes(), &read))
	if read.Tests != 3 || read.Failures != 1 || read.Errors != 1 || len(read.Cases) != 3 {
		t.Fatalf("%+v", read)
	}
	if c := read.Cases[1]; c.Name != gate[1].Name || c.Failure.Message != "FAILED "+gate[1].Text {
		t.Errorf("%+v", c)
	}
	if c := read.Cases[2]; c.Name != gate[2].Name || c.Error.Message != "NOT JUDGED label \"a<b>&c\": itl.p99>1ms: the run has no itl.p99\uFFFD" {
		t.Errorf("%+v", c)
	}
	out.Reset()
	if err := report.JUnit(&out, gate[2:], true); err != nil || !bytes.Contains(out.Bytes(), []byte(`errors="0" skipped="1"`)) {
		t.Errorf("%v in %s", err, out.String())
	}
}
