package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/store"
)

// A Kind is one result format of a tool.
type Kind struct {
	Name, Doc string
	// Copies are files that repeat other files of the tool. They are skipped in a directory.
	Copies []string
	// read returns the levels of a file, or none if the file has another format.
	read func(f *file) ([]entry, error)
	// instead returns the file to use if the tool wrote this file but it is not supported, or "" if the
	// file has another format. It may be nil.
	instead func(f *file) string
}

func (k Kind) String() string { return k.Name }

// Kinds are all formats in the order they are tried, most distinctive first.
var Kinds = []Kind{documentKind, guidellmKind, aiperfKind, inferencePerfKind, genaiBenchKind, llmperfKind, sglangKind, vllmKind, textKind}

// An entry is one level of a result with its description.
type entry struct {
	about outcome.About
	level outcome.Level
}

// All reads every run in path: a directory stored by bench, a result or report of tacho or another
// tool, or a directory of these. Levels with the same client, model and server form one run, like the
// files of a sweep.
func All(path string, change func(*metric.Config) error) ([]outcome.Run, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a run, nor a result: there is no such file", path)
	} else if err != nil {
		return nil, err
	}
	if info.IsDir() && IsKept(path) {
		run, err := openKept(path, change)
		if err != nil {
			return nil, err
		}
		return []outcome.Run{*run}, nil
	}
	var runs []outcome.Run
	if info.IsDir() {
		runs, err = readFolder(path, change)
	} else {
		runs, err = readResult(path)
	}
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if err := adopt(&runs[i], change); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return runs, nil
}

// IsKept reports whether dir contains a run stored by bench.
func IsKept(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, store.ManifestFile))
	return err == nil
}

// readResult reads one file.
func readResult(path string) ([]outcome.Run, error) {
	entries, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		if name, other := insteadOf(path); other != "" {
			return nil, fmt.Errorf("%s: this file of %s is not read: give %s", path, name, other)
		}
		return nil, fmt.Errorf("%s: no result that is known here: want a run directory, or a result or report of %s", path, kindNames())
	}
	return group(entries, filepath.Base(path)), nil
}

// insteadOf returns the tool that wrote an unsupported file, and the file to use instead. Both are
// empty if the tool is unknown.
func insteadOf(path string) (tool, other string) {
	b, err := atomicfile.Read(path)
	if err != nil {
		return "", ""
	}
	for _, k := range Kinds {
		if k.instead == nil {
			continue
		}
		if other := k.instead(&file{path: path, bytes: b}); other != "" {
			return k.Name, other
		}
	}
	return "", ""
}

func kindNames() string {
	var names []string
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

// readFile returns the levels of a file, or none if its format is unknown.
func readFile(path string) ([]entry, error) {
	b, err := atomicfile.Read(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, bytes: b}
	if f.isJSON() {
		if err := checkSize(b); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, k := range Kinds {
		entries, err := k.read(f)
		if err != nil {
			return nil, fmt.Errorf("%s: cannot read this result of %s: %w", path, k.Name, err)
		}
		if f.cut != nil {
			return nil, fmt.Errorf("%s: incomplete JSON (%w): copy it again from its origin", path, f.cut)
		}
		if len(entries) > 0 {
			for i := range entries {
				entries[i].about.Name = cmp.Or(entries[i].about.Name, filepath.Base(path))
			}
			return entries, nil
		}
	}
	return nil, nil
}

// readFolder reads a directory recursively. Files that are not results are skipped; a damaged result is
// an error.
func readFolder(dir string, change func(*metric.Config) error) ([]outcome.Run, error) {
	var runs []outcome.Run
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			files = append(files, path)
		case IsKept(path):
			run, err := openKept(path, change)
			switch {
			case errors.Is(err, errNothing): // not a result
			case err != nil:
				return err
			default:
				runs = append(runs, *run)
			}
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	results, damaged := readFiles(files)
	if len(damaged) > 0 {
		return nil, damaged[0]
	}
	runs = append(runs, results...)
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: no run and no result in it; runs are kept in runs/", dir)
	}
	return runs, nil
}

// Results returns the runs in several files. Levels with the same client, model and server form one
// run. Files that are not results are skipped; a damaged result has an error.
func Results(paths []string) ([]outcome.Run, []error) {
	runs, errs := readFiles(paths)
	for i := range runs {
		if err := adopt(&runs[i], nil); err != nil {
			errs = append(errs, err)
		}
	}
	return runs, errs
}

func readFiles(paths []string) (runs []outcome.Run, errs []error) {
	var entries, copies []entry
	for _, path := range paths {
		if info, err := os.Stat(path); !MayBeResult(path) || err == nil && !info.Mode().IsRegular() {
			continue // a pipe in the directory
		}
		found, err := readFile(path)
		if err != nil {
			errs = append(errs, err)
		}
		if isCopy(filepath.Base(path)) {
			copies = append(copies, found...)
		} else {
			entries = append(entries, found...)
		}
	}
	if len(entries) == 0 {
		entries = copies
	}
	return group(entries, ""), errs
}

// MayBeResult reports whether a file name is typical of results.
func MayBeResult(name string) bool {
	return slices.Contains([]string{".json", ".jsonl", ".txt", ".log", ".out", ".csv", ".md"}, strings.ToLower(filepath.Ext(name)))
}

func isCopy(name string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool { return slices.Contains(k.Copies, name) })
}

// group combines levels into runs: levels with the same client, server, model and label form one run,
// in the order they were found. name is the name of the first run; if empty, the name of its file is
// used.
func group(entries []entry, name string) []outcome.Run {
	var runs []outcome.Run
	at := map[string]int{}
	for _, e := range entries {
		a := &e.about
		key := strings.Join([]string{a.Tool, a.Backend, a.Model, a.Label, a.Dataset, strings.Join(a.URLs, " ")}, "\x00")
		if a.Backend == "" && a.Model == "" { // nothing shows that two files belong to the same server
			key += "\x00" + a.Name
		}
		i, seen := at[key]
		if !seen {
			i = len(runs)
			at[key] = i
			runs = append(runs, outcome.Run{About: e.about})
		}
		e.level.Index = len(runs[i].Levels)
		runs[i].Levels = append(runs[i].Levels, e.level)
	}
	if len(runs) == 1 && name != "" {
		runs[0].Name = name
	}
	return runs
}

// adopt completes a run read from other tools: the varying options, the names of its levels, and the
// metrics to show.
func adopt(run *outcome.Run, change func(*metric.Config) error) error {
	if strings.HasPrefix(run.Tool, "tacho") {
		return nil
	}
	nameLevels(run)
	for i := range run.Levels {
		l := &run.Levels[i]
		if change == nil {
			continue
		}
		if err := change(&l.Summary.Config); err != nil {
			return err
		}
		if err := l.Summary.Config.Validate(); err != nil {
			return err
		}
		if err := hasPercentiles(&l.Summary); err != nil {
			return err
		}
	}
	if len(run.Levels) > 0 && run.Began.IsZero() {
		run.Began = run.Levels[0].Epoch
	}
	return nil
}

// hasPercentiles returns an error for a requested percentile that the result does not contain.
func hasPercentiles(s *metric.Summary) error {
	for i := range metric.Sections {
		section := &metric.Sections[i]
		stats := s.Dist(section.Metric).Stats
		if !s.Config.Shows(section) || stats == nil {
			continue
		}
		for _, p := range s.Config.Percentiles {
			if !slices.ContainsFunc(stats.Percentiles, func(v metric.Percentile) bool { return v.P == p }) {
				return fmt.Errorf("%s has no P%v in the result, only %s", section.Key, p, percentileList(stats))
			}
		}
	}
	return nil
}

func percentileList(s *metric.Stats) string {
	var list []string
	for _, p := range s.Percentiles {
		list = append(list, fmt.Sprintf("P%v", p.P))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// A coordinate is a property that may distinguish levels.
type coordinate struct {
	flag string
	of   func(*outcome.Level) string
}

var coordinates = []coordinate{
	{"num-prompts", func(l *outcome.Level) string { return number(float64(l.Prompts), "0") }},
	{"request-rate", func(l *outcome.Level) string { return number(l.Rate, "inf") }},
	{"max-concurrency", func(l *outcome.Level) string { return number(float64(l.Concurrency), "0") }},
	{"input-len", func(l *outcome.Level) string { return number(math.Round(l.Summary.MeanInput()), "0") }},
}

func number(v float64, none string) string {
	if v <= 0 {
		return none
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// nameLevels names the properties that distinguish the levels of a run. The number of prompts is left
// out if it only follows from a rate or a limit. The length of prompts, which also varies randomly, is
// used only if nothing else distinguishes two levels.
func nameLevels(run *outcome.Run) {
	prompts, load, length := coordinates[:1], coordinates[1:3], coordinates[3:]
	chosen := varying(run, load)
	if len(chosen) == 0 || !telling(run, chosen) {
		chosen = slices.Concat(varying(run, prompts), chosen)
	}
	if !telling(run, chosen) && spreadOfInput(run) > 1.25 {
		chosen = append(chosen, length...)
	}
	var names []string
	for _, c := range chosen {
		names = append(names, c.flag)
	}
	run.Varies = cmp.Or(run.Varies, strings.Join(names, ", "))
	for i := range run.Levels {
		l := &run.Levels[i]
		if l.Name != "" {
			continue
		}
		var flags, values []string
		for _, c := range chosen {
			flags, values = append(flags, "--"+c.flag+" "+c.of(l)), append(values, c.of(l))
			l.Coordinates = append(l.Coordinates, outcome.Coordinate{Name: c.flag, Value: c.of(l)})
		}
		l.Name, l.Value = strings.Join(flags, " "), strings.Join(values, ", ")
	}
}

// varying returns the coordinates that differ between levels.
func varying(run *outcome.Run, of []coordinate) []coordinate {
	var out []coordinate
	for _, c := range of {
		if slices.ContainsFunc(run.Levels, func(l outcome.Level) bool { return c.of(&l) != c.of(&run.Levels[0]) }) {
			out = append(out, c)
		}
	}
	return out
}

// telling reports whether coordinates distinguish all levels.
func telling(run *outcome.Run, of []coordinate) bool {
	seen := map[string]bool{}
	for i := range run.Levels {
		var values []string
		for _, c := range of {
			values = append(values, c.of(&run.Levels[i]))
		}
		key := strings.Join(values, " ")
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// spreadOfInput returns the ratio of the longest to the shortest prompts.
func spreadOfInput(run *outcome.Run) float64 {
	low, high := math.Inf(1), 0.0
	for i := range run.Levels {
		n := run.Levels[i].Summary.MeanInput()
		low, high = min(low, n), max(high, n)
	}
	return high / max(low, 1)
}
