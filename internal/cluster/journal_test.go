package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A journal returns its complete entries and the last state of the level. An entry that was
// being written when the coordinator died is dropped, and entries follow where it began.
func TestJournalAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents", "run.journal")
	j := &journal{}
	_, err := j.open(path)
	must(t, err)
	state := levelState{Attempt: "0-x", Shares: []shareState{{Parts: 1}}}
	must(t, j.add(entry{State: &state}))
	must(t, j.add(entry{Share: 1, Body: []byte("one\n")}))
	whole := j.size
	must(t, j.add(entry{Share: 1, Body: []byte("two\n")}))
	for end := j.size; end >= whole; end-- {
		must(t, os.Truncate(path, end))
		again := &journal{}
		last, err := again.open(path)
		must(t, err)
		if last.Attempt != "0-x" {
			t.Errorf("cut at %d: the state is %v", end, last)
		}
		must(t, again.add(entry{Share: 2, Body: []byte("three\n")}))
		var got []string
		must(t, again.read(func(e entry) error {
			got = append(got, string(e.Body))
			return nil
		}))
		want := []string{"", "one\n", "three\n"}
		if end == j.size {
			want = slices.Insert(want, 2, "two\n")
		}
		if !slices.Equal(got, want) {
			t.Errorf("cut at %d: %q", end, got)
		}
		must(t, again.close(false))
	}
	old := filepath.Join(filepath.Dir(path), "old.journal")
	must(t, os.WriteFile(old, nil, 0o600))
	long := time.Now().Add(-2 * retention)
	must(t, os.Chtimes(old, long, long))
	_, err = j.open(path)
	must(t, err)
	must(t, j.close(true))
	for _, name := range []string{old, path} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was not deleted", name)
		}
	}
}
