package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"tacho"
	"tacho/instrument"
	"tacho/internal/recordjson"
	"tacho/internal/wholefile"
)

// A Run is a run as it was kept.
type Run struct {
	Dir      string
	Manifest Manifest
	Levels   []Level // in the order in which they began
	Whole    bool    // it came to its end and wrote its summary

	damage  map[string]Damage
	tallies tallies           // of the records that were read
	waiting map[string][]byte // what is not yet in the files
}

// Damage is what could not be read of a file.
type Damage struct {
	Lines int
	First error // with the name of the file and the number of the line
}

// Open reads all of a run but its records.
func Open(dir string) (*Run, error) { return open(dir, nil) }

func open(dir string, waiting map[string][]byte) (*Run, error) {
	r := &Run{Dir: dir, damage: map[string]Damage{}, waiting: waiting}
	if err := r.readManifest(); err != nil {
		return nil, err
	}
	_, err := os.Stat(filepath.Join(dir, SummaryFile))
	r.Whole = err == nil
	return r, eachLine(r, StagesFile, func(l *Level) error {
		if i := r.level(l.Index); i >= 0 {
			r.Levels[i] = *l
		} else {
			r.Levels = append(r.Levels, *l)
		}
		return nil
	})
}

func (r *Run) readManifest() error {
	path := filepath.Join(r.Dir, ManifestFile)
	b, err := wholefile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not a run: it has no %s", r.Dir, ManifestFile)
	} else if err != nil {
		return err
	}
	var by struct { // what every format has
		Schema  int
		Version string
	}
	if err := json.Unmarshal(b, &by); err == nil && by.Schema > format {
		return fmt.Errorf("%s is kept in format %d, and this tacho reads up to %d: read it with tacho %s or newer", r.Dir, by.Schema, format, by.Version)
	}
	if err := json.Unmarshal(b, &r.Manifest); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.Manifest.Schema < 1 {
		return fmt.Errorf("%s names no format: it is not a run of tacho, or the manifest was changed", path)
	}
	return nil
}

// Limit is the sentence on the limit that was searched for, empty if none was, and
// the number of the probe that held there, nil if none did.
func (r *Run) Limit() (sentence string, probe *int) {
	var limit struct {
		Sentence string
		Probe    *int
	}
	if b, err := wholefile.Read(filepath.Join(r.Dir, LimitFile)); err == nil {
		_ = json.Unmarshal(b, &limit) // what cannot be read was never there
	}
	return limit.Sentence, limit.Probe
}

// level is where in Levels the one of that index is; -1 if it is not known.
func (r *Run) level(index int) int {
	return slices.IndexFunc(r.Levels, func(l Level) bool { return l.Index == index })
}

// Records are the finished requests of the run, in the order in which they
// finished. Lines that cannot be read are left out, and counted.
func (r *Run) Records() iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		r.tallies = tallies{}
		err := eachLine(r, RecordsFile, func(rec *tacho.Record) error {
			if r.level(rec.Stage) < 0 {
				return fmt.Errorf("a record of level %d, of which nothing is known", rec.Stage)
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

// Samples are what metrics pages said, by the index of the stage.
func (r *Run) Samples() (map[int][]instrument.Sample, error) {
	out := map[int][]instrument.Sample{}
	err := eachLine(r, InstrumentsFile, func(s *reading) error {
		out[s.Stage] = append(out[s.Stage], s.Sample)
		return nil
	})
	return out, err
}

// Damaged is what could not be read of the files that were.
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

// errEnough ends a reading: nobody wants more.
var errEnough = errors.New("enough")

// decode reads a line.
func decode[T any](line []byte, v *T) error {
	if rec, ok := any(v).(*tacho.Record); ok {
		return recordjson.Decode(line, rec)
	}
	return json.Unmarshal(line, v)
}

// eachLine decodes the lines of a file, which may still be growing. A line that
// cannot be decoded, or that use does not like, costs that line. A last line that
// has no end is being written, or was when the process died; in a run that is
// whole it is damage.
func eachLine[T any](r *Run, name string, use func(*T) error) error {
	f, err := os.Open(filepath.Join(r.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	var damage Damage
	defer func() { r.damage[name] = damage }()
	in := bufio.NewReaderSize(io.MultiReader(f, bytes.NewReader(r.waiting[name])), 1<<16)
	n := 0
	return inOrder(in, r.Whole, decode[T], func(v *T, err error) bool {
		n++
		if err == nil && v != nil {
			err = use(v)
		}
		if errors.Is(err, errEnough) {
			return false
		}
		if err != nil {
			if damage.Lines++; damage.First == nil {
				damage.First = fmt.Errorf("%s:%d: %w", filepath.Join(r.Dir, name), n, err)
			}
		}
		return true
	})
}
