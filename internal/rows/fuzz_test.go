package rows

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
)

// FuzzRows reads data files of every format. Each is read, or refused with the name of the file, in bounded time and memory,
// and every row is JSON.
func FuzzRows(f *testing.F) {
	names := []string{"a.json", "a.jsonl", "a.csv", "a.parquet", "a.jsonl.gz", "a.jsonl.zst", "a.csv.gz"}
	type row struct {
		Name string   `parquet:"name"`
		List []string `parquet:"list,list"`
		Some *float64 `parquet:"some,optional"`
	}
	var table, packed bytes.Buffer
	w := parquet.NewGenericWriter[row](&table, parquet.Compression(&parquet.Snappy))
	z := gzip.NewWriter(&packed)
	_, err := w.Write([]row{{Name: "a", List: []string{"x", "y"}}, {Name: "b"}})
	_, err2 := z.Write([]byte(`{"name":"a"}`))
	for _, err := range []error{err, err2, w.Close(), z.Close()} {
		if err != nil {
			f.Fatal(err)
		}
	}
	e, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	for i, b := range [][]byte{[]byte(`[{"name":"a"},{"name":1e9}]`), []byte("{\"name\":\"a\"}\n{}\n"), []byte("name,\"b\"\nx,y\n"), table.Bytes(), packed.Bytes(), e.EncodeAll([]byte("{}\n"), nil)} {
		f.Add(byte(i), b)
	}
	f.Fuzz(func(t *testing.T, form byte, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		path := filepath.Join(t.TempDir(), names[int(form)%len(names)])
		must.Do(t, os.WriteFile(path, b, 0o600))
		// A compressed file of 64 KiB has up to 64 MiB of rows. It is opened four times, each time with maxWindow.
		bounded.Run(t, 1<<30, func() {
			err := Each(path, &Bad{Skip: true}, func(row json.RawMessage) error {
				if !strings.Contains(path, ".jsonl") && !json.Valid(row) { // lines are not parsed here
					t.Errorf("row %q", row)
				}
				return nil
			})
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name the file: %v", err)
			}
			_, _ = Count(path)
		})
	})
}
