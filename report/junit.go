package report

import (
	"encoding/xml"
	"io"

	"github.com/tacho-bench/tacho/internal/compare"
)

// junitSuite is a test suite in the JUnit XML that CI systems read.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

// junitName is the name of the suite and the class of its cases. All runs share the
// name, because CI systems track a case by its class and name.
const junitName = "tacho"

// JUnit writes the conditions of a gate as JUnit XML. A failed condition is a failure. A
// condition that was not judged is an error, or skipped if allowUnjudged is set.
func JUnit(w io.Writer, all []compare.Finding, allowUnjudged bool) error {
	suite := junitSuite{Name: junitName, Tests: len(all)}
	for _, f := range all {
		c := junitCase{Class: junitName, Name: f.Name}
		message := &junitMessage{f.Line()}
		switch {
		case f.State == compare.Failed:
			suite.Failures++
			c.Failure = message
		case f.State == compare.NotJudged && allowUnjudged:
			suite.Skipped++
			c.Skipped = message
		case f.State == compare.NotJudged:
			suite.Errors++
			c.Error = message
		default:
			c.Out = f.Line()
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
