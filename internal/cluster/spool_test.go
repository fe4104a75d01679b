package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recordjson"
	"github.com/tacho-bench/tacho/internal/run"
)

func record(i int) *tacho.Record {
	return tacho.NewRecord(0, &tacho.Request{ID: fmt.Sprintf("r-%d", i), Session: uint64(i)}, 0)
}

// all reads a spool from an offset in pieces.
func all(t *testing.T, s *spool, at int64, piece int) []byte {
	t.Helper()
	var out bytes.Buffer
	buffer := make([]byte, piece)
	for {
		n := must.Get(s.read(at, buffer))(t)
		if n == 0 {
			return out.Bytes()
		}
		out.Write(buffer[:n])
		at += int64(n)
	}
}

// Reading returns all added bytes in order, with any piece size.
func TestSpoolGivesBackWhatItGot(t *testing.T) {
	s := must.Get(newSpool(t.TempDir(), spoolInfo{Run: "r", Attempt: "2-x", Share: 1}, 1<<30))(t)
	var want bytes.Buffer
	for i := range 500 {
		line := must.Get(recordjson.Encode(record(i)))(t)
		want.Write(append(line, '\n'))
		must.Do(t, s.Add(record(i)))
	}
	must.Do(t, s.Close())
	for _, piece := range []int{7, 4096, 1 << 20} {
		if !bytes.Equal(all(t, s, 0, piece), want.Bytes()) {
			t.Errorf("pieces of %d: something else came out", piece)
		}
	}
	// A process that starts after a kill reads the same.
	left := must.Get(openSpool(s.dir))(t)
	if left.info != s.info || !bytes.Equal(all(t, left, 0, 4096), want.Bytes()) {
		t.Errorf("%+v: something else is left", left.info)
	}
}

// A full spool keeps records in memory, reports it, and writes them when there is room.
func TestFullSpoolLosesNothing(t *testing.T) {
	s := must.Get(newSpool(t.TempDir(), spoolInfo{Run: "r"}, 1000))(t)
	var want bytes.Buffer
	for i := range 20 {
		line := must.Get(recordjson.Encode(record(i)))(t)
		want.Write(append(line, '\n'))
		must.Do(t, s.Add(record(i)))
	}
	if size, _ := s.size(); s.diskErr == nil || s.final.Lost != 0 || size != int64(want.Len()) {
		t.Fatalf("%d of %d bytes wait, %d are lost, %v", size, want.Len(), s.final.Lost, s.diskErr)
	}
	got := all(t, s, 0, 300)
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("something else came out while it was full")
	}
	s.limit = 1 << 20
	s.confirm(s.written)
	if s.diskErr != nil || s.final.SpoolError == "" || len(s.pending) != 0 {
		t.Errorf("there is room, and %d bytes wait: %v; it was %q", len(s.pending), s.diskErr, s.final.SpoolError)
	}
}

// If memory is full too, dropped records are counted.
func TestLostRecordsAreCounted(t *testing.T) {
	s := must.Get(newSpool(t.TempDir(), spoolInfo{Run: "r"}, 1))(t)
	s.memoryLimit = 500
	for i := range 20 {
		must.Do(t, s.Add(record(i)))
	}
	line := must.Get(recordjson.Encode(record(10)))(t)
	if lost := s.final.Lost; lost < 20-500/len(line)-1 || lost >= 20 {
		t.Errorf("%d are lost", lost)
	}
}

// Delivered segments are deleted, so a long run needs disk space for undelivered records only.
func TestHandedOverFilesGo(t *testing.T) {
	s := must.Get(newSpool(t.TempDir(), spoolInfo{Run: "r"}, 1<<30))(t)
	long := record(1)
	long.Text = string(bytes.Repeat([]byte("x"), 1<<20))
	for range 40 {
		must.Do(t, s.Add(long))
	}
	size, _ := s.size()
	before := must.Get(filepath.Glob(filepath.Join(s.dir, "*.jsonl")))(t)
	s.confirm(size)
	after := must.Get(filepath.Glob(filepath.Join(s.dir, "*.jsonl")))(t)
	if len(before) < 3 || len(after) != 1 {
		t.Errorf("%d files, and %d when all was handed over", len(before), len(after))
	}
	must.Do(t, s.remove())
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("the spool is still there")
	}
}

// Duplicate, late or differently split messages do not duplicate a record.
func TestShareTakesEachRecordOnce(t *testing.T) {
	var stream bytes.Buffer
	for i := range 50 {
		line := must.Get(recordjson.Encode(record(i)))(t)
		stream.Write(append(line, '\n'))
	}
	whole := stream.Bytes()
	var got []uint64
	s := &share{member: &member{agentInfo: agentInfo{Name: "a"}, clock: clock{same: true}}}
	sink := sinkFunc(func(r *tacho.Record) error { got = append(got, r.Session); return nil })
	take := func(from, to int) error {
		return new(Coordinator).addBatch(s, &nats.Msg{Header: nats.Header{offsetHeader: {fmt.Sprint(from)}}, Data: whole[from:to]}, &run.Drive{Sink: sink})
	}
	for at := 0; at < len(whole); at += 100 {
		must.Do(t, take(at, min(at+100, len(whole))))
		must.Do(t, take(max(at-333, 0), min(at+50, len(whole)))) // again, split differently
	}
	if len(got) != 50 || got[0] != 0 || got[49] != 49 {
		t.Errorf("%d records: %v", len(got), got)
	}
}

type sinkFunc func(*tacho.Record) error

func (f sinkFunc) Add(r *tacho.Record) error { return f(r) }
func (sinkFunc) Close() error                { return nil }
