package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

// A gate contains --fail-if and related flags.
type gate struct {
	conditions string
	unjudged   bool   // pass conditions with too little data
	junit      string // JUnit XML file; empty for none
}

// flags registers the flags related to --fail-if.
func (g *gate) flags(f *pflag.FlagSet) {
	f.BoolVar(&g.unjudged, "allow-unjudged", false, "pass conditions of --fail-if with too little data; otherwise exit with code 5")
	f.StringVar(&g.junit, "junit", "", "JUnit XML file for the results of --fail-if")
}

// parse parses the conditions of --fail-if.
func (g *gate) parse() ([]metric.Condition, error) {
	conditions, err := bench.Conditions(g.conditions, g.junit)
	if err != nil {
		return nil, usage(err)
	}
	return conditions, nil
}

// judge checks runs against the conditions.
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
			if len(runs) > 1 { // the same condition applies to several runs
				found[k].Name += " of " + runs[i].Name
			}
		}
		all = append(all, found...)
	}
	return g.end(env, all, anyInvalid(runs))
}

// anyInvalid reports whether a level of the runs is INVALID.
func anyInvalid(runs []outcome.Run) bool {
	return slices.ContainsFunc(runs, func(r outcome.Run) bool { return r.Invalid() > 0 })
}

// end prints a line for every condition, writes the JUnit file and returns the
// exit status for INVALID levels, and for failed or unjudged conditions.
func (g *gate) end(env *Env, all []compare.Finding, invalid bool) error {
	code := exitOK
	for _, f := range all {
		_, _ = fmt.Fprintln(env.Stderr, f.Line()) // the exit code has the same information
		switch {
		case f.State == compare.Failed:
			code = exitMissed
		case f.State == compare.NotJudged && code == exitOK && !g.unjudged:
			code = exitUnjudged
		}
	}
	if g.junit != "" {
		var file bytes.Buffer
		if err := errors.Join(report.JUnit(&file, all, g.unjudged), atomicfile.Write(g.junit, file.Bytes())); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if invalid && len(all) > 0 {
		code = exitInvalid
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}
