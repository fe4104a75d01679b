//go:build oracle

package token

import (
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// processorTime returns the CPU time used by this process. Wall-clock time is meaningless
// on a shared machine.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must.Do(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fastest returns the lowest CPU time of three runs of f.
func fastest(t *testing.T, f func()) time.Duration {
	t.Helper()
	best := time.Hour
	for range 3 {
		runtime.GC()
		start := processorTime(t)
		f()
		best = min(best, processorTime(t)-start)
	}
	return best
}

// TestSpeedAgainstHuggingFace compares CPU time on English text.
func TestSpeedAgainstHuggingFace(t *testing.T) {
	o := newOracle(t)
	text := englishText(1 << 20)
	for name, want := range map[string]float64{
		"llama3_2": 8, "llama2": 3, "gemma": 3, "gemma3": 3, "gpt2": 3, "qwen3": 3, "gpt4o": 3, "deepseek_v3": 3, "mistral_nemo": 3,
	} {
		t.Run(name, func(t *testing.T) {
			path := vocabularyFile(name)
			theirs := o.ask(t, map[string]any{"kind": "huggingface", "file": path, "texts": []string{text}, "repeat": 3})
			tok := must.Get(load(path, ""))(t)
			count := 0
			first := processorTime(t)
			tok.Encode(text, false)
			first = processorTime(t) - first
			ours := fastest(t, func() { count = len(tok.Encode(text, false)) })
			if count != theirs.Count {
				t.Errorf("%d tokens, want %d", count, theirs.Count)
			}
			ratio := theirs.CPUSeconds / ours.Seconds()
			mb := float64(len(text)) / 1e6
			t.Logf("%.1f MB/s (%.1f at first) against %.2f: %.1f times", mb/ours.Seconds(), mb/first.Seconds(), mb/theirs.CPUSeconds, ratio)
			if ratio < want {
				t.Errorf("%.1f times the speed of the reference, want %.0f", ratio, want)
			}
		})
	}
}

// TestScalesOverCores checks that several goroutines use no more CPU time than one
// goroutine for the same work.
func TestScalesOverCores(t *testing.T) {
	newOracle(t)
	tok := must.Get(load(vocabularyFile("llama3_2"), ""))(t)
	text := englishText(1 << 20)
	encode := func(workers int) {
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for range 8 / workers {
					tok.Encode(text, false)
				}
			})
		}
		group.Wait()
	}
	encode(1)
	one := fastest(t, func() { encode(1) })
	several := fastest(t, func() { encode(runtime.GOMAXPROCS(0)) })
	t.Logf("8 MB cost %v of processor time in 1 goroutine, %v shared by %d: %.2f times", one, several, runtime.GOMAXPROCS(0), several.Seconds()/one.Seconds())
	if several > one*3/2 {
		t.Errorf("%v by %d goroutines, %v by one", several, runtime.GOMAXPROCS(0), one)
	}
}

// TestLoadTime checks that a large vocabulary loads fast, and much faster from the cache.
func TestLoadTime(t *testing.T) {
	newOracle(t)
	builtin := fastest(t, func() {
		must.Get(Builtin("o200k_base"))(t)
	})
	t.Logf("built-in o200k_base: %v of processor time", builtin)
	if builtin > 300*time.Millisecond {
		t.Errorf("built-in o200k_base: %v, want at most 300 ms", builtin)
	}
	for name, limits := range map[string][2]time.Duration{
		"llama3_2": {500 * time.Millisecond, 50 * time.Millisecond},
		"gemma3":   {2 * time.Second, 200 * time.Millisecond},
	} {
		path := vocabularyFile(name)
		first := fastest(t, func() {
			must.Get(load(path, t.TempDir()))(t)
		})
		cache := t.TempDir()
		load := func() {
			must.Get(load(path, cache))(t)
		}
		load()
		again := fastest(t, load)
		t.Logf("%s: %v, and %v from the cache, of processor time", name, first, again)
		if first > limits[0] || again > limits[1] {
			t.Errorf("%s: %v and %v, want at most %v and %v", name, first, again, limits[0], limits[1])
		}
	}
}

// TestManyPrompts generates as many prompts as a benchmark needs and counts every tenth.
func TestManyPrompts(t *testing.T) {
	newOracle(t)
	tok := must.Get(load(vocabularyFile("llama3_2"), ""))(t)
	for _, size := range []struct {
		prompts uint64
		tokens  int
	}{{100_000, 2_000}, {1_000, 100_000}} {
		start, wall := processorTime(t), time.Now()
		p := must.Get(NewPrompts(tok, 42))(t)
		var group sync.WaitGroup
		const workers = 2
		for w := range uint64(workers) {
			group.Go(func() {
				var buffer []byte // one prompt at a time, because all of them would not fit in memory
				for i := w; i < size.prompts; i += workers {
					buffer = p.appendText(buffer[:0], i, size.tokens)
				}
			})
		}
		group.Wait()
		spent, waited := processorTime(t)-start, time.Since(wall)
		t.Logf("%d prompts of %d tokens: %v of processor time, %v on the wall with %d workers", size.prompts, size.tokens, spent, waited, workers)
		if spent > workers*20*time.Second {
			t.Errorf("%v of processor time", spent)
		}
		for i := uint64(0); i < size.prompts; i += 10 {
			if n, err := tok.Count(t.Context(), p.Text(i, size.tokens)); err != nil || n != size.tokens {
				t.Fatalf("prompt %d has %d tokens, want %d (%v)", i, n, size.tokens, err)
			}
		}
	}
}
