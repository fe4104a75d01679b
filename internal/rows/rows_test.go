package rows

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
)

// A value that is too long is an error in every format.
func TestRowsAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxLine+(4<<20))
	dir := t.TempDir()
	type row struct {
		Prompt string `parquet:"prompt,zstd"`
	}
	for name, text := range map[string]string{
		"a.json": `[{"prompt":"` + long + `"}]`, "a.jsonl": `{"prompt":"` + long + `"}`, "a.csv": "prompt\n\"" + long + "\"\n", "a.parquet": "",
	} {
		path := filepath.Join(dir, name)
		if text == "" {
			must.Do(t, parquet.WriteFile(path, []row{{long}}))
		} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Each(path, &Bad{}, func(json.RawMessage) error { return nil })
		if want := fmt.Sprintf("%d MiB", maxLine>>20); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// Encodings of Parquet repeat a value for a few bytes. A list of many values is refused, also if the file's metadata hides
// their number.
func TestParquetBombs(t *testing.T) {
	type row struct {
		List []string `parquet:"list,list,dict"`
	}
	dir := t.TempDir()
	write := func(name string, pageSize int, list []string) string {
		path := filepath.Join(dir, name)
		must.Do(t, parquet.WriteFile(path, []row{{list}}, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(pageSize)))
		return path
	}
	fine := write("fine.parquet", 1<<20, make([]string, 1000))
	list := write("list.parquet", 1<<20, make([]string, maxListValues+2))
	page := write("page.parquet", 1<<30, make([]string, maxPageValues+1))
	for path, want := range map[string]string{fine: "", list: "values in the lists", page: "a page has more than"} {
		for _, path := range []string{path, hidden(t, path)} {
			bounded.Run(t, 256<<20, func() {
				err := Each(path, &Bad{}, func(json.RawMessage) error { return nil })
				if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want)) {
					t.Errorf("%v, want %s and %q", err, path, want)
				}
			})
		}
	}
}

// Metadata longer than the file is not allocated.
func TestParquetFooterIsBounded(t *testing.T) {
	for name, text := range map[string]string{"long.parquet": "PAR1 some bytes \xff\xff\xff\x7fPAR1", "short.parquet": "PAR1"} {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		bounded.Run(t, 64<<20, func() {
			if err := Each(path, &Bad{}, nil); err == nil || !strings.Contains(err.Error(), path+": not a Parquet file") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A zstd file cannot demand more memory than the zstd command uses.
func TestZstdWindowIsBounded(t *testing.T) {
	const frame = "\x28\xb5\x2f\xfd"                                           // its magic number, then a descriptor, the window, and a last block of one byte
	for window, want := range map[byte]string{0x00: "", 0x98: "window size"} { // 1 KiB and 512 MiB
		path := filepath.Join(t.TempDir(), "a.jsonl.zst")
		must.Do(t, os.WriteFile(path, []byte(frame+"\x00"+string([]byte{window})+"\x09\x00\x001"), 0o600))
		bounded.Run(t, 64<<20, func() {
			err := Each(path, &Bad{}, func(json.RawMessage) error { return nil })
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want)) {
				t.Errorf("window %x: %v, want %q", window, err, want)
			}
		})
	}
}

// hidden writes a copy of a Parquet file whose metadata says that a column has one value.
func hidden(t *testing.T, path string) string {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	const tail = 8 // the length of the metadata, and PAR1
	begin := len(b) - tail - int(binary.LittleEndian.Uint32(b[len(b)-tail:]))
	var meta format.FileMetaData
	must.Do(t, thrift.Unmarshal(new(thrift.CompactProtocol), b[begin:len(b)-tail], &meta))
	meta.RowGroups[0].Columns[0].MetaData.NumValues = 1
	text := must.Get(thrift.Marshal(new(thrift.CompactProtocol), &meta))(t)
	out := append(b[:begin:begin], text...)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(text))), "PAR1"...)
	to := strings.TrimSuffix(path, ".parquet") + "-hidden.parquet"
	must.Do(t, os.WriteFile(to, out, 0o600))
	return to
}

// A file contains the same rows in every format, compressed or not, and each stored row can be read again.
func TestFormsHaveTheSameRows(t *testing.T) {
	type row struct {
		Name string `json:"name" parquet:"name"`
	}
	want := []string{`{"name":"a"}`, `{"name":"b c"}`, `{"name":"d"}`}
	dir := t.TempDir()
	forms := map[string]string{
		"a.json": "[" + strings.Join(want, ",\n ") + "]", "b.json": strings.Join(want, "\n"), "a.jsonl": "\n" + strings.Join(want, "\n\n"),
		"a.csv": "name\na\nb c\nd\n", "marked.jsonl": byteOrderMark + strings.Join(want, "\n"),
	}
	for name, text := range forms {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write([]byte(text))
		must.Do(t, errors.Join(err, z.Close(), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600), os.WriteFile(filepath.Join(dir, name+".gz"), packed.Bytes(), 0o600)))
	}
	must.Do(t, parquet.WriteFile(filepath.Join(dir, "a.parquet"), []row{{"a"}, {"b c"}, {"d"}}))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2*len(forms)+1 {
		t.Fatal(files, err)
	}
	var k Store
	places := map[string][]Ref{}
	for _, path := range files {
		err := k.Each(path, &Bad{}, func(row json.RawMessage, offset int64) error {
			p, err := k.Keep(row, offset)
			places[path] = append(places[path], p)
			return err
		})
		if n, err2 := Count(path); err != nil || err2 != nil || n != len(want) {
			t.Errorf("%s: %d rows, %v, %v", path, n, err, err2)
		}
	}
	for path, all := range places {
		for i, p := range slices.Backward(all) {
			if got, err := k.Read(p); err != nil || string(got) != want[i] {
				t.Errorf("%s: row %d is %s, %v", path, i, got, err)
			}
		}
	}
	if where := k.Location(places[filepath.Join(dir, "a.jsonl")][2], 3); where != filepath.Join(dir, "a.jsonl:6") {
		t.Error(where)
	}
	if where := k.Location(places[filepath.Join(dir, "a.csv.gz")][2], 3); where != filepath.Join(dir, "a.csv.gz: row 3") {
		t.Error(where)
	}
}

// Bad rows stop the reading or are counted. ErrEnough and ErrTooMuch always stop the reading.
func TestBadRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	must.Do(t, os.WriteFile(path, []byte("1\n2\n3\n4\n"), 0o600))
	wrong := errors.New("wrong")
	for _, c := range []struct {
		skip  bool
		third error
		want  string // expected error
		read  int
	}{
		{false, nil, path + ":2: wrong (use --bad-lines skip to skip it)", 2},
		{true, nil, "", 4},
		{true, ErrEnough, "", 3},
		{true, ErrTooMuch, path + ": " + ErrTooMuch.Error(), 3},
	} {
		bad, read := Bad{Skip: c.skip}, 0
		err := Each(path, &bad, func(row json.RawMessage) error {
			read++
			return map[string]error{"2": wrong, "3": c.third}[string(row)]
		})
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") || read != c.read {
			t.Errorf("%+v: %s after %d rows", c, got, read)
		}
		if c.skip && (bad.Count != 1 || !strings.Contains(bad.Notes()[0], path+":2: wrong")) {
			t.Errorf("%+v: %v", c, bad)
		}
	}
}
