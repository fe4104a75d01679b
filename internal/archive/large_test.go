//go:build large && linux

package archive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/store"
)

// mostMiB is the memory limit of a run of any length.
const mostMiB = 1536

// TestLarge makes a run of REQUESTS requests with TOKENS token events each, and stores and summarizes
// its records as bench does. Then tacho report reads the run and must print the same. Each step is a
// separate process, so that its memory can be measured.
func TestLarge(t *testing.T) {
	if dir := os.Getenv("LARGE_MAKE"); dir != "" {
		makeLarge(t, dir, fromEnv(t, "REQUESTS"), fromEnv(t, "TOKENS"))
		return
	}
	root := t.TempDir()
	tool := filepath.Join(root, "tacho")
	if out, err := exec.Command("go", "build", "-o", tool, "github.com/tacho-bench/tacho/cmd/tacho").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	events := float64(fromEnv(t, "REQUESTS")) * float64(fromEnv(t, "TOKENS"))
	maker := exec.Command(os.Args[0], "-test.run", "^TestLarge$", "-test.timeout", "0")
	maker.Env = append(os.Environ(), "LARGE_MAKE="+root)
	spent(t, "made, kept and summed up", maker, events)
	dir := must.Get(os.Readlink(filepath.Join(root, "run")))(t)
	info := must.Get(os.Stat(filepath.Join(dir, store.RecordsFile)))(t)
	t.Logf("on disk: %.1f GB, %.1f bytes an event", float64(info.Size())/1e9, float64(info.Size())/events)

	read := spent(t, "tacho report", exec.Command(tool, "report", dir), events)
	want := must.Get(os.ReadFile(filepath.Join(root, "report.txt")))(t)
	if !bytes.Equal(read, want) {
		t.Errorf("the report of what was kept is another:\n%s\nwant\n%s", read, want)
	}
}

// spent runs a command and returns its cost. Too much memory is an error.
func spent(t *testing.T, what string, cmd *exec.Cmd, events float64) []byte {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
	cpu := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	mib := float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	t.Logf("%s: at most %.0f MiB, %.1f s of CPU, %.0f ns an event", what, mib, cpu, cpu*1e9/events)
	if mib > mostMiB {
		t.Errorf("%s: it took %.0f MiB, want at most %d", what, mib, mostMiB)
	}
	return out
}

func fromEnv(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		t.Fatalf("%s: %v (make test-large sets it)", name, err)
	}
	return n
}

// makeLarge stores a run below root. run is a link to it, and report.txt has its report.
func makeLarge(t *testing.T, root string, requests, tokens int) {
	t.Helper()
	manifest := store.Manifest{Tool: "tacho", Started: time.Unix(1_700_000_000, 0), Plan: json.RawMessage(`{}`)}
	keep := must.Get(store.Create(root, manifest, (&redact.Secrets{}).SweepJSON))(t)
	level := outcome.Level{Setting: outcome.Setting{Epoch: manifest.Started, Prompts: requests, Rate: 100}}
	c := metric.DefaultConfig()
	c.RequestRate = level.Rate
	must.Do(t, keep.Level(store.Level{Setting: level.Setting, Config: c}))
	var sum metric.Accumulator
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range requests {
		r := largeRecord(rng, i, tokens)
		must.Do(t, keep.Add(r))
		must.Do(t, sum.Add(r))
	}
	level.Summary = sum.Summary(c)
	must.Do(t, keep.End(store.Level{Setting: level.Setting, Config: c}))
	run := outcome.Run{About: archive.About(keep.Dir(), &manifest), Levels: []outcome.Level{level}}
	must.Do(t, keep.Summary(struct{}{}))
	must.Do(t, keep.Close())
	var text bytes.Buffer
	format := must.Get(report.FormatNamed("text"))(t)
	must.Do(t, format.Render(&text, &report.Report{Runs: []outcome.Run{run}}))
	must.Do(t, os.WriteFile(filepath.Join(root, "report.txt"), text.Bytes(), 0o600))
	must.Do(t, os.Symlink(keep.Dir(), filepath.Join(root, "run")))
}

// largeRecord returns request i: due every 10 ms, with a token about every 20 ms.
func largeRecord(rng *rand.Rand, i, tokens int) *tacho.Record {
	jitter := func(mean time.Duration) time.Duration {
		return max(time.Duration(float64(mean)*(1+rng.NormFloat64()/4)), time.Microsecond)
	}
	r := &tacho.Record{
		Session: uint64(i), ID: fmt.Sprintf("bench-807a78e5-%d", i), Input: 1024, Asked: tokens, Exact: true,
		Timeline: tacho.NewTimeline(time.Duration(i) * 10 * time.Millisecond),
		Usage:    &tacho.Usage{Prompt: 1024, Completion: tokens}, Output: tokens, OutputFrom: tacho.FromUsage, Finish: "length",
	}
	r.Slot, r.Start, r.Conn, r.Sent = r.Due, r.Due+40_000, r.Due+50_000, r.Due+60_000
	r.Wrote, r.Head = r.Sent+jitter(30*time.Microsecond), r.Sent+jitter(5*time.Millisecond)
	r.Clock, r.Conns, r.Reused = tacho.KernelClock, 1, true
	r.Events = make(tacho.Events, tokens)
	at := r.Head
	for k := range r.Events {
		at += jitter(20 * time.Millisecond)
		r.Events[k] = tacho.Event{At: at, ReadLag: int32(jitter(40 * time.Microsecond))}
	}
	r.End = at + jitter(100*time.Microsecond)
	return r
}
