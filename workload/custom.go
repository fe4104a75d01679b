package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tacho-bench/tacho/internal/rows"
)

var custom = Kind{
	Name: "custom", Doc: `JSON lines: {"prompt": "...", "output_tokens": 128} or {"messages": [...]}, with "tools", "images", "audio", or "turns" of a conversation; "scorer" and "reference" score the answer`,
	reads:  [][]string{{"prompt"}, {"messages"}},
	Quotes: true, Chat: true, New: newCustom,
	options: customOptions,
}

// customFlags are the options of user-defined files.
type customFlags struct {
	CustomOutputLen Length `flag:"custom-output-len" default:"256" help:"custom, custom_image, custom_audio: output tokens; -1 uses output_tokens of each line"`
	CustomSendFiles bool   `flag:"custom-ensure-client-side-data" help:"custom_image: send the contents of files instead of their names"`
}

func customOptions(d *Dataset, o *Options) { o.Output = d.CustomOutputLen }

func newCustom(ctx context.Context, o Options) (Workload, error) {
	return newCustomOf(ctx, o, "custom", func(*entry) error { return nil })
}

// newCustomOf reads a file of JSON lines. need returns an error if a line lacks a
// required field.
func newCustomOf(ctx context.Context, o Options, name string, need func(*entry) error) (Workload, error) {
	if o.Path == "" {
		return nil, fmt.Errorf("%s: no data; set a JSONL file with --dataset-path prompts.jsonl", name)
	}
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	list := o.newEntryList()
	err := rows.EachLine(o.Path, &bad, func(text json.RawMessage) error {
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf(`not a JSON object with a "prompt": %w`, err)
		}
		if err := errors.Join(e.check(o.usesDataLength()), need(&e)); err != nil {
			return err
		}
		return list.add(e, len(text))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list.entries) == 0 {
		return nil, fmt.Errorf("%s: %s contains no lines%s", name, o.Path, bad.Also())
	}
	return newPool(ctx, o, list.entries, bad.Notes()...)
}
