// Package store writes and reads a run: a directory with a manifest, the stages as they begin, a record
// for each request as it finishes, and a summary at the end.
//
// During a run, files only grow, one line at a time, and each line is passed to the kernel before the
// next. A killed process loses the requests in flight and nothing else, and a run can be read while it
// grows.
package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// format is the number of the current format. Readers accept this format and older ones, and reject
// newer ones.
const format = 1

// The files of a run.
const (
	ManifestFile    = "manifest.json"
	StagesFile      = "stages.jsonl"
	RecordsFile     = "records.jsonl"
	InstrumentsFile = "instruments.jsonl"
	LimitFile       = "limit.json"
	SummaryFile     = "summary.json"
	LiveFile        = "live.json"  // only during a run
	NotesFile       = "notes.json" // notes of the users
	PageFile        = "report.html"
	TextFile        = "report.txt"
)

// A Manifest describes a run completely enough to repeat it.
type Manifest struct {
	Schema  int             `json:"schema"`
	Tool    string          `json:"tool"`
	Version string          `json:"version"`
	Started time.Time       `json:"started"`
	Resumed []time.Time     `json:"resumed,omitempty"` // times at which the run was resumed
	Label   string          `json:"label,omitempty"`
	Args    []string        `json:"args,omitempty"` // the command line without secrets
	Seed    uint64          `json:"seed"`
	Cluster string          `json:"cluster,omitempty"` // the run's name in a cluster
	Host    Host            `json:"host"`
	Varies  string          `json:"varies,omitempty"` // the options of the plan that are lists
	Swept   string          `json:"swept,omitempty"`  // the option whose levels a sweep chose
	Plan    json.RawMessage `json:"plan"`             // the plan without secrets
	Target  Target          `json:"target"`           // the server, as detected
}

// A Target is the server under load, as detected.
type Target struct {
	Backend   string   `json:"backend"`
	Model     string   `json:"model"`               // the common name
	Requested string   `json:"requested,omitempty"` // the name in requests, if different
	Dataset   string   `json:"dataset,omitempty"`   // source of the prompts
	Counter   string   `json:"counter"`             // source of the prompt token counts
	IDPrefix  string   `json:"request_id_prefix,omitempty"`
	Servers   []Server `json:"servers"`
	GPUs      []GPUs   `json:"gpus,omitempty"` // from the user, otherwise from a metrics page
}

// A Server is the self-description of one server. Everything but its URL may be missing.
type Server struct {
	URL            string         `json:"url"`
	Name           string         `json:"name,omitempty"`
	Version        string         `json:"version,omitempty"`
	MaxModelTokens int            `json:"max_model_tokens,omitempty"` // prompt and output together
	Settings       map[string]any `json:"settings,omitempty"`
}

// GPUs is a number of GPUs of one kind.
type GPUs struct {
	Count int    `json:"count"`
	Name  string `json:"name"`
}

// Host is the machine that sent the load.
type Host struct {
	Name       string `json:"name"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	GoVersion  string `json:"go_version"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// A Level is the stored part of a level besides its records: its setting, and the configuration of its
// summary.
type Level struct {
	outcome.Setting
	Config      metric.Config `json:"config"`
	Records     *int          `json:"records,omitempty"`       // number of records when the level ended; nil means unknown
	RecordsSize int64         `json:"records_bytes,omitempty"` // size of the records file at that time
}

// A reading is one reading of a metrics page during a stage.
type reading struct {
	Stage int `json:"stage"`
	instrument.Sample
}

// A Writer writes a run. It is a tacho.Sink.
//
// If the disk is full, data is kept in memory and nothing is lost while memory lasts. Full is called
// with the error immediately, and with nil when all pending data is written.
type Writer struct {
	Full func(err error)

	dir                          string
	records, stages, instruments *appender
	added                        map[int]int // records by level index
	full                         bool
	clean                        func(line []byte) []byte
}

var _ tacho.Sink = (*Writer)(nil)

// Create makes the directory of a new run below root, named after its time and label, and writes the
// manifest. Every document and line passes through clean, which removes secrets.
func Create(root string, m Manifest, clean func(doc []byte) []byte) (*Writer, error) {
	dir, err := makeDir(root, m.Started.Format("20060102-150405")+suffix(m.Label))
	if err != nil {
		return nil, fmt.Errorf("make a directory for the run: %w (choose another directory with --runs-dir)", err)
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

// suffix converts a label to a part of a file name.
func suffix(label string) string {
	label = strings.Trim(sanitize.FileName(label), "-.")
	if label == "" {
		return ""
	}
	return "-" + strings.ToValidUTF8(label[:min(len(label), 80)], "")
}

// makeDir makes root/name, or root/name-2 and so on if the name is taken.
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

// Dir returns the directory of the run.
func (w *Writer) Dir() string { return w.dir }

// Batch collects many records before each write. Use it if lost records can be computed again.
func (w *Writer) Batch() { w.records.batch = 1 << 18 }

// Level stores the start of a level.
func (w *Writer) Level(l Level) error {
	_ = w.records.flush() // a full disk keeps the data pending, and the next line reports the error
	return w.add(w.stages, l)
}

// End stores the results of a finished level and its number of records. Readers compare the number with
// the records found.
func (w *Writer) End(l Level) error {
	l.Records, l.RecordsSize = new(w.added[l.Index]), w.records.size
	return w.Level(l)
}

// Add implements tacho.Sink.
func (w *Writer) Add(r *tacho.Record) error {
	w.added[r.Stage]++
	return w.add(w.records, r)
}

// AddAll implements engine.Batcher: all records are written together.
func (w *Writer) AddAll(rs []*tacho.Record) error {
	return w.keep(w.records, func() (first error) {
		for _, r := range rs {
			w.added[r.Stage]++ // a lost record counts too, because it is missing
			first = cmp.Or(first, w.records.put(r))
		}
		return cmp.Or(first, w.records.write())
	})
}

// Samples stores the readings of a stage.
func (w *Writer) Samples(stage int, samples []instrument.Sample) error {
	for _, s := range samples {
		if err := w.add(w.instruments, reading{stage, s}); err != nil {
			return err
		}
	}
	return nil
}

// add appends a line. If the line has to wait for the disk, Full is called. add returns an error only
// if memory is full too.
func (w *Writer) add(to *appender, v any) error {
	return w.keep(to, func() error { return cmp.Or(to.put(v), to.write()) })
}

// keep runs add for several lines.
func (w *Writer) keep(to *appender, add func() error) error {
	lost := to.lost
	err := add()
	if err == nil && w.full {
		err = w.flush() // the other files may have pending data too
	}
	if to.lost > lost {
		err = fmt.Errorf("%w, and memory is full too: %w", err, ErrLost)
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

// ErrLost says that data was dropped permanently.
var ErrLost = errors.New("new records are lost until there is disk space")

func (w *Writer) flush() error {
	return errors.Join(w.records.flush(), w.stages.flush(), w.instruments.flush())
}

// Summary writes the summary, which marks the run as complete. An incomplete run gets no summary.
func (w *Writer) Summary(v any) error {
	if err := w.flush(); err != nil {
		return fmt.Errorf("%s is incomplete: %w", w.dir, err)
	}
	if n := w.records.lost; n > 0 {
		return fmt.Errorf("%s lacks %d requests: %w", w.dir, n, ErrLost)
	}
	return w.writeJSON(SummaryFile, v)
}

// Limit stores the result of a search for the limit. Its sentence is read back by Run.Limit.
func (w *Writer) Limit(v any) error { return w.writeJSON(LimitFile, v) }

// Live stores the live state of the run for other processes. It ignores errors, because no
// measurement depends on this file.
func (w *Writer) Live(snapshot any) { _ = w.writeJSON(LiveFile, snapshot) }

// Running reports whether a process seems to write to the run in dir.
func Running(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, LiveFile))
	return err == nil && time.Since(info.ModTime()) < 20*time.Second // the live file is written every second
}

// Page stores the HTML report of the run.
func (w *Writer) Page(text []byte) error {
	return atomicfile.Write(filepath.Join(w.dir, PageFile), text)
}

// Text stores the full text report of the run.
func (w *Writer) Text(text []byte) error {
	return atomicfile.Write(filepath.Join(w.dir, TextFile), text)
}

// Close implements tacho.Sink. It returns an error if data could not be written.
func (w *Writer) Close() error {
	_ = os.Remove(filepath.Join(w.dir, LiveFile)) // the file may not exist
	return errors.Join(w.records.close(), w.stages.close(), w.instruments.close())
}

// Read returns the run so far, including pending data.
func (w *Writer) Read() (*Run, error) {
	return open(w.dir, map[string][]byte{
		RecordsFile: w.records.pending, StagesFile: w.stages.pending, InstrumentsFile: w.instruments.pending,
	})
}

// writeJSON replaces a file atomically: a reader sees the old or the new content.
func (w *Writer) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return atomicfile.Write(filepath.Join(w.dir, name), append(w.clean(b), '\n'))
}
