package store

import (
	"fmt"
	"os"
	"path/filepath"

	"tacho"
)

// A tally counts the records of one level.
type tally struct {
	lines   int
	doubled int // lines of a request that has a line before
	seen    map[block]uint64
}

// A block is 64 sessions that follow each other: a bit for each of them costs less
// than a byte for a request, because sessions are numbered from 0.
type block struct {
	sessions uint64
	turn     int
}

func (t *tally) add(r *tacho.Record) {
	t.lines++
	if r.Probe {
		return // probes have no numbers
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

// tallies counts records by the indexes of their levels.
type tallies map[int]*tally

func (ts tallies) add(r *tacho.Record) {
	t := ts[r.Stage]
	if t == nil {
		t = &tally{}
		ts[r.Stage] = t
	}
	t.add(r)
}

// A Mismatch is a difference between the records that a level had when it ended
// and those in the directory.
type Mismatch struct {
	Had     int // when the level ended
	Found   int // requests that have a record, each counted once
	Doubled int // records beyond one for each request
}

func (m *Mismatch) String() string {
	text := fmt.Sprintf("%s has the records of %d of %d requests of this level", RecordsFile, m.Found, m.Had)
	if m.Doubled > 0 {
		text += fmt.Sprintf(", and %d of them more than once", m.Doubled)
	}
	return text
}

// Mismatch compares the records of a level with the number that the level had when
// it ended. It is nil if they agree, and if the level did not end. Records must have
// been read to the end.
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

// Mismatched reads all records and says which levels have a Mismatch, by index.
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

// Touched says whether the file of records has another size than at the end of the
// last level. It costs nothing, and a file that was cut or doubled has another size.
func (r *Run) Touched() bool {
	if len(r.Levels) == 0 || r.Levels[len(r.Levels)-1].Records == nil {
		return false
	}
	info, err := os.Stat(filepath.Join(r.Dir, RecordsFile))
	return err != nil || info.Size() != r.Levels[len(r.Levels)-1].RecordsSize
}
