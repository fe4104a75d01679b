package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tacho"
)

var huggingFace = Kind{
	Name: "hf", Doc: "a dataset of the Hugging Face hub on this machine: a file or directory of parquet, json, jsonl or csv, plain, .gz or .zst; columns are found by their names, and sounds and images go where the backend takes them",
	New: newHuggingFace,
}

// defaultAnswer is how many tokens are asked for where nobody says.
const defaultAnswer = 256

// promptColumns are the names under which datasets keep what is asked, the
// more particular first.
var promptColumns = []string{"prompt", "question", "problem", "query", "instruction", "text", "input", "content", "document", "article"}

// talkColumns are the names of columns with whole conversations.
var talkColumns = []string{"messages", "conversations", "conversation", "turns"}

func newHuggingFace(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("hf: no data: give a file or directory with --dataset-path")
	}
	files, err := dataFiles(o.Path, o.Subset)
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	media := mediaRows{Options: o}
	var entries []entry
	for _, path := range files {
		if err := eachRow(path, func(row json.RawMessage) error {
			if sound, use, err := media.sound(row); sound != nil || err != nil {
				if use {
					entries = append(entries, *sound)
				}
				return err
			}
			e, err := entryOfRow(row)
			if err == nil {
				e.Images, e.OutputTokens = media.images(row), defaultAnswer
				entries = append(entries, e)
			}
			return err
		}); err != nil {
			return nil, fmt.Errorf("hf: %w", err)
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("hf: %s has no rows%s", o.Path, media.also())
	}
	return newPool(ctx, o, entries, media.notes()...)
}

// dataFiles are the data files under a path, in order; those of one subset or
// split if words of their names are given.
func dataFiles(path, subset string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; a dataset of the hub must be downloaded first, as with: hf download --repo-type dataset %s", err, path)
	} else if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel := strings.TrimPrefix(p, path)
		ext := strings.ToLower(filepath.Ext(bareName(p)))
		named := !slices.ContainsFunc(strings.Fields(subset), func(part string) bool { return !strings.Contains(rel, part) })
		if slices.Contains([]string{".parquet", ".json", ".jsonl", ".csv"}, ext) && named && d.Name() != "dataset_infos.json" {
			out = append(out, p)
		}
		return nil
	})
	slices.Sort(out)
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("no parquet, json, jsonl or csv file with %q in its name under %s", strings.TrimSpace(subset), path)
	}
	return out, err
}

// entryOfRow finds the prompt in a row.
func entryOfRow(row json.RawMessage) (e entry, err error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(row, &columns); err != nil {
		return e, fmt.Errorf("not a row of columns: %w", err)
	}
	text := func(name string) string {
		var s string
		_ = json.Unmarshal(columns[name], &s) // a column of another type has no text
		return s
	}
	for _, name := range talkColumns {
		if messages := firstMessages(columns[name]); len(messages) > 0 {
			e.Messages = messages
			return e, nil
		}
	}
	for _, name := range promptColumns {
		s := text(name)
		if s == "" {
			continue
		}
		if more := text("input"); name == "instruction" && more != "" {
			s = more + "\n\n" + s
		}
		e.Prompt = &s
		return e, nil
	}
	names := make([]string, 0, len(columns))
	for name := range columns {
		names = append(names, name)
	}
	slices.Sort(names)
	return e, fmt.Errorf("no column holds a prompt: have %s, want one of %s", strings.Join(names, ", "), strings.Join(slices.Concat(talkColumns, promptColumns), ", "))
}

// firstMessages are the messages of a conversation up to its first question:
// what can be asked without an answer.
func firstMessages(column json.RawMessage) []tacho.Message {
	var messages []tacho.Message
	var turns []string
	switch {
	case len(column) == 0:
		return nil
	case json.Unmarshal(column, &turns) == nil && len(turns) > 0:
		return []tacho.Message{{Role: "user", Content: turns[0]}}
	case json.Unmarshal(column, &messages) != nil:
		var t shareGPTTalk
		if json.Unmarshal(slices.Concat([]byte(`{"conversations":`), column, []byte("}")), &t) != nil {
			return nil
		}
		messages = t.messages()
	}
	for i, m := range messages {
		if m.Role == "assistant" {
			return messages[:i]
		}
		if m.Role == "user" {
			return messages[:i+1]
		}
	}
	return nil
}
