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

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/report/page"
	"github.com/tacho-bench/tacho/store"
)

// An Item is a run, or a result of another tool, in the list.
type Item struct {
	ID      string        `json:"id"`   // opaque
	Place   string        `json:"path"` // relative to the folder
	State   State         `json:"state"`
	Problem string        `json:"problem,omitempty"` // reason why the run cannot be opened
	About   outcome.About `json:"about"`
	Load    string        `json:"load,omitempty"` // "1 to 6 req/s"
	Levels  int           `json:"levels"`
	Curve   []Point       `json:"curve,omitempty"` // one for each level with a result
	Totals  metric.Counts `json:"totals"`
	Best    *Best         `json:"best,omitempty"`
	Verdict string        `json:"verdict,omitempty"` // of its conclusion
	Invalid int           `json:"invalid,omitempty"` // number of INVALID levels
	Answer  []string      `json:"answer,omitempty"`  // conclusion in sentences
	// Simulated reports whether a simulated engine served the run.
	Simulated bool  `json:"simulated,omitempty"`
	Notes     Notes `json:"notes"`
	Bytes     int64 `json:"bytes,omitempty"` // on disk

	dir   string       // directory of a run
	place string       // its path relative to the folder, in full
	run   *outcome.Run // run of a result
	lacks bool         // records are missing since the run ended
	stamp string       // changes with the files
}

// A State is the state of a run.
type State string

// The states.
const (
	Running State = "running"
	Over    State = "over"
	Cut     State = "cut short"
	Result  State = "result" // of another tool
)

// Best is the level that stands for the run. An INVALID run has none.
type Best struct {
	Level        string   `json:"level,omitempty"`
	RequestsPerS *float64 `json:"requests_per_s"` // nil if there are too few requests for a throughput, as TokensPerS
	TokensPerS   *float64 `json:"tokens_per_s"`
	TTFTP99      *float64 `json:"ttft_p99_ms"`
	TPOTP99      *float64 `json:"tpot_p99_ms"`
}

// A Point is a level in the small chart of a run.
type Point struct {
	Load         string   `json:"load"`
	RequestsPerS float64  `json:"requests_per_s"`
	TTFTP99      *float64 `json:"ttft_p99_ms"`
	Invalid      bool     `json:"invalid,omitempty"`
	Best         bool     `json:"best,omitempty"` // the level of Best
}

// A runList reads the folder of runs. It caches items and reads only changed files
// again.
type runList struct {
	root  string
	mu    sync.Mutex
	known map[string]*Item   // runs of tacho by directory
	loose map[string][]*Item // results by folder
}

// look returns the current items, latest first.
func (s *runList) look() ([]*Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []*Item{} // an empty array in JSON if there are no items
	results := map[string][]string{}
	root, err := s.real()
	if errors.Is(err, fs.ErrNotExist) {
		return items, nil // the first run creates the folder
	}
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil || len(items) >= 5000:
			return nil //nolint:nilerr // unreadable entries are skipped
		case !d.IsDir():
			if d.Type().IsRegular() && archive.MayBeResult(path) {
				results[filepath.Dir(path)] = append(results[filepath.Dir(path)], path)
			}
			return nil
		case path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case archive.IsKept(path):
			items = append(items, s.kept(root, path))
			return fs.SkipDir
		case strings.Count(strings.TrimPrefix(path, root), string(filepath.Separator)) > 5:
			return fs.SkipDir
		}
		return nil
	})
	for folder, files := range results {
		items = append(items, s.results(root, folder, files)...)
	}
	slices.SortFunc(items, func(a, b *Item) int {
		return cmp.Or(b.About.Began.Compare(a.About.Began), cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID, b.ID))
	})
	return items, err
}

// find returns the items with the given IDs, in order. An ID is looked up in the list
// and never used as a path.
func (s *runList) find(ids []string) ([]*Item, error) {
	items, err := s.look()
	if err != nil {
		return nil, err
	}
	var out []*Item
	for _, id := range ids {
		i := slices.IndexFunc(items, func(it *Item) bool { return it.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("unknown run %.40q: reload the list", id)
		}
		out = append(out, items[i])
	}
	return out, nil
}

// Fragment returns the part of an address after the # that shows a run of the folder.
func Fragment(folder, run string) string {
	id, _ := nameOf(folder, run, "")
	return "run=" + id
}

// nameOf returns the ID and the relative path of an item.
func nameOf(root, path, more string) (id, place string) {
	place, err := filepath.Rel(root, path)
	if err != nil {
		place = path
	}
	return base64.RawURLEncoding.EncodeToString([]byte(place + more)), place
}

// stampOf returns a text that changes with the files. It does not follow links.
func stampOf(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			fmt.Fprintf(&b, "%s %s %d %d\n", path, info.Mode(), info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// kept returns the item of a run directory.
func (s *runList) kept(root, dir string) *Item {
	stamp := stampOf(filepath.Join(dir, store.ManifestFile), filepath.Join(dir, store.SummaryFile), filepath.Join(dir, store.NotesFile))
	state := Cut
	if _, err := os.Stat(filepath.Join(dir, store.SummaryFile)); err == nil {
		state = Over
		stamp += stampOf(filepath.Join(dir, store.RecordsFile))
	} else if running(dir) {
		state = Running
	}
	stamp += string(state)
	if old := s.known[dir]; old != nil && old.stamp == stamp {
		return old
	}
	it := &Item{State: state, dir: dir, stamp: stamp}
	it.ID, it.place = nameOf(root, dir, "")
	it.Place = page.Clip(it.place)
	run, err := readKept(dir, state)
	if err == nil {
		it.Notes = s.readNotes(it)
	} else {
		it.Problem, run = err.Error(), &outcome.Run{}
	}
	it.lacks = slices.ContainsFunc(run.Levels, func(l outcome.Level) bool { return l.LacksRecords() != "" })
	it.tell(run)
	it.About.Name = page.Clip(filepath.Base(dir)) // the directory may have been renamed
	it.Bytes = sizeOf(dir)
	if s.known == nil {
		s.known = map[string]*Item{}
	}
	s.known[dir] = it
	return it
}

// readKept reads a run without its records. The records are read only if the size of
// their file changed after the run.
func readKept(dir string, state State) (*outcome.Run, error) {
	if err := plainFiles(dir); err != nil {
		return nil, err
	}
	kept, err := store.Open(dir)
	if state == Over && err == nil && kept.SizeChanged() {
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
	entries, _ := os.ReadDir(dir) // an unreadable directory counts as empty
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// results returns the items of the result files in a folder.
func (s *runList) results(root, folder string, files []string) []*Item {
	files = slices.DeleteFunc(files, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Size() > 256<<20
	})
	stamp := stampOf(files...)
	if old := s.loose[folder]; len(old) > 0 && old[0].stamp == stamp {
		return old
	}
	runs, damaged := archive.Results(files)
	var items []*Item
	for i := range runs {
		it := &Item{State: Result, run: &runs[i], stamp: stamp}
		it.ID, it.Place = nameOf(root, folder, fmt.Sprintf("#%d", i))
		it.Place = page.Clip(filepath.Join(it.Place, runs[i].Name))
		it.tell(&runs[i])
		items = append(items, it)
	}
	for i, err := range damaged {
		it := &Item{State: Result, Problem: page.Clip(err.Error()), stamp: stamp}
		it.ID, it.Place = nameOf(root, folder, fmt.Sprintf("#damaged %d", i))
		items = append(items, it)
	}
	if s.loose == nil {
		s.loose = map[string][]*Item{}
	}
	s.loose[folder] = items
	return items
}

// tell fills in the item from a run.
func (it *Item) tell(run *outcome.Run) {
	about := run.About
	about.Args = nil
	_ = json.Unmarshal(page.Clipped(about), &it.About) // with bounded length
	it.Problem = page.Clip(it.Problem)
	it.Levels = len(run.Levels)
	it.Load = conclusion.LoadOf(run.Levels)
	measured := false
	for i := range run.Levels {
		l := &run.Levels[i]
		it.Totals.Requests += l.Summary.Requests
		it.Totals.Completed += l.Summary.Completed
		it.Totals.Failed += l.Summary.Failed
		measured = measured || l.Summary.Throughput != nil
	}
	it.Simulated, it.Invalid = run.Simulated(), run.Invalid()
	if !measured && it.State != Over {
		return // no result yet
	}
	c := conclusion.Of(run)
	it.Verdict, it.Answer = string(c.Verdict), c.Text
	best := c.Shown(run.Levels)
	if measured && c.Verdict != metric.Invalid {
		it.Best = bestOf(&run.Levels[best])
	}
	it.Curve = curveOf(run.Levels, best)
}

// curveOf returns the points of the small chart, by rising load if the levels have an
// order.
func curveOf(levels []outcome.Level, best int) (out []Point) {
	places := conclusion.ByLoad(levels)
	for _, i := range places[:min(len(places), 60)] {
		l := &levels[i]
		if t := l.Summary.Throughput; t != nil {
			out = append(out, Point{conclusion.LoadOf(levels[i : i+1]), t.RequestsPerS, percentile99(l, metric.TTFT), l.Summary.Verdict.Severity == metric.Invalid, i == best})
		}
	}
	return out
}

func bestOf(l *outcome.Level) *Best {
	best := &Best{Level: page.Clip(l.Name), TTFTP99: percentile99(l, metric.TTFT), TPOTP99: percentile99(l, metric.TPOT)}
	if l.HasRate() {
		best.RequestsPerS, best.TokensPerS = &l.Summary.Throughput.RequestsPerS, &l.Summary.Throughput.OutputTokensPerS
	}
	return best
}

// percentile99 returns the p99 of a metric, or nil if the level has none.
func percentile99(l *outcome.Level, m *metric.Metric) *float64 {
	stats := l.Summary.Dist(m).Stats
	if stats == nil || stats.At(99).P != 99 || l.Summary.Verdict.Voids(m.Name) {
		return nil
	}
	return new(stats.Percentile(99))
}

// open reads the runs of an item with their records.
func (it *Item) open() ([]outcome.Run, error) {
	if it.run != nil {
		return []outcome.Run{*it.run}, nil
	}
	if it.dir == "" || it.Problem != "" {
		return nil, fmt.Errorf("the run cannot be read: %s", it.Problem)
	}
	if err := plainFiles(it.dir); err != nil {
		return nil, err
	}
	return archive.All(it.dir, nil)
}
