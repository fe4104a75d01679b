package token

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// compiledMagic starts a compiled file. Increase its number if the format, the hash
// function or anything else the tables depend on changes.
const compiledMagic = "tacho tokenizer 3\n"

// load reads a tokenizer from a file, or from tables compiled from a file with the same
// contents. A cache that cannot be read or written is ignored.
func load(path, cacheDir string) (*Tokenizer, error) {
	data, err := atomicfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("load a tokenizer: %w", err)
	}
	config, err := configBeside(path, data)
	if err != nil {
		return nil, fmt.Errorf("load a tokenizer: %w", err)
	}
	compiled := filepath.Join(cacheDir, compiledName(data, config))
	if cacheDir != "" {
		if d, err := readCompiled(compiled); err == nil {
			if t, err := newTokenizer(d, path); err == nil {
				return t, nil
			}
		}
	}
	var d *definition
	var t *Tokenizer
	err = bounded("", func() error {
		if d, err = parse(data, filepath.Base(path)); err == nil && config != nil {
			err = d.setListed(config)
		}
		if err == nil {
			t, err = newTokenizer(d, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load a tokenizer from %s: %w", path, err)
	}
	if cacheDir != "" {
		_ = writeCompiled(compiled, d) // the tokenizer works without the cache
	}
	return t, nil
}

// configBeside returns the tokenizer_config.json next to a rank file, or nil if there is
// none. A rank file alone does not list all special tokens.
func configBeside(path string, data []byte) ([]byte, error) {
	if !isRankFile(data) {
		return nil, nil
	}
	config, err := atomicfile.Read(filepath.Join(filepath.Dir(path), configFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return config, err
}

// compiledName identifies contents by the length and two checksums with different
// polynomials. CRC-32 is fast, and a user's own cache needs no protection against forged
// collisions.
func compiledName(data, config []byte) string {
	table := crc32.MakeTable(crc32.Castagnoli)
	castagnoli := crc32.Update(crc32.Checksum(data, table), table, config)
	ieee := crc32.Update(crc32.ChecksumIEEE(data), crc32.IEEETable, config)
	return fmt.Sprintf("%08x%08x-%d.tok", castagnoli, ieee, len(data)+len(config))
}

// writeCompiled writes the definition atomically: a reader sees the complete file or
// none.
func writeCompiled(path string, d *definition) error {
	settings, err := json.Marshal(&d.settings)
	if err != nil {
		return err
	}
	values := len(d.vocab.offsets) + len(d.vocab.slots) + 2*len(d.merges.keys) + len(d.scores) + len(d.literals)
	b := append(make([]byte, 0, len(settings)+len(d.vocab.blob)+8*values+1<<10), compiledMagic...)
	b = append(appendLength(b, len(settings)), settings...)
	b = append(appendLength(b, len(d.vocab.blob)), d.vocab.blob...)
	b = appendSection(b, d.vocab.offsets, binary.LittleEndian.AppendUint32)
	b = appendSection(b, d.vocab.slots, binary.LittleEndian.AppendUint32)
	b = appendSection(b, d.merges.keys, binary.LittleEndian.AppendUint64)
	b = appendSection(b, d.merges.values, binary.LittleEndian.AppendUint64)
	b = appendSection(b, d.scores, func(b []byte, v float64) []byte {
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	})
	b = appendSection(b, d.literals, func(b []byte, v int32) []byte {
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	})
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return atomicfile.Write(path, b)
}

func appendLength(b []byte, n int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(n)) }

// appendSection appends the number of values, then the values.
func appendSection[T any](b []byte, values []T, add func([]byte, T) []byte) []byte {
	b = appendLength(b, len(values))
	for _, v := range values {
		b = add(b, v)
	}
	return b
}

var errCompiled = errors.New("not a compiled tokenizer")

func readCompiled(path string) (*definition, error) {
	b, err := os.ReadFile(path) // the name is a checksum
	if err != nil {
		return nil, err
	}
	return parseCompiled(b)
}

func parseCompiled(b []byte) (*definition, error) {
	if !bytes.HasPrefix(b, []byte(compiledMagic)) || len(b) < len(compiledMagic)+4 {
		return nil, errCompiled
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, errCompiled
	}
	r := sectionReader{rest: body[len(compiledMagic):]}
	d := &definition{}
	settings := r.bytes()
	d.vocab.blob = r.bytes()
	d.vocab.offsets = readSection(&r, 4, binary.LittleEndian.Uint32)
	d.vocab.slots = readSection(&r, 4, binary.LittleEndian.Uint32)
	d.merges.keys = readSection(&r, 8, binary.LittleEndian.Uint64)
	d.merges.values = readSection(&r, 8, binary.LittleEndian.Uint64)
	d.scores = readSection(&r, 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	d.literals = readSection(&r, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	if r.short || len(r.rest) > 0 {
		return nil, errCompiled
	}
	if err := json.Unmarshal(settings, &d.settings); err != nil {
		return nil, errCompiled
	}
	return d, nil
}

// sectionReader reads consecutive sections. short is set if a section is truncated.
type sectionReader struct {
	rest  []byte
	short bool
}

// next returns the bytes of the next section, whose values take size bytes each.
func (r *sectionReader) next(size int) []byte {
	if len(r.rest) < 8 {
		r.short = true
		return nil
	}
	n := binary.LittleEndian.Uint64(r.rest)
	r.rest = r.rest[8:]
	if n > uint64(len(r.rest)/size) {
		r.short = true
		return nil
	}
	b := r.rest[:int(n)*size]
	r.rest = r.rest[len(b):]
	return b
}

func (r *sectionReader) bytes() []byte { return r.next(1) }

func readSection[T any](r *sectionReader, size int, value func([]byte) T) []T {
	b := r.next(size)
	if len(b) == 0 {
		return nil
	}
	out := make([]T, len(b)/size)
	for i := range out {
		out[i] = value(b[i*size:])
	}
	return out
}
