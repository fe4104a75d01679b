package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/must"
)

func newFailures(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "failures RUN-DIRECTORY", Short: "Print why requests of a run failed",
		Example: "  tacho failures runs/20260301-120000-vllm",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			run, err := archive.Open(args[0], nil)
			if err != nil {
				return err
			}
			for _, level := range run.Levels {
				for _, f := range level.Summary.Failures {
					if _, err := fmt.Fprintf(env.Stdout, "%6d %s: %s\n", f.Count, f.Cause, f.Example); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// A command only listed in commands appears in help, runs, and follows the
// rules for exit codes, as documented in docs/extending.md.
func TestOneWordAddsACommand(t *testing.T) {
	usual := commands
	defer func() { commands = usual }()
	commands = append(commands, newFailures)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.json": `{"schema":1,"plan":{}}`,
		"stages.jsonl":  `{"index":0,"config":{"percentiles":[99],"metrics":["ttft"]}}` + "\n",
		"records.jsonl": `{"stage":0,"end_ns":5,"failure":{"cause":"status","status":503,"message":"overloaded"}}` + "\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"failures", dir}, exitOK, "     1 status: overloaded\n"},
		{[]string{"--help"}, exitOK, "Print why requests of a run failed"},
		{[]string{"failures", "--help"}, exitOK, "tacho failures RUN-DIRECTORY"},
		{[]string{"failures"}, exitUsage, "accepts 1 arg"},
		{[]string{"failures", "nowhere"}, exitFailed, "nowhere is not a run"},
		{[]string{"failure"}, exitUsage, `did you mean "failures"?`},
	} {
		var out strings.Builder
		code := Main(&Env{Args: c.args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }})
		if code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("tacho %s: exit code %d, want %d with %q in\n%s", strings.Join(c.args, " "), code, c.code, c.want, &out)
		}
	}
}
