package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/proof"
)

// checkFormats are the output formats.
var checkFormats = []string{"text", "json"}

func newSelfcheck(env *Env) *cobra.Command {
	effort, quick, format := proof.Full, false, ""
	cmd := &cobra.Command{
		Use: "selfcheck", Short: "Check the accuracy of tacho on this machine",
		Args: flagsOnly,
		Long: `selfcheck measures a local server that records when it sent each token, like
bench would, and compares token times, send times, the arrival process and the
cost per token. It takes about twelve seconds and sends nothing to other machines.

The exit code is 1 if a check fails. The output contains advice for each failed
check.`,
		Example: `  tacho selfcheck
  tacho selfcheck --quick --format json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownWord("format", format, checkFormats); err != nil {
				return usage(err)
			}
			if quick {
				effort = proof.Quick
			}
			_, _ = fmt.Fprintf(env.Stderr, "Measuring %s.\n", effort) // informational
			engine.Tune()
			url, stop, err := startServer(env, "--ttft", proof.FirstToken.String(), "--itl", proof.BetweenTokens.String())
			if err != nil {
				return err
			}
			defer stop()
			result, err := proof.Run(cmd.Context(), url, effort)
			if err != nil {
				return err
			}
			if format == "json" {
				out := json.NewEncoder(env.Stdout)
				out.SetIndent("", "  ")
				err = out.Encode(result)
			} else {
				err = showChecks(env.Stdout, result)
			}
			if err == nil && !result.OK {
				return &exitError{code: exitFailed}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "check for about four seconds only")
	cmd.Flags().StringVar(&format, "format", "text", "output format: text or json")
	return cmd
}

// showChecks prints the checks as a table, with advice.
func showChecks(w io.Writer, r *proof.Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", cells[0], cells[1], cells[2], cells[3]) // Flush returns the error
	}
	line("check", "seen", "limit", "")
	for _, c := range r.Checks {
		seen, ok := "nothing", "ok"
		if c.Value != nil {
			seen = amount(*c.Value, c.Unit)
		}
		if !c.OK {
			ok = "FAILED"
		}
		line(c.Title, seen, amount(c.Limit, c.Unit), ok)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	advice := map[string]bool{} // advice already printed
	for _, c := range r.Checks {
		if c.OK {
			continue
		}
		text := fmt.Sprintf("\n%s: %s.\n", c.Title, c.Doc)
		if !advice[c.Do] {
			text += "  Fix: " + c.Do + ".\n"
		}
		advice[c.Do] = true
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	if r.Failure != "" {
		if _, err := fmt.Fprintf(w, "\nA request failed: %s\n", r.Failure); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Text)
	return err
}

// amount formats a number with its unit, without decimals if it is large.
func amount(v float64, unit string) string {
	text := fmt.Sprintf("%.3g", v)
	if v >= 100 || v == math.Trunc(v) {
		text = fmt.Sprintf("%.0f", v)
	}
	if unit != "" {
		text += " " + unit
	}
	return text
}
