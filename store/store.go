// Package store keeps a run: a directory with a manifest, the stages as they
// began, a record for each request as it finished, and a summary at the end.
//
// Files only grow while a run goes on, a line at a time, and each line is
// handed to the kernel before the next: a process that is killed loses the
// requests in flight and nothing else, and a run can be read while it grows.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tacho"
)

// The files of a run.
const (
	ManifestFile = "manifest.json"
	StagesFile   = "stages.jsonl"
	RecordsFile  = "records.jsonl"
	SummaryFile  = "summary.json"
)

// A Manifest says what a run was: enough to run it again.
type Manifest struct {
	Tool    string          `json:"tool"`
	Version string          `json:"version"`
	Started time.Time       `json:"started"`
	Label   string          `json:"label,omitempty"`
	Args    []string        `json:"args,omitempty"` // the command line, secrets taken out
	Seed    uint64          `json:"seed"`
	Model   string          `json:"model,omitempty"` // as found, where the plan does not name it
	Counter string          `json:"counter"`         // who counted prompt tokens
	Host    Host            `json:"host"`
	Plan    json.RawMessage `json:"plan"`
}

// Host is the machine the load came from.
type Host struct {
	Name       string `json:"name"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	GoVersion  string `json:"go_version"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// A Stage is one level of a run.
type Stage struct {
	Index     int             `json:"index"`
	Name      string          `json:"name,omitempty"`    // what sets it apart: "--num-prompts 4"
	Value     string          `json:"value,omitempty"`   // the same, short: "4"
	Epoch     time.Time       `json:"epoch"`             // all offsets in its records count from here
	Monotonic float64         `json:"monotonic_seconds"` // the monotonic clock at Epoch
	Config    json.RawMessage `json:"config"`            // what the summary needs to know
}

// A Writer adds to a run. It is a tacho.Sink.
type Writer struct {
	dir             string
	records, stages *os.File
	clean           func(line []byte) []byte
}

var _ tacho.Sink = (*Writer)(nil)

// Create makes the directory of a new run below root, named for its time and
// its label, and writes the manifest. Every document and line goes through clean,
// which takes out what nobody should keep.
func Create(root string, m Manifest, clean func(doc []byte) []byte) (*Writer, error) {
	dir, err := makeDir(root, m.Started.Format("20060102-150405")+suffix(m.Label))
	if err != nil {
		return nil, fmt.Errorf("make a directory for the run: %w (choose another place with --runs-dir)", err)
	}
	w := &Writer{dir: dir, clean: clean}
	if err := w.writeJSON(ManifestFile, m); err != nil {
		return nil, err
	}
	if w.stages, err = appendTo(dir, StagesFile); err != nil {
		return nil, err
	}
	if w.records, err = appendTo(dir, RecordsFile); err != nil {
		return nil, errors.Join(err, w.stages.Close())
	}
	return w, nil
}

func appendTo(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._+=-]+`)

// suffix is a label as a part of a file name.
func suffix(label string) string {
	label = strings.Trim(unfit.ReplaceAllString(label, "-"), "-.")
	if label == "" {
		return ""
	}
	return "-" + label[:min(len(label), 80)]
}

// makeDir makes root/name, or root/name-2 and so on if that is taken.
func makeDir(root, name string) (string, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		dir := filepath.Join(root, name)
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", dir, n)
		}
		if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// Dir is where the run is kept.
func (w *Writer) Dir() string { return w.dir }

// Stage notes that a stage has begun; or, a second time, what is known of it now
// that it is over.
func (w *Writer) Stage(s Stage) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = w.stages.Write(append(w.clean(b), '\n'))
	return err
}

// Add implements tacho.Sink.
func (w *Writer) Add(r *tacho.Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep a record: %w", err)
	}
	if _, err := w.records.Write(append(w.clean(b), '\n')); err != nil {
		return fmt.Errorf("keep a record: %w", err)
	}
	return nil
}

// Summary writes what the run came to. It marks the run as whole.
func (w *Writer) Summary(v any) error { return w.writeJSON(SummaryFile, v) }

// Close implements tacho.Sink.
func (w *Writer) Close() error { return errors.Join(w.records.Close(), w.stages.Close()) }

// writeJSON replaces a file in one step: a reader sees the old one or the new.
func (w *Writer) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path+".tmp", append(w.clean(b), '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
