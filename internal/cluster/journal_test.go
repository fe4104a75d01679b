package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// A journal returns its complete entries and the last state of the level. An entry that was
// being written when the coordinator died is dropped, and entries follow where it began.
func TestJournalAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents", "run.journal")
	j := &journal{}
	must.Get(j.open(path))(t)
	state := levelState{Attempt: "0-x", Shares: []shareState{{Parts: 1}}}
	must.Do(t, j.add(entry{State: &state}))
	must.Do(t, j.add(entry{Share: 1, Body: []byte("one\n")}))
	whole := j.size
	must.Do(t, j.add(entry{Share: 1, Body: []byte("two\n")}))
	for end := j.size; end >= whole; end-- {
		must.Do(t, os.Truncate(path, end))
		again := &journal{}
		last := must.Get(again.open(path))(t)
		if last.Attempt != "0-x" {
			t.Errorf("cut at %d: the state is %v", end, last)
		}
		must.Do(t, again.add(entry{Share: 2, Body: []byte("three\n")}))
		var got []string
		must.Do(t, again.read(func(e entry) error {
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
		must.Do(t, again.close(false))
	}
	old := filepath.Join(filepath.Dir(path), "old.journal")
	must.Do(t, os.WriteFile(old, nil, 0o600))
	long := time.Now().Add(-2 * retention)
	must.Do(t, os.Chtimes(old, long, long))
	must.Get(j.open(path))(t)
	must.Do(t, j.close(true))
	for _, name := range []string{old, path} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was not deleted", name)
		}
	}
}
