package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/outcome"
)

// baselinePrefix begins the name of a baseline, as in baseline:main.
const baselinePrefix = "baseline:"

// baselinesFile is the file in the directory of runs that maps the names of
// baselines to runs. It has no extension, so it is not read as a result.
const baselinesFile = ".tacho-baselines"

// baselineName matches the names of baselines.
var baselineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// baselineActions are the actions of tacho baseline, with the smallest and the
// largest number of their arguments.
var baselineActions = []struct {
	name        string
	least, most int
	use         string
}{{"set", 1, 2, "set NAME [RUN]"}, {"list", 0, 0, "list"}, {"remove", 1, 1, "remove NAME"}}

func newBaseline(env *Env) *cobra.Command {
	allowInvalid := false
	cmd := &cobra.Command{
		Use:   "baseline set NAME [RUN] | list | remove NAME",
		Short: "Name a run, to compare later runs with it",
		Long: `baseline names a run. Every command that takes a run then accepts baseline:NAME:

  tacho baseline set main
  tacho compare baseline:main last

set names the newest run, or RUN: a run directory, a result of another tool or a
folder of these. If NAME exists, set replaces it. list prints all names and their
runs. remove forgets a name and keeps its run. set refuses an INVALID run, because
no difference from it can be judged. The names are stored in the file
` + baselinesFile + ` in the directory of runs.`,
		Example: `  tacho baseline set main
  tacho baseline list
  tacho baseline set main last~1
  tacho baseline remove main`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("baseline needs an action: set NAME [RUN], list, or remove NAME")
			}
			for _, a := range baselineActions {
				if n := len(args) - 1; args[0] == a.name && (n < a.least || n > a.most) {
					return fmt.Errorf("want: tacho baseline %s", a.use)
				} else if args[0] == a.name {
					return nil
				}
			}
			return spelling.Unknown("action of baseline", args[0], actionNames())
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := runsDir(env)
			known, err := readBaselines(dir)
			if err != nil {
				return err
			}
			switch args[0] {
			case "set":
				return setBaseline(env, dir, known, args[1], append(args[2:], lastRun)[0], allowInvalid)
			case "remove":
				return removeBaseline(env, dir, known, args[1])
			}
			return listBaselines(env, dir, known)
		},
	}
	cmd.Flags().BoolVar(&allowInvalid, "allow-invalid", false, "let set name an INVALID run")
	return cmd
}

func actionNames() (names []string) {
	for _, a := range baselineActions {
		names = append(names, a.name)
	}
	return names
}

// setBaseline names a run. An INVALID run needs allowInvalid.
func setBaseline(env *Env, dir string, known map[string]string, name, word string, allowInvalid bool) error {
	name = strings.TrimPrefix(name, baselinePrefix)
	if !baselineName.MatchString(name) {
		return usage(fmt.Errorf("%q cannot name a baseline: use letters, digits, dots, - and _", name))
	}
	run, err := findRun(env, word)
	if err != nil {
		return usage(err)
	}
	runs, err := archive.All(run, nil)
	if err != nil {
		return err
	}
	if anyInvalid(runs) && !allowInvalid {
		return fmt.Errorf("%s is INVALID, so no difference from it can be judged: measure again (tacho report %s prints the reasons), or add --allow-invalid", run, outcome.Quoted(run))
	}
	if known[name], err = storedPath(dir, run); err != nil {
		return err
	}
	if err := writeBaselines(dir, known); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s%s is %s\n", baselinePrefix, name, run)
	return err
}

// storedPath returns the path of a run relative to the directory of runs, so
// that the directory can be moved. The path of a run elsewhere is absolute.
func storedPath(dir, run string) (string, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if run, err = filepath.Abs(run); err != nil {
		return "", err
	}
	if path, err := filepath.Rel(root, run); err == nil && filepath.IsLocal(path) {
		return filepath.ToSlash(path), nil
	}
	return run, nil
}

// pathOfBaseline is the opposite of storedPath.
func pathOfBaseline(dir, stored string) string {
	if filepath.IsAbs(stored) {
		return stored
	}
	return filepath.Join(dir, filepath.FromSlash(stored))
}

func removeBaseline(env *Env, dir string, known map[string]string, name string) error {
	name = strings.TrimPrefix(name, baselinePrefix)
	stored, found := known[name]
	if !found {
		return usage(unknownBaseline(dir, known, name))
	}
	delete(known, name)
	if err := writeBaselines(dir, known); err != nil {
		return err
	}
	_, err := fmt.Fprintf(env.Stdout, "Removed %s%s (%s)\n", baselinePrefix, name, pathOfBaseline(dir, stored))
	return err
}

func listBaselines(env *Env, dir string, known map[string]string) error {
	if len(known) == 0 {
		_, err := fmt.Fprintf(env.Stdout, "no baseline in %s/: name one with tacho baseline set NAME [RUN]\n", filepath.Clean(dir))
		return err
	}
	names, wide := slices.Sorted(maps.Keys(known)), 0
	for _, name := range names {
		wide = max(wide, len(name))
	}
	for _, name := range names {
		path, note := pathOfBaseline(dir, known[name]), ""
		if _, err := os.Stat(path); err != nil {
			note = "  (missing)"
		}
		if _, err := fmt.Fprintf(env.Stdout, "%s%-*s  %s%s\n", baselinePrefix, wide, name, path, note); err != nil {
			return err
		}
	}
	return nil
}

// baselineRun returns the path of a baseline's run.
func baselineRun(dir, name string) (string, error) {
	known, err := readBaselines(dir)
	if err != nil {
		return "", err
	}
	stored, found := known[name]
	if !found {
		return "", unknownBaseline(dir, known, name)
	}
	path := pathOfBaseline(dir, stored)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s%s names %s, which does not exist: name another run with tacho baseline set %s RUN", baselinePrefix, name, path, name)
	}
	return path, nil
}

func unknownBaseline(dir string, known map[string]string, name string) error {
	if len(known) == 0 {
		return fmt.Errorf("no baseline in %s/: name one with tacho baseline set %s", filepath.Clean(dir), name)
	}
	return spelling.Unknown("baseline", name, slices.Sorted(maps.Keys(known)))
}

// readBaselines returns the run of each baseline.
func readBaselines(dir string) (map[string]string, error) {
	var known map[string]string
	path := filepath.Join(dir, baselinesFile)
	b, err := atomicfile.ReadShort(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: delete this file and set the baselines again", path, err)
	}
	if known == nil { // the file contains null
		known = map[string]string{}
	}
	return known, nil
}

func writeBaselines(dir string, known map[string]string) error {
	b, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, baselinesFile), append(b, '\n'))
}

// completeBaseline completes the arguments of tacho baseline.
func completeBaseline(env *Env, runs cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return fromList(bare(actionNames), false)(cmd, args, typed)
		case len(args) == 1 && args[0] != "list":
			known, _ := readBaselines(runsDir(env)) // a damaged file has no names
			return fromList(bare(func() []string { return slices.Sorted(maps.Keys(known)) }), false)(cmd, args, typed)
		case len(args) == 2 && args[0] == "set":
			return runs(cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
