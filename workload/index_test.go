package workload_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// pack writes a .gz copy of a file.
func pack(t *testing.T, path string) string {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	out := filepath.Join(t.TempDir(), filepath.Base(path)+".gz")
	f := must.Get(os.Create(out))(t)
	z := gzip.NewWriter(f)
	_, err := z.Write(b)
	must.Do(t, errors.Join(err, z.Close(), f.Close()))
	return out
}

// TestIndexedTraces checks that an indexed trace keeps only a few dozen bytes per request
// in memory, regardless of their size. A compressed trace gives the same requests.
func TestIndexedTraces(t *testing.T) {
	const requests = 10_000
	long := strings.Repeat("many words ", 30)
	var ids strings.Builder
	for i := range 60 {
		fmt.Fprintf(&ids, ",%d", 1000+i)
	}
	hashes := "[7" + ids.String() + "]" // 61 blocks
	for _, c := range []struct {
		kind, name string
		sessions   bool
		line       func(i int) string
	}{
		{"bailian", "b.jsonl", true, func(i int) string {
			return fmt.Sprintf(`{"chat_id":%d,"parent_chat_id":%d,"timestamp":%d.5,"input_length":976,"output_length":2,"type":"text","turn":1,"hash_ids":%s}`, i, parentOf(i), i/10, hashes)
		}},
		{"weka", "w.jsonl", false, func(i int) string {
			if i%4 != 0 {
				return ""
			}
			one := fmt.Sprintf(`{"t":1,"type":"n","in":976,"out":2,"hash_ids":%s,"api_time":1}`, hashes)
			return fmt.Sprintf(`{"id":"w%d","block_size":16,"requests":[%s]}`, i, strings.Join([]string{one, one, one, one}, ","))
		}},
		{"otel", "o.jsonl", false, func(i int) string {
			return fmt.Sprintf(`{"trace_id":"t%d","start_time":%d000000,"end_time":%d100000,"attributes":{"gen_ai.usage.input_tokens":9,"gen_ai.usage.output_tokens":3,"gen_ai.input.messages":"[{\"role\":\"user\",\"content\":\"%s\"}]"}}`, i/4, 1000+i, 1000+i, long)
		}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var text strings.Builder
			for i := range requests {
				if line := c.line(i); line != "" {
					text.WriteString(line + "\n")
				}
			}
			path := write(t, c.name, text.String())
			size := text.Len()
			text.Reset()
			o := workload.Options{Path: path, IDs: true, Messages: true, Trace: workload.TraceOptions{Sessions: c.sessions}}
			before := heapNow()
			w := make1(t, c.kind, o)
			grown := heapNow() - before
			o.Path = pack(t, path)
			packed := make1(t, c.kind, o)
			n := 0
			for i := uint64(0); ; i++ {
				s, err := w.Session(i)
				again, err2 := packed.Session(i)
				if errors.Is(err, io.EOF) && errors.Is(err2, io.EOF) {
					break
				}
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				if i%997 == 0 {
					if diff := cmp.Diff(s, again); diff != "" {
						t.Fatalf("packed it is another (-plain +packed):\n%s", diff)
					}
				}
				n += len(s.Turns)
			}
			if n != requests || grown > 64*requests {
				t.Errorf("%d requests, %d bytes in memory for %d of the file", n, grown, size)
			}
			runtime.KeepAlive(packed)
		})
	}
}

// parentOf returns the request before i in its conversation of four, or -1.
func parentOf(i int) int {
	if i%4 == 0 {
		return -1
	}
	return i - 1
}

// TestLateErrors checks that errors in rows read during the run name the position of
// the row.
func TestLateErrors(t *testing.T) {
	good := `{"id":"a","requests":[{"t":0,"type":"n","in":64,"out":1,"hash_ids":[1]}]}`
	bad := `{"id":"b","requests":[{"t":0,"type":"n","in":640,"out":1,"hash_ids":[1]}]}`
	path := write(t, "w.jsonl", good+"\n\n"+bad+"\n"+good+"\n")
	for p, want := range map[string]string{path: "w.jsonl:3: request 0: 1 hash ids of 64 tokens", pack(t, path): "w.jsonl.gz: row 2: request 0: 1 hash ids of 64 tokens"} {
		w := make1(t, "weka", workload.Options{Path: p, IDs: true})
		if _, err := w.Session(0); err != nil {
			t.Error(err)
		}
		if _, err := w.Session(1); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--bad-lines skip") {
			t.Errorf("%v, want %q", err, want)
		}
		w = make1(t, "weka", workload.Options{Path: p, IDs: true, Trace: workload.TraceOptions{SkipBad: true}})
		if _, err := w.Session(1); err != nil {
			t.Error(err)
		}
		if _, err := w.Session(2); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if n := w.Notes(); len(n) != 1 || !strings.Contains(n[0], "skipped 1 bad lines") {
			t.Errorf("%q", n)
		}
	}
}

// TestTraceSessionIDs checks that conversation ids may be numbers or strings.
func TestTraceSessionIDs(t *testing.T) {
	path := write(t, "m.jsonl", `{"timestamp":0,"input_length":5,"output_length":1,"session_id":"a-1"}
{"timestamp":10,"input_length":6,"output_length":1,"session_id":"b"}
{"timestamp":20,"input_length":7,"output_length":1,"session_id":"a-1"}
{"timestamp":30,"input_length":8,"output_length":1}
{"timestamp":40,"input_length":9,"output_length":1}
`)
	w := make1(t, "mooncake", workload.Options{Path: path, IDs: true, Trace: workload.TraceOptions{Sessions: true, Speedup: 2}})
	var got []string
	for i := range uint64(4) {
		s := must.Get(w.Session(i))(t)
		var line strings.Builder
		for _, turn := range s.Turns {
			fmt.Fprintf(&line, "%d at %v ", turn.Request.InputTokens, turn.At)
		}
		got = append(got, line.String())
	}
	if diff := cmp.Diff([]string{"5 at 0s 7 at 10ms ", "6 at 0s ", "8 at 0s ", "9 at 0s "}, got); diff != "" {
		t.Error(diff)
	}
	var due []string
	for at := range w.(tacho.Pacer).Arrivals() {
		due = append(due, at.String())
	}
	if diff := cmp.Diff([]string{"0s", "5ms", "15ms", "20ms"}, due); diff != "" {
		t.Error(diff)
	}
}
