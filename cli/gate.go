package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"tacho/bench"
	"tacho/compare"
	"tacho/internal/wholefile"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/report"
)

const unjudgedHelp = "let a condition of --fail-if that could not be judged pass; otherwise the exit code is 5"

const junitHelp = "file to write the conditions of --fail-if to, as JUnit XML"

// A gate is what --fail-if and the flags beside it say.
type gate struct {
	conditions string
	unjudged   bool   // conditions that could not be judged pass
	junit      string // a file for JUnit XML; empty is none
}

// gateOf is the gate of a plan.
func gateOf(p *plan.Plan) *gate {
	return &gate{conditions: p.FailIf, unjudged: p.AllowUnjudged, junit: p.JUnit}
}

// flags adds those beside --fail-if.
func (g *gate) flags(f *pflag.FlagSet) {
	f.BoolVar(&g.unjudged, "allow-unjudged", false, unjudgedHelp)
	f.StringVar(&g.junit, "junit", "", junitHelp)
}

// parse reads the conditions; none if --fail-if was not given.
func (g *gate) parse() ([]metric.Condition, error) {
	conditions, err := bench.Conditions(g.conditions, g.junit)
	if err != nil {
		return nil, usage(err)
	}
	return conditions, nil
}

// judge holds runs against the conditions.
func (g *gate) judge(env *Env, runs []outcome.Run) error {
	conditions, err := g.parse()
	if err != nil {
		return err
	}
	var all []compare.Finding
	for i := range runs {
		found, err := compare.Judge(&runs[i], conditions)
		if err != nil {
			return usage(fmt.Errorf("--fail-if: %w", err))
		}
		for k := range found {
			if len(runs) > 1 { // the same condition is asked of several runs
				found[k].Name += " of " + runs[i].Name
			}
		}
		all = append(all, found...)
	}
	return g.end(env, all)
}

// end prints a line for every condition, and writes the file of --junit. It ends with the
// exit code for conditions that failed, or for conditions that could not be judged.
func (g *gate) end(env *Env, all []compare.Finding) error {
	code := exitOK
	for _, f := range all {
		_, _ = fmt.Fprintln(env.Stderr, f.Line()) // the exit code says it too
		switch {
		case f.State == compare.Failed:
			code = exitMissed
		case f.State == compare.NotJudged && code == exitOK && !g.unjudged:
			code = exitUnjudged
		}
	}
	if g.junit != "" {
		var file bytes.Buffer
		if err := errors.Join(report.JUnit(&file, all, g.unjudged), wholefile.Write(g.junit, file.Bytes())); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}
