package store

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tacho-bench/tacho"
)

// A tally counts the records of one level.
type tally struct {
	lines   int
	doubled int // further lines of requests counted before
	seen    map[block]uint64
}

// A block is 64 consecutive sessions. One bit per session needs less than a byte per request, because
// sessions are numbered from 0.
type block struct {
	sessions uint64
	turn     int
}

func (t *tally) add(r *tacho.Record) {
	t.lines++
	if r.Probe {
		return // probes have no session number
	}
	if t.seen == nil {
		t.seen = map[block]uint64{}
	}
	at, bit := block{r.Session / 64, r.Turn}, uint64(1)<<(r.Session%64)
	if t.seen[at]&bit != 0 {
		t.doubled++
	}
	t.seen[at] |= bit
}

// tallies counts records by level index.
type tallies map[int]*tally

func (ts tallies) add(r *tacho.Record) {
	t := ts[r.Stage]
	if t == nil {
		t = &tally{}
		ts[r.Stage] = t
	}
	t.add(r)
}

// A Mismatch is a difference between the number of records a level had when it ended and the records
// found.
type Mismatch struct {
	Had     int // records when the level ended
	Found   int // requests with a record
	Doubled int // additional records of these requests
}

func (m *Mismatch) String() string {
	text := fmt.Sprintf("%s has the records of %d of %d requests of this level", RecordsFile, m.Found, m.Had)
	if m.Doubled > 0 {
		text += fmt.Sprintf(", and %d duplicates", m.Doubled)
	}
	return text
}

// Mismatch compares the records of a level with their number when the level ended. It returns nil if
// they agree or if the level did not end. Read all records first.
func (r *Run) Mismatch(l *Level) *Mismatch {
	if l.Records == nil {
		return nil
	}
	var t tally
	if found := r.tallies[l.Index]; found != nil {
		t = *found
	}
	m := Mismatch{Had: *l.Records, Found: t.lines - t.doubled, Doubled: t.doubled}
	if extra := m.Found - m.Had; extra > 0 { // probes
		m.Found, m.Doubled = m.Had, m.Doubled+extra
	}
	if m.Found == m.Had && m.Doubled == 0 {
		return nil
	}
	return &m
}

// Mismatched reads all records and returns the indices of levels with a Mismatch.
func (r *Run) Mismatched() (map[int]bool, error) {
	for _, err := range r.Records() {
		if err != nil {
			return nil, err
		}
	}
	out := map[int]bool{}
	for i := range r.Levels {
		if r.Mismatch(&r.Levels[i]) != nil {
			out[r.Levels[i].Index] = true
		}
	}
	return out, nil
}

// SizeChanged reports whether the size of the records file differs from its size at the end of the last
// level. The check is cheap and detects a file that was cut or duplicated.
func (r *Run) SizeChanged() bool {
	if len(r.Levels) == 0 || r.Levels[len(r.Levels)-1].Records == nil {
		return false
	}
	info, err := os.Stat(filepath.Join(r.Dir, RecordsFile))
	return err != nil || info.Size() != r.Levels[len(r.Levels)-1].RecordsSize
}
