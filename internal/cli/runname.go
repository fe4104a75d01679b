package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/store"
)

// lastRun names the newest run. lastRun~1 is the run before it.
const lastRun = "last"

// runsDir returns the directory of runs for commands without --runs-dir.
func runsDir(env *Env) string {
	return cmp.Or(env.Getenv(variable("runs-dir")), plan.Default().RunsDir)
}

// runsBack parses last or last~N. It returns false for any other word.
func runsBack(word string) (n int, ok bool) {
	if word == lastRun {
		return 0, true
	}
	number, found := strings.CutPrefix(word, lastRun+"~")
	n, err := strconv.Atoi(number)
	return n, found && err == nil && n >= 0
}

// nthLast returns the directory of the newest run in dir, or of the n-th run
// before it.
func nthLast(dir string, n int) (string, error) {
	all := store.Newest(dir)
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("no run in %s/: measure one with tacho bench, or name a directory or file", filepath.Clean(dir))
	case n >= len(all):
		return "", fmt.Errorf("%s~%d: only %d runs in %s/, the oldest is %s~%d", lastRun, n, len(all), filepath.Clean(dir), lastRun, len(all)-1)
	}
	return all[n].Dir, nil
}

// runBefore returns the run before another one in the same directory.
func runBefore(env *Env, word string) (string, error) {
	path, err := findRun(env, word)
	if err != nil {
		return "", err
	}
	path = filepath.Clean(path)
	all := store.Newest(filepath.Dir(path))
	i := slices.IndexFunc(all, func(r *store.Run) bool { return filepath.Clean(r.Dir) == path })
	if i < 0 || i+1 == len(all) {
		return "", fmt.Errorf("%s has no run before it in %s/: name two runs, as in tacho compare A %s", word, filepath.Dir(path), word)
	}
	return all[i+1].Dir, nil
}

// namedRun returns the run that last, last~1 or baseline:main names. It returns
// false for any other word.
func namedRun(dir, word string) (path string, named bool, err error) {
	if n, ok := runsBack(word); ok {
		path, err = nthLast(dir, n)
		return path, true, err
	}
	if name, ok := strings.CutPrefix(word, baselinePrefix); ok {
		path, err = baselineRun(dir, name)
		return path, true, err
	}
	return "", false, nil
}

// namesRun reports whether namedRun knows a word.
func namesRun(word string) bool {
	_, back := runsBack(word)
	return back || strings.HasPrefix(word, baselinePrefix)
}

// findRun returns the file or directory with this name, the run that last,
// last~1 or baseline:main names, the only file or run that starts with word, or
// the newest run whose label is word.
func findRun(env *Env, word string) (string, error) {
	if _, err := os.Stat(word); !errors.Is(err, fs.ErrNotExist) {
		return word, err
	}
	dir := runsDir(env)
	if path, ok, err := namedRun(dir, word); ok {
		return path, err
	}
	var found []string
	labeled := ""
	for _, dir := range []string{dir, "."} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // does not exist
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), word) {
				found = append(found, filepath.Join(dir, e.Name()))
			}
			if len(e.Name()) == len("20060102-150405-")+len(word) && strings.HasSuffix(e.Name(), "-"+word) {
				labeled = filepath.Join(dir, e.Name())
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && labeled != "":
		return labeled, nil
	case len(found) == 0:
		return "", fmt.Errorf("%s: no such file, and no run in %s/ has this label or starts with that (%s is the newest run)", word, filepath.Clean(dir), lastRun)
	}
	return "", fmt.Errorf("%s is ambiguous: %s", word, strings.Join(found, " and "))
}

// findRuns finds every run named on a command line; none means the newest run.
func findRuns(env *Env, words []string) ([]string, error) {
	if len(words) == 0 {
		words = []string{lastRun}
	}
	paths := make([]string, len(words))
	for i, word := range words {
		var err error
		if paths[i], err = findRun(env, word); err != nil {
			return nil, usage(err)
		}
	}
	return paths, nil
}

// nameReplay replaces last, last~1 and baseline:main in --replay with the
// directory, which the plan of the new run stores.
func nameReplay(p *plan.Plan) error {
	texts, changed := p.Values("replay"), false
	for i, text := range texts {
		name, isBaseline := strings.CutPrefix(text, baselinePrefix)
		word, index, indexed := strings.Cut(name, ":")
		if isBaseline {
			word = baselinePrefix + word
		}
		if _, err := os.Stat(word); err == nil {
			continue
		}
		dir, ok, err := namedRun(p.RunsDir, word)
		if !ok {
			continue
		}
		if err != nil {
			return fmt.Errorf("--replay: %w", err)
		}
		if texts[i], changed = dir, true; indexed {
			texts[i] += ":" + index
		}
	}
	if !changed {
		return nil
	}
	return p.Set("replay", strings.Join(texts, ","))
}
