// Package store keeps a run: a directory with a manifest, the stages as they
// began, a record for each request as it finished, and a summary at the end.
//
// Files only grow while a run goes on, a line at a time, and each line is
// handed to the kernel before the next: a process that is killed loses the
// requests in flight and nothing else, and a run can be read while it grows.
package store

import (
	"cmp"
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
	"tacho/instrument"
	"tacho/internal/wholefile"
	"tacho/metric"
	"tacho/outcome"
)

// format is the number of the format that is written here. A reader of it reads
// all before it, and refuses those after it.
const format = 1

// The files of a run.
const (
	ManifestFile    = "manifest.json"
	StagesFile      = "stages.jsonl"
	RecordsFile     = "records.jsonl"
	InstrumentsFile = "instruments.jsonl"
	LimitFile       = "limit.json"
	SummaryFile     = "summary.json"
	LiveFile        = "live.json"  // while it goes on
	NotesFile       = "notes.json" // what people say of it
	PageFile        = "report.html"
	TextFile        = "report.txt"
)

// A Manifest says what a run was: enough to run it again.
type Manifest struct {
	Schema  int             `json:"schema"`
	Tool    string          `json:"tool"`
	Version string          `json:"version"`
	Started time.Time       `json:"started"`
	Resumed []time.Time     `json:"resumed,omitempty"` // when it was gone on with after it was cut short
	Label   string          `json:"label,omitempty"`
	Args    []string        `json:"args,omitempty"` // the command line, secrets taken out
	Seed    uint64          `json:"seed"`
	Cluster string          `json:"cluster,omitempty"` // what agents know the run by
	Host    Host            `json:"host"`
	Varies  string          `json:"varies,omitempty"` // the options of the plan that are lists
	Swept   string          `json:"swept,omitempty"`  // the option that found its own levels
	Plan    json.RawMessage `json:"plan"`             // what was given, secrets taken out
	Target  Target          `json:"target"`           // what became of its words about the server
}

// A Target is whom the load went to, as it was found.
type Target struct {
	Backend   string   `json:"backend"`
	Model     string   `json:"model"`               // as people know it
	Requested string   `json:"requested,omitempty"` // as requests name it, where that is another name
	Dataset   string   `json:"dataset,omitempty"`   // where prompts came from
	Counter   string   `json:"counter"`             // who counted prompt tokens
	IDPrefix  string   `json:"request_id_prefix,omitempty"`
	Servers   []Server `json:"servers"`
	GPUs      []GPUs   `json:"gpus,omitempty"` // as the user says, or else a metrics page
}

// A Server is what one server says of itself. All but its address may be missing.
type Server struct {
	URL            string         `json:"url"`
	Name           string         `json:"name,omitempty"`
	Version        string         `json:"version,omitempty"`
	MaxModelTokens int            `json:"max_model_tokens,omitempty"` // of prompt and output together
	Settings       map[string]any `json:"settings,omitempty"`
}

// GPUs are so many of one kind.
type GPUs struct {
	Count int    `json:"count"`
	Name  string `json:"name"`
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

// A Level is what is kept of a level besides its records: what it was, and what
// its summary needs to know.
type Level struct {
	outcome.Setting
	Config      metric.Config `json:"config"`
	Records     *int          `json:"records,omitempty"`       // it had when it ended; nil is not known
	RecordsSize int64         `json:"records_bytes,omitempty"` // of the whole file of records at that time
}

// A reading is what a metrics page said while a stage ran.
type reading struct {
	Stage int `json:"stage"`
	instrument.Sample
}

// A Writer adds to a run. It is a tacho.Sink.
//
// A disk that is full loses nothing while there is memory to wait in. Full is
// told at once that it is, and with a nil when all that waited is written.
type Writer struct {
	Full func(err error)

	dir                          string
	records, stages, instruments *appender
	added                        map[int]int // records by the index of their level
	full                         bool
	clean                        func(line []byte) []byte
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
	w := &Writer{dir: dir, clean: clean, added: map[int]int{}}
	m.Schema = format
	if err := w.writeJSON(ManifestFile, m); err != nil {
		return nil, err
	}
	return w, w.appendAll()
}

// appendAll opens the files that grow.
func (w *Writer) appendAll() error {
	var errs [3]error
	w.stages, errs[0] = appendTo(w.dir, StagesFile, w.clean)
	w.records, errs[1] = appendTo(w.dir, RecordsFile, w.clean)
	w.instruments, errs[2] = appendTo(w.dir, InstrumentsFile, w.clean)
	return errors.Join(errs[:]...)
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

// Batch lets records wait until there are many to write: what is lost with the
// process can be computed again.
func (w *Writer) Batch() { w.records.batch = 1 << 18 }

// Level notes that a level has begun.
func (w *Writer) Level(l Level) error {
	_ = w.records.flush() // what a full disk does not take waits on, and the line below tells
	return w.add(w.stages, l)
}

// End notes what is known of a level that has ended, and how many records it has:
// readers compare the number with the records that they find.
func (w *Writer) End(l Level) error {
	l.Records, l.RecordsSize = new(w.added[l.Index]), w.records.size
	return w.Level(l)
}

// Add implements tacho.Sink.
func (w *Writer) Add(r *tacho.Record) error {
	w.added[r.Stage]++
	return w.add(w.records, r)
}

// AddAll implements engine.Batcher: all records are written at once.
func (w *Writer) AddAll(rs []*tacho.Record) error {
	return w.keep(w.records, func() (first error) {
		for _, r := range rs {
			w.added[r.Stage]++ // also if it is lost: then it is missing
			first = cmp.Or(first, w.records.put(r))
		}
		return cmp.Or(first, w.records.write())
	})
}

// Samples keeps what was read during a stage.
func (w *Writer) Samples(stage int, samples []instrument.Sample) error {
	for _, s := range samples {
		if err := w.add(w.instruments, reading{stage, s}); err != nil {
			return err
		}
	}
	return nil
}

// add appends a line. That it has to wait for the disk is told, and is an error
// only when there is no more room to wait in.
func (w *Writer) add(to *appender, v any) error {
	return w.keep(to, func() error { return cmp.Or(to.put(v), to.write()) })
}

// keep has lines added, as add does one.
func (w *Writer) keep(to *appender, add func() error) error {
	lost := to.lost
	err := add()
	if err == nil && w.full {
		err = w.flush() // of the other files something may wait too
	}
	if to.lost > lost {
		err = fmt.Errorf("%w, and there is no more room in memory: %w", err, ErrLost)
	}
	if full := err != nil; w.Full != nil && (full != w.full || to.lost > 0 && lost == 0) {
		w.Full(err)
	}
	w.full = err != nil
	if to.lost > lost {
		return err
	}
	return nil
}

// ErrLost says that something was not kept, and never will be.
var ErrLost = errors.New("what finishes now is lost")

func (w *Writer) flush() error {
	return errors.Join(w.records.flush(), w.stages.flush(), w.instruments.flush())
}

// Summary writes what the run came to. It marks the run as whole, and is not
// written if it is not.
func (w *Writer) Summary(v any) error {
	if err := w.flush(); err != nil {
		return fmt.Errorf("not all of the run is kept in %s: %w", w.dir, err)
	}
	if n := w.records.lost; n > 0 {
		return fmt.Errorf("%d requests are not in %s: %w", n, w.dir, ErrLost)
	}
	return w.writeJSON(SummaryFile, v)
}

// Limit keeps what a search for the limit came to. Its sentence is read back.
func (w *Writer) Limit(v any) error { return w.writeJSON(LimitFile, v) }

// Live keeps how the run stands, for who watches it from another process. Nothing
// is measured by it, so that an error is nobody's concern.
func (w *Writer) Live(snapshot any) { _ = w.writeJSON(LiveFile, snapshot) }

// liveFor is how old the last sign of a run may be that goes on.
const liveFor = 20 * time.Second

// GoesOn says whether somebody adds to the run in dir, as far as its signs tell.
func GoesOn(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, LiveFile))
	return err == nil && time.Since(info.ModTime()) < liveFor
}

// Page keeps a page of the run.
func (w *Writer) Page(text []byte) error {
	return wholefile.Write(filepath.Join(w.dir, PageFile), text)
}

// Text keeps the whole report of the run.
func (w *Writer) Text(text []byte) error {
	return wholefile.Write(filepath.Join(w.dir, TextFile), text)
}

// Close implements tacho.Sink. An error says what could not be kept after all.
func (w *Writer) Close() error {
	_ = os.Remove(filepath.Join(w.dir, LiveFile)) // it may never have been there
	return errors.Join(w.records.close(), w.stages.close(), w.instruments.close())
}

// Read is the run as it is so far, with what waits for the disk.
func (w *Writer) Read() (*Run, error) {
	return open(w.dir, map[string][]byte{
		RecordsFile: w.records.waiting, StagesFile: w.stages.waiting, InstrumentsFile: w.instruments.waiting,
	})
}

// writeJSON replaces a file in one step: a reader sees the old one or the new.
func (w *Writer) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return wholefile.Write(filepath.Join(w.dir, name), append(w.clean(b), '\n'))
}
