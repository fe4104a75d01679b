package proof

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token"
)

// prose returns a megabyte of English: the project's documents, repeated.
func prose(b *testing.B) string {
	b.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(paths) == 0 {
		b.Fatalf("%d documents, %v", len(paths), err)
	}
	var text strings.Builder
	for text.Len() < 1<<20 {
		for _, path := range paths {
			page := must.Get(os.ReadFile(path))(b)
			text.Write(page)
		}
	}
	return text.String()[:1<<20]
}

// BenchmarkTokens measures the speed of token counting with one goroutine and
// with one goroutine per processor.
func BenchmarkTokens(b *testing.B) {
	text := prose(b)
	for b.Loop() {
		began := cpuSeconds()
		tok := must.Get(token.Builtin("o200k_base"))(b)
		b.Logf("o200k_base is loaded in %.0f ms of processor time", 1000*(cpuSeconds()-began))
		var most, cpu [2]float64 // MB/s of wall-clock time, CPU seconds per MB
		for range 5 {            // alternating, so that changes in the machine's load affect both
			for i, workers := range []int{1, runtime.NumCPU()} {
				speed, spent := encodeAll(tok, text, workers)
				most[i] = max(most[i], speed)
				if cpu[i] == 0 || spent < cpu[i] {
					cpu[i] = spent
				}
			}
		}
		b.Logf("%.1f MB/s by one goroutine, %.1f by %d: %.2f times; a MB costs %.2f times the processor time",
			most[0], most[1], runtime.NumCPU(), most[1]/most[0], cpu[1]/cpu[0])
		b.ReportMetric(most[0], "MB/s")
		b.ReportMetric(most[1]/most[0], "speedup")
		b.ReportMetric(0, "ns/op")
	}
}

// encodeAll encodes eight megabytes per worker.
func encodeAll(tok *token.Tokenizer, text string, workers int) (mbPerSecond, cpuPerMB float64) {
	const rounds = 8
	var group sync.WaitGroup
	runtime.GC()
	began, start := cpuSeconds(), time.Now()
	for range workers {
		group.Go(func() {
			var ids []int32
			for range rounds {
				ids = tok.AppendEncode(ids[:0], text, false)
			}
		})
	}
	group.Wait()
	mb := float64(rounds*workers*len(text)) / 1e6
	return mb / time.Since(start).Seconds(), (cpuSeconds() - began) / mb
}
