package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

var errFull = errors.New("no space left on device")

// A disk accepts data until it is full, and then nothing.
type disk struct {
	file   *os.File
	room   int
	writes int
}

func (d *disk) Write(b []byte) (int, error) {
	d.writes++
	n, err := d.file.Write(b[:min(len(b), d.room)])
	d.room -= n
	if err == nil && n < len(b) {
		err = errFull
	}
	return n, err
}

func (d *disk) Close() error { return d.file.Close() }

// onDisk returns a writer with a disk of limited size, and the errors passed to Full.
func onDisk(t *testing.T, room int) (*Writer, *disk, *[]error) {
	t.Helper()
	w := must.Get(Create(t.TempDir(), Manifest{Started: time.Unix(0, 0), Plan: json.RawMessage(`{}`)}, bytes.Clone))(t)
	must.Do(t, w.Level(Level{Config: metric.Config{}}))
	d := &disk{file: w.records.file.(*os.File), room: room}
	w.records.file = d
	var told []error
	w.Full = func(err error) { told = append(told, err) }
	return w, d, &told
}

func record(n int) *tacho.Record {
	return &tacho.Record{Session: uint64(n), ID: fmt.Sprint("request ", n), Timeline: tacho.NewTimeline(0)}
}

func sessions(t *testing.T, open func() (*Run, error)) (out []uint64, damage Damage) {
	t.Helper()
	r := must.Get(open())(t)
	for rec, err := range r.Records() {
		must.Do(t, err)
		out = append(out, rec.Session)
	}
	return out, r.Damaged()
}

// A disk that fills up in the middle of a line, at any byte, and later has space again, loses nothing,
// and no two lines are joined.
func TestDiskFillsAndFrees(t *testing.T) {
	for room := 300; room < 700; room += 7 {
		w, d, told := onDisk(t, room)
		want := []uint64{}
		for n := range 20 {
			if n == 10 {
				d.room = 1 << 20
			}
			must.Do(t, w.Add(record(n)))
			want = append(want, uint64(n))
			if got, _ := sessions(t, w.Read); !slices.Equal(got, want) {
				t.Fatalf("room for %d bytes: %v are to be had, want %v", room, got, want)
			}
		}
		if len(*told) != 2 || !errors.Is((*told)[0], errFull) || (*told)[1] != nil {
			t.Errorf("room for %d bytes: told %v, want that it is full, and that it is not", room, *told)
		}
		if err := errors.Join(w.Summary(1), w.Close()); err != nil {
			t.Error(err)
		}
		got, damage := sessions(t, func() (*Run, error) { return Open(w.Dir()) })
		if !slices.Equal(got, want) || damage.Lines > 0 {
			t.Fatalf("room for %d bytes: kept %v, damage %+v", room, got, damage)
		}
	}
}

// If the disk stays full, the error is reported immediately and at the end, and the file has only
// complete lines and no summary.
func TestDiskStaysFull(t *testing.T) {
	w, _, told := onDisk(t, 1000)
	w.records.most = 2000
	lost := 0
	for n := range 50 {
		if err := w.Add(record(n)); err != nil {
			if !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			lost++
		}
	}
	if len(*told) != 2 || errors.Is((*told)[0], ErrLost) || !errors.Is((*told)[1], ErrLost) {
		t.Errorf("told %v", *told)
	}
	had, _ := sessions(t, w.Read)
	if len(had)+lost != 50 || len(had) < 5 || lost < 5 {
		t.Errorf("%d lost, %d still to be had", lost, len(had))
	}
	if w.Summary(1) == nil {
		t.Error("a run that is not whole has a summary")
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Errorf("closed with %v", err)
	}
	got, damage := sessions(t, func() (*Run, error) { return Open(w.Dir()) })
	if len(got) == 0 || len(got) >= len(had) || damage.Lines > 0 {
		t.Errorf("kept %v, damage %+v", got, damage)
	}
	b, err := os.ReadFile(filepath.Join(w.Dir(), RecordsFile))
	if err != nil || bytes.Count(b, []byte("\n")) != len(got) {
		t.Errorf("%v: %q", err, b)
	}
}

// Records that finish together are written together. If the disk accepts only some of them, none is
// lost.
func TestAddAll(t *testing.T) {
	var batch []*tacho.Record
	want := []uint64{}
	for n := range 20 {
		batch, want = append(batch, record(n)), append(want, uint64(n))
	}
	for _, room := range []int{1 << 20, 500} {
		w, d, told := onDisk(t, room)
		must.Do(t, w.AddAll(batch))
		if room == 500 {
			d.room = 1 << 20
			batch, want = append(batch, record(20)), append(want, 20)
			if err := w.AddAll(batch[20:]); err != nil || len(*told) != 2 {
				t.Errorf("%v; told %v", err, *told)
			}
		}
		if d.writes > 2 {
			t.Errorf("%d writes", d.writes)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if got, damage := sessions(t, func() (*Run, error) { return Open(w.Dir()) }); !slices.Equal(got, want) || damage.Lines > 0 {
			t.Errorf("room for %d bytes: kept %v, damage %+v", room, got, damage)
		}
	}
}

// A lost part of a batch is reported, and earlier records are not touched.
func TestAddAllWithoutRoom(t *testing.T) {
	w, _, told := onDisk(t, 0)
	w.records.most = 1000
	batch := []*tacho.Record{}
	for n := range 20 {
		batch = append(batch, record(n))
	}
	if err := w.AddAll(batch); !errors.Is(err, ErrLost) || len(*told) != 1 || !errors.Is((*told)[0], ErrLost) {
		t.Errorf("%v; told %v", err, *told)
	}
	had, _ := sessions(t, w.Read)
	if len(had) == 0 || len(had)+w.records.lost != 20 {
		t.Errorf("%d are to be had, %d lost", len(had), w.records.lost)
	}
	_ = w.Close() // reports the full disk
}
