package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

var specBench = Kind{
	Name: "spec_bench", Doc: "first turns of a Spec-Bench file of questions",
	reads:   [][]string{{"question_id", "turns"}},
	Chat:    true,
	options: func(d *Dataset, o *Options) { o.Output, o.Category = d.SpecOutputLen, d.SpecCategory },
	New: func(ctx context.Context, o Options) (Workload, error) {
		if o.Path == "" {
			return nil, errors.New("spec_bench: no data; set --dataset-path question.jsonl")
		}
		return newSpeculative(ctx, "spec_bench", o, o.Path)
	},
}

var speedBench = Kind{
	Name: "speed_bench", Doc: "first messages of a local SPEED-Bench directory, one subset (--speed-bench-dataset-subset) of it",
	Chat: true,
	options: func(d *Dataset, o *Options) {
		o.Output, o.Category, o.Subset, o.MaxInput = d.SpeedOutputLen, d.SpeedCategory, d.SpeedSubset, d.SpeedMaxInput
	},
	New: func(ctx context.Context, o Options) (Workload, error) {
		if o.Path == "" {
			return nil, errors.New("speed_bench: no data; set its directory with --dataset-path")
		}
		return newSpeculative(ctx, "speed_bench", o, filepath.Join(o.Path, o.Subset+".jsonl"))
	},
}

// speculativeFlags are the options of spec_bench and speed_bench.
type speculativeFlags struct {
	SpecOutputLen  Length `flag:"spec-bench-output-len" default:"256" help:"spec_bench: output tokens"`
	SpecCategory   string `flag:"spec-bench-category" list:"yes" help:"spec_bench: only questions of this category"`
	SpeedSubset    string `flag:"speed-bench-dataset-subset" alias:"speed-bench-config" list:"yes" default:"qualitative" help:"speed_bench: file in the directory, without .jsonl"`
	SpeedOutputLen Length `flag:"speed-bench-output-len" default:"4096" help:"speed_bench: output tokens"`
	SpeedCategory  string `flag:"speed-bench-category" list:"yes" help:"speed_bench: only questions of this category"`
	SpeedMaxInput  int    `flag:"speed-bench-max-input-len" most:"tokens" help:"+ speed_bench: maximum prompt tokens; longer prompts are cut"`
}

// newSpeculative reads a file of questions. Of questions with several turns it asks only
// the first.
func newSpeculative(ctx context.Context, name string, o Options, path string) (Workload, error) {
	list := o.newEntryList()
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	err := rows.Each(path, &bad, func(row json.RawMessage) error {
		var line struct {
			Category string          `json:"category"`
			Turns    []string        `json:"turns"`
			Messages []tacho.Message `json:"messages"`
		}
		if err := json.Unmarshal(row, &line); err != nil {
			return err
		}
		if o.Category != "" && line.Category != o.Category {
			return nil
		}
		var prompt string
		switch {
		case len(line.Turns) > 0:
			prompt = line.Turns[0]
		case len(line.Messages) > 0:
			prompt = line.Messages[0].Content
		default:
			return errors.New(`neither "turns" nor "messages"`)
		}
		e := entry{Prompt: &prompt}
		if line.Category != "" {
			e.Labels = map[string]string{"category": line.Category}
		}
		return list.add(e, len(prompt))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list.entries) == 0 {
		return nil, fmt.Errorf("%s: %s has no questions of category %q%s; write the category as in the file", name, path, o.Category, bad.Also())
	}
	return newPool(ctx, o, list.entries, bad.Notes()...)
}
