package store

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/recordjson"
)

// A Run is a stored run.
type Run struct {
	Dir      string
	Manifest Manifest
	Levels   []Level // in the order in which they began
	Complete bool    // the run is complete and wrote its summary

	places  map[int]int // position in Levels by index
	damage  map[string]Damage
	tallies tallies           // of the records read so far
	pending map[string][]byte // bytes not yet in the files
}

// Damage counts the unreadable lines of a file.
type Damage struct {
	Lines int
	First error // with file name and line number
}

// Open reads a run without its records.
func Open(dir string) (*Run, error) { return open(dir, nil) }

func open(dir string, pending map[string][]byte) (*Run, error) {
	r := &Run{Dir: dir, places: map[int]int{}, damage: map[string]Damage{}, pending: pending}
	if err := r.readManifest(); err != nil {
		return nil, err
	}
	_, err := os.Stat(filepath.Join(dir, SummaryFile))
	r.Complete = err == nil
	return r, eachLine(r, StagesFile, func(l *Level) error {
		if i, known := r.places[l.Index]; known {
			r.Levels[i] = *l
			return nil
		}
		if len(r.Levels) == maxLevels {
			return tooMany(r.file(StagesFile), maxLevels, "levels")
		}
		r.places[l.Index] = len(r.Levels)
		r.Levels = append(r.Levels, *l)
		return nil
	})
}

// Limits of a run, so that a run from a stranger cannot exhaust the memory. A plan has at most 10,000 levels, and a
// run of a day reads fewer metrics pages.
const (
	maxLevels  = 10_000
	maxSamples = 1 << 20
	maxText    = 16 << 20 // bytes of the manifest, and of a line that is not a record
)

// file returns the path of a file of the run.
func (r *Run) file(name string) string { return filepath.Join(r.Dir, name) }

// A limitError ends the reading of a file.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func tooMany(path string, most int, what string) error {
	return &limitError{fmt.Sprintf("%s: more than %d %s: this is not a run of tacho", path, most, what)}
}

// Newest reads the runs in a directory without their records, the newest first.
// It skips everything that is not a run.
func Newest(dir string) (runs []*Run) {
	entries, _ := os.ReadDir(dir) // no directory means no runs
	for _, e := range entries {
		if r, err := Open(filepath.Join(dir, e.Name())); err == nil {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *Run) int {
		return cmp.Or(b.Manifest.Started.Compare(a.Manifest.Started), strings.Compare(b.Dir, a.Dir))
	})
	return runs
}

func (r *Run) readManifest() error {
	path := r.file(ManifestFile)
	b, err := atomicfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not a run because %s is missing: name a directory in runs/", r.Dir, ManifestFile)
	} else if err != nil {
		return err
	}
	if len(b) > maxText {
		return fmt.Errorf("%s is larger than %d MiB: this is not a run of tacho", path, maxText>>20)
	}
	var by struct { // fields of every format
		Schema  int
		Version string
	}
	if err := json.Unmarshal(b, &by); err == nil && by.Schema > format {
		return fmt.Errorf("%s has format %d, and this tacho reads formats up to %d: use tacho %s or newer", r.Dir, by.Schema, format, by.Version)
	}
	if err := json.Unmarshal(b, &r.Manifest); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.Manifest.Schema < 1 {
		return fmt.Errorf("%s has no format number: it was changed, or another tool wrote it", path)
	}
	return nil
}

// Limit returns the sentence on the limit found by a search, or "" if there was no search, and the
// number of the probe that met the limit, or nil if there is none.
func (r *Run) Limit() (sentence string, probe *int) {
	var limit struct {
		Sentence string
		Probe    *int
	}
	if b, err := atomicfile.Read(r.file(LimitFile)); err == nil {
		_ = json.Unmarshal(b, &limit) // an unreadable file counts as missing
	}
	return limit.Sentence, limit.Probe
}

// Records yields the finished requests of the run in the order in which they finished. Unreadable lines
// are skipped and counted.
func (r *Run) Records() iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		r.tallies = tallies{}
		err := eachLine(r, RecordsFile, func(rec *tacho.Record) error {
			if _, known := r.places[rec.Stage]; !known {
				return fmt.Errorf("a record belongs to the unknown level %d", rec.Stage)
			}
			r.tallies.add(rec)
			if !yield(rec, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// Samples returns the values of the metrics pages, by stage index.
func (r *Run) Samples() (map[int][]instrument.Sample, error) {
	out, n := map[int][]instrument.Sample{}, 0
	err := eachLine(r, InstrumentsFile, func(s *reading) error {
		if n++; n > maxSamples {
			return tooMany(r.file(InstrumentsFile), maxSamples, "samples")
		}
		out[s.Stage] = append(out[s.Stage], s.Sample)
		return nil
	})
	return out, err
}

// Damaged returns the damage of all files read so far.
func (r *Run) Damaged() (all Damage) {
	for _, name := range []string{StagesFile, RecordsFile, InstrumentsFile} {
		if d := r.damage[name]; d.Lines > 0 {
			all.Lines += d.Lines
			if all.First == nil {
				all.First = d.First
			}
		}
	}
	return all
}

// errEnough stops the reading.
var errEnough = errors.New("enough")

// decode decodes a line.
func decode[T any](line []byte, v *T) error {
	if rec, ok := any(v).(*tacho.Record); ok {
		return cmp.Or(recordjson.Decode(line, rec), checkTimes(rec))
	}
	if len(line) > maxText {
		return fmt.Errorf("longer than %d MiB", maxText>>20)
	}
	return json.Unmarshal(line, v)
}

// maxTime limits the times of a record, so that sums and differences of times cannot overflow. It is 36 years.
const maxTime = time.Duration(1) << 60

// checkTimes returns an error if a time is beyond maxTime.
func checkTimes(r *tacho.Record) error {
	for _, t := range []time.Duration{r.Due, r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head, r.End, r.SentSlack, r.ClockMoved, r.ClockStep} {
		if t.Abs() > maxTime {
			return errFar
		}
	}
	for e := range r.Arrivals() {
		if e.At.Abs() > maxTime {
			return errFar
		}
	}
	return nil
}

var errFar = fmt.Errorf("a time is more than %d years from the start of the level", maxTime/(365*24*time.Hour))

// eachLine decodes the lines of a file, which may still be growing. If a line cannot be decoded, or use
// rejects it, only this line is lost. An incomplete last line is being written, or was being written
// when the process died. In a complete run it is damage.
func eachLine[T any](r *Run, name string, use func(*T) error) error {
	f, err := atomicfile.Open(r.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	var damage Damage
	defer func() { r.damage[name] = damage }()
	in := bufio.NewReaderSize(io.MultiReader(f, bytes.NewReader(r.pending[name])), 1<<16)
	n := 0
	var exceeded *limitError
	err = inOrder(in, r.Complete, decode[T], func(v *T, err error) bool {
		n++
		if err == nil && v != nil {
			err = use(v)
		}
		if errors.Is(err, errEnough) || errors.As(err, &exceeded) {
			return false
		}
		if err != nil {
			if damage.Lines++; damage.First == nil {
				damage.First = fmt.Errorf("%s:%d: %w", r.file(name), n, err)
			}
		}
		return true
	})
	if exceeded != nil {
		return exceeded
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.file(name), err)
	}
	return nil
}
