package ui

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tacho/archive"
	"tacho/metric"
	"tacho/outcome"
	"tacho/report/conclusion"
	"tacho/report/page"
	"tacho/store"
)

// An Item is a run, or somebody's result, as the list shows it.
type Item struct {
	ID      string        `json:"id"`   // says nothing to anybody else
	Place   string        `json:"path"` // below the folder
	State   State         `json:"state"`
	Problem string        `json:"problem,omitempty"` // why it cannot be opened
	About   outcome.About `json:"about"`
	Levels  int           `json:"levels"`
	Totals  metric.Counts `json:"totals"`
	Best    *Best         `json:"best,omitempty"`
	Verdict string        `json:"verdict,omitempty"` // the worst of its levels
	Answer  []string      `json:"answer,omitempty"`  // what it came to, in sentences
	Notes   Notes         `json:"notes"`
	Bytes   int64         `json:"bytes,omitempty"` // on disk

	dir   string       // of a kept run
	files []string     // of a result
	run   *outcome.Run // of a result
	lacks bool         // its records are not those that it had
	stamp string       // changes when it does
}

// A State is how far a run is.
type State string

// The states.
const (
	Running State = "running"
	Over    State = "over"
	Cut     State = "cut short"
	Result  State = "result" // somebody else's
)

// Best is the level with the highest load that holds the goal of the run, or the one
// that served most.
type Best struct {
	Level        string   `json:"level,omitempty"`
	RequestsPerS float64  `json:"requests_per_s"`
	TokensPerS   float64  `json:"tokens_per_s"`
	TTFTP99      *float64 `json:"ttft_p99_ms"`
}

// A shelf is the folder, and what is known of it. What has not changed is not
// read again.
type shelf struct {
	root  string
	mu    sync.Mutex
	known map[string]*Item   // kept runs, by their directories
	loose map[string][]*Item // results, by their folders
}

const (
	mostDepth  = 5
	mostItems  = 5000
	mostResult = 256 << 20 // bytes of a result
)

// look finds what is there now, the latest first.
func (s *shelf) look() ([]*Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []*Item{} // an array in JSON, if empty
	results := map[string][]string{}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == s.root:
			return nil // the first run makes the folder
		case err != nil && path == s.root:
			return err
		case err != nil || len(items) >= mostItems:
			return nil //nolint:nilerr // what cannot be read is not there
		case !d.IsDir():
			if d.Type().IsRegular() && archive.MayBeResult(path) {
				results[filepath.Dir(path)] = append(results[filepath.Dir(path)], path)
			}
			return nil
		case path != s.root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case archive.IsKept(path):
			items = append(items, s.kept(path))
			return fs.SkipDir
		case strings.Count(strings.TrimPrefix(path, s.root), string(filepath.Separator)) > mostDepth:
			return fs.SkipDir
		}
		return nil
	})
	for folder, files := range results {
		items = append(items, s.results(folder, files)...)
	}
	slices.SortFunc(items, func(a, b *Item) int {
		return cmp.Or(b.About.Began.Compare(a.About.Began), cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID, b.ID))
	})
	return items, err
}

// find is the items of these names, in that order. A name is never a path: it is
// looked up among what is there.
func (s *shelf) find(ids []string) ([]*Item, error) {
	items, err := s.look()
	if err != nil {
		return nil, err
	}
	var out []*Item
	for _, id := range ids {
		i := slices.IndexFunc(items, func(it *Item) bool { return it.ID == id })
		if i < 0 {
			return nil, notThere(id)
		}
		out = append(out, items[i])
	}
	return out, nil
}

// nameOf is the name of an item.
func (s *shelf) nameOf(path, more string) (id, place string) {
	place, err := filepath.Rel(s.root, path)
	if err != nil {
		place = path
	}
	return base64.RawURLEncoding.EncodeToString([]byte(place + more)), place
}

// stampOf changes when one of the files does.
func stampOf(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", path, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// kept is a run that bench keeps in a directory.
func (s *shelf) kept(dir string) *Item {
	stamp := stampOf(filepath.Join(dir, store.ManifestFile), filepath.Join(dir, store.SummaryFile), filepath.Join(dir, store.NotesFile))
	state := Cut
	if _, err := os.Stat(filepath.Join(dir, store.SummaryFile)); err == nil {
		state = Over
		stamp += stampOf(filepath.Join(dir, store.RecordsFile))
	} else if store.GoesOn(dir) {
		state = Running
	}
	stamp += string(state)
	if old := s.known[dir]; old != nil && old.stamp == stamp {
		return old
	}
	it := &Item{State: state, dir: dir, stamp: stamp}
	it.ID, it.Place = s.nameOf(dir, "")
	it.Place = page.Clip(it.Place)
	run, err := readKept(dir, state)
	if err == nil {
		it.Notes = readNotes(dir)
	} else {
		it.Problem, run = err.Error(), &outcome.Run{}
	}
	it.lacks = slices.ContainsFunc(run.Levels, func(l outcome.Level) bool { return l.LacksRecords() != "" })
	it.tell(run)
	it.About.Name = page.Clip(filepath.Base(dir)) // it may have been given another name since
	it.Bytes = sizeOf(dir)
	if s.known == nil {
		s.known = map[string]*Item{}
	}
	s.known[dir] = it
	return it
}

// plainFiles complains of a run that has anything but files where its files are:
// a link would lead out of the folder, and a pipe would never end.
func plainFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() && !e.IsDir() {
			return fmt.Errorf("%.80q is no plain file: it is not opened", e.Name())
		}
	}
	return nil
}

// readKept is what is known of a kept run without reading its records. They are
// read only if their file has another size than when the run ended.
func readKept(dir string, state State) (*outcome.Run, error) {
	if err := plainFiles(dir); err != nil {
		return nil, err
	}
	kept, err := store.Open(dir)
	if state == Over && err == nil && kept.Touched() {
		return archive.Open(dir, nil)
	}
	if state == Over {
		if run, err := archive.Summary(dir); err == nil {
			return run, nil
		}
	}
	if err != nil {
		return nil, err
	}
	run := &outcome.Run{About: archive.About(dir, &kept.Manifest)}
	for _, l := range kept.Levels {
		run.Levels = append(run.Levels, outcome.Level{Setting: l.Setting})
	}
	return run, nil
}

func sizeOf(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir) // what cannot be read has no size
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// results are the runs that the files of a folder tell of.
func (s *shelf) results(folder string, files []string) []*Item {
	files = slices.DeleteFunc(files, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Size() > mostResult
	})
	stamp := stampOf(files...)
	if old := s.loose[folder]; len(old) > 0 && old[0].stamp == stamp {
		return old
	}
	runs, damaged := archive.Results(files)
	var items []*Item
	for i := range runs {
		it := &Item{State: Result, files: files, run: &runs[i], stamp: stamp}
		it.ID, it.Place = s.nameOf(folder, fmt.Sprintf("#%d", i))
		it.Place = page.Clip(filepath.Join(it.Place, runs[i].Name))
		it.tell(&runs[i])
		items = append(items, it)
	}
	for i, err := range damaged {
		it := &Item{State: Result, Problem: page.Clip(err.Error()), stamp: stamp}
		it.ID, it.Place = s.nameOf(folder, fmt.Sprintf("#damaged %d", i))
		items = append(items, it)
	}
	if s.loose == nil {
		s.loose = map[string][]*Item{}
	}
	s.loose[folder] = items
	return items
}

// severities are verdicts, the worst first.
var severities = []metric.Severity{metric.Invalid, metric.Degraded, metric.Predicted, metric.Unjudged, metric.Valid}

// tell takes in what a run came to.
func (it *Item) tell(run *outcome.Run) {
	about := run.About
	about.Args = nil
	_ = json.Unmarshal(page.Clipped(about), &it.About) // whatever is in it, it is short now
	it.Problem = page.Clip(it.Problem)
	it.Levels = len(run.Levels)
	worst := len(severities)
	for i := range run.Levels {
		l := &run.Levels[i]
		it.Totals.Requests += l.Summary.Requests
		it.Totals.Completed += l.Summary.Completed
		it.Totals.Failed += l.Summary.Failed
		if at := slices.Index(severities, l.Summary.Verdict.Severity); at >= 0 && at < worst {
			worst, it.Verdict = at, string(severities[at])
		}
		if t := l.Summary.Throughput; t != nil && (it.Best == nil || t.RequestsPerS > it.Best.RequestsPerS) {
			it.Best = bestOf(l)
		}
	}
	if it.Best == nil && it.State != Over {
		return // nothing is known of it yet
	}
	c := conclusion.Of(run)
	if it.Answer = c.Text; c.Held != nil {
		it.Best = bestOf(&run.Levels[c.Held.Level])
	}
}

func bestOf(l *outcome.Level) *Best {
	t := l.Summary.Throughput
	best := &Best{Level: page.Clip(l.Name), RequestsPerS: t.RequestsPerS, TokensPerS: t.OutputTokensPerS}
	if stats := l.Summary.Dist(metric.TTFT).Stats; stats != nil && stats.At(99).P == 99 {
		best.TTFTP99 = new(stats.Percentile(99))
	}
	return best
}

// open reads the runs of an item whole.
func (it *Item) open() ([]outcome.Run, error) {
	if it.run != nil {
		return []outcome.Run{*it.run}, nil
	}
	if it.dir == "" || it.Problem != "" {
		return nil, fmt.Errorf("it cannot be read: %s", it.Problem)
	}
	if err := plainFiles(it.dir); err != nil {
		return nil, err
	}
	return archive.All(it.dir, nil)
}
