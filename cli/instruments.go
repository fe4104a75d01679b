package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"tacho/instrument"
	"tacho/run"
)

// instrumentsFile is where a run keeps what its servers' metrics pages said: a
// line for each reading.
const instrumentsFile = "instruments.jsonl"

type instrumentsLine struct {
	Stage int `json:"stage"`
	instrument.Sample
}

// keepSamples appends what was read during a level.
func (b *benchRun) keepSamples(s run.Stage, samples []instrument.Sample) (err error) {
	if len(samples) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(b.keep.Dir(), instrumentsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	for _, sample := range samples {
		line, err := json.Marshal(instrumentsLine{s.Index, sample})
		if err != nil {
			return err
		}
		_, _ = out.Write(append(b.env.secrets.SweepJSON(line), '\n')) // Flush tells
	}
	return out.Flush()
}

// readSamples are the readings that a run kept, by level. A run without any is
// a run whose servers showed none, and a last line that was cut off is lost.
func readSamples(dir string) (map[int][]instrument.Sample, error) {
	f, err := os.Open(filepath.Join(dir, instrumentsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	out := map[int][]instrument.Sample{}
	lines := json.NewDecoder(bufio.NewReader(f))
	for lines.More() {
		var line instrumentsLine
		if lines.Decode(&line) != nil {
			break
		}
		out[line.Stage] = append(out[line.Stage], line.Sample)
	}
	return out, nil
}
