package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tacho"
	"tacho/internal/rows"
)

var huggingFace = Kind{
	Name: "hf", Doc: "a dataset of the Hugging Face hub: its name (owner/name), which is downloaded if it is not in the local cache, or a file or directory of parquet, json, jsonl or csv, plain, .gz or .zst; columns are found by their names, and sounds and images go where the backend takes them",
	reads: [][]string{{".parquet"}},
	Chat:  true, Hub: true, ByLength: true, New: newHuggingFace,
	options: func(d *Dataset, o *Options) { d.hubFlags.options(o) },
	check:   func(d *Dataset) error { return d.hubFlags.check() },
}

// hubFlags are the options of hf.
type hubFlags struct {
	HFSubset       string  `flag:"hf-subset" list:"yes" help:"hf: subset of a dataset on the hub; of local files, those with this in their names"`
	HFSplit        string  `flag:"hf-split" list:"yes" help:"hf: split, such as train or test; of local files, those with this in their names"`
	HFName         string  `flag:"hf-name" help:"hf: the dataset's name on the hub, if the path is local; prompts are then built as vLLM builds them"`
	HFTextColumn   string  `flag:"hf-text-column" list:"yes" help:"+ hf: column that holds the prompts, as text or as a conversation; by default it is found by its name"`
	HFOutputLen    Length  `flag:"hf-output-len" help:"hf: output tokens; by default what vLLM uses for this dataset, else 256, and 1024 for transcription"`
	ASRMinS        float64 `flag:"asr-min-audio-len-sec" help:"hf: leave out audio shorter than this, in seconds"`
	ASRMaxS        float64 `flag:"asr-max-audio-len-sec" default:"inf" help:"hf: leave out audio longer than this, in seconds"`
	NoStream       bool    `flag:"no-stream" help:"hf: download all files of the split; by default only as many as are needed"`
	EditMin        float64 `flag:"blazedit-min-distance" help:"hf: in datasets of edits, the smallest edit distance to use"`
	EditMax        float64 `flag:"blazedit-max-distance" default:"1" help:"hf: in datasets of edits, the largest edit distance to use"`
	BFCLCategories string  `flag:"bfcl-categories" default:"simple,live_simple,multiple" help:"hf: categories of the Berkeley function calling leaderboard, one file each"`
}

func (f *hubFlags) options(o *Options) {
	o.Output, o.Subset, o.Hub, o.Column = f.HFOutputLen, f.HFSubset+" "+f.HFSplit, f.HFName, f.HFTextColumn
	o.Distance = Range{Low: f.EditMin, High: f.EditMax}
	if o.Sounds.MinS = f.ASRMinS; !math.IsInf(f.ASRMaxS, 1) {
		o.Sounds.MaxS = f.ASRMaxS
	}
}

func (f *hubFlags) check() error {
	if !(f.ASRMinS >= 0) || !(f.ASRMaxS > 0) || f.ASRMinS > f.ASRMaxS {
		return fmt.Errorf("sounds from %v to %v s: --asr-min-audio-len-sec must be 0 or more, and --asr-max-audio-len-sec not less", f.ASRMinS, f.ASRMaxS)
	}
	return nil
}

// promptColumns are the names under which datasets keep what is asked, the
// more particular first.
var promptColumns = []string{"prompt", "question", "problem", "query", "instruction", "text", "input", "content", "document", "article"}

// talkColumns are the names of columns with whole conversations.
var talkColumns = []string{"messages", "conversations", "conversation", "turns", "question"}

// answerColumns are the names under which datasets keep what was answered.
var answerColumns = []string{"answer", "solution", "output", "response", "completion", "ref_output", "canonical_solution"}

// editedRegion marks where the rewritten part begins, in answers that show more
// than that part.
const editedRegion = "<|editable_region_start|>"

func newHuggingFace(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("hf: no data: give a name of the hub, a file or a directory with --dataset-path")
	}
	files := o.Files
	if files == nil {
		var err error
		if files, err = dataFiles(o.Path, o.Subset); err != nil {
			return nil, fmt.Errorf("hf: %w", err)
		}
	}
	set := knownSet(o.Hub)
	set.column = o.Column
	if n, constant := o.Output.Constant(); !set.always && (!constant || n != 0) {
		set.bounds = nil
	}
	o.Output = set.outputOf(o.Output)
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	t := table{Options: o, kept: o.keeping(), set: set, bad: &bad, media: mediaRows{Options: o}, unsent: map[string]int{}}
	if set.bounds != nil || set.rounds {
		t.enough = 0 // the first rows will not do
	}
	if err := t.read(files); err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	if len(t.entries) == 0 {
		return nil, fmt.Errorf("hf: %s has no rows%s", o.Path, bad.Also()+t.media.also())
	}
	var w Workload
	var err error
	if set.bounds != nil {
		w, err = newFiltered(ctx, "hf", o, t.entries, *set.bounds, bad)
	} else {
		w, err = newPool(ctx, o, t.entries, slices.Concat(bad.Notes(), t.media.notes())...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.unsent)) {
		w = noted{w, fmt.Sprintf("%d rows have something in the column %s, which was not sent; choose a --backend that takes it, if it matters", t.unsent[name], name)}
	}
	return w, err
}

// A table is the rows of a dataset as they become entries.
type table struct {
	Options
	*kept
	set    namedSet
	bad    *rows.Bad
	media  mediaRows
	unsent map[string]int // rows with something in a column that is not sent
}

func (t *table) read(files []string) error {
	var parts [][]entry // of the files
	for _, path := range files {
		from := len(t.entries)
		if err := rows.Each(path, t.bad, t.row); err != nil {
			return err
		}
		parts = append(parts, t.entries[from:])
		if len(t.entries) == t.enough && t.enough > 0 {
			break
		}
	}
	if t.set.rounds {
		t.entries = inRounds(parts, len(t.entries))
	}
	return nil
}

// inRounds are n entries of several lists: the first of each, then the second.
func inRounds(parts [][]entry, n int) []entry {
	out := make([]entry, 0, n)
	for i := 0; len(out) < n; i++ {
		for _, part := range parts {
			if i < len(part) {
				out = append(out, part[i])
			}
		}
	}
	return out
}

func (t *table) row(row json.RawMessage) error {
	if sound, use, err := t.media.sound(row); sound != nil || err != nil {
		if use {
			err = t.add(*sound, len(row))
		}
		return err
	}
	r, err := rowOfColumns(row)
	if err != nil || !t.Distance.holds(r) {
		return err
	}
	if t.set.pairs && !r.isPair() {
		return nil
	}
	e, err := r.entry(&t.set)
	if err != nil {
		return err
	}
	e.Images = t.media.images(row)
	if n, constant := t.Output.Constant(); constant && n == 0 {
		e.OutputTokens = defaultOutput
	}
	r.unsent(t.unsent, len(e.Images) > 0)
	return t.add(e, len(row))
}

// dataFiles are the data files under a path, in order; those of one subset or
// split if words of their names are given.
func dataFiles(path, subset string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; a dataset of the hub is named as owner/name", err)
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
		named := !slices.ContainsFunc(strings.Fields(subset), func(part string) bool { return !strings.Contains(rel, part) })
		if rows.IsData(p) && named {
			out = append(out, p)
		}
		return nil
	})
	slices.Sort(out)
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("no parquet, json, jsonl or csv file with %q in its name under %s: name another directory, subset or split", strings.TrimSpace(subset), path)
	}
	return out, err
}

// A tableRow is a row by the names of its columns.
type tableRow map[string]json.RawMessage

func rowOfColumns(row json.RawMessage) (r tableRow, err error) {
	if err := json.Unmarshal(row, &r); err != nil {
		return nil, fmt.Errorf("not a row of columns: %w", err)
	}
	return r, nil
}

// text is the text in the first of these columns that has any.
func (r tableRow) text(names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(r[name], &s) == nil && s != "" { // a column of another type has no text
			return s
		}
	}
	return ""
}

// entry finds the prompt in a row, and the answer.
func (r tableRow) entry(set *namedSet) (e entry, err error) {
	e.answer = r.text(slices.Concat([]string{set.answer}, answerColumns)...)
	if region := strings.Index(e.answer, editedRegion); region >= 0 {
		e.answer = e.answer[region:]
	}
	if e.Tools, err = r.tools(); err != nil {
		return e, err
	} else if e.Tools != nil {
		e.Extra = map[string]any{"tool_choice": "auto"}
	}
	if set.column != "" {
		return e, r.fill(&e, set.column)
	}
	if set.pairs {
		talk := r.talk()
		question := talk.said(0)
		e.Prompt, e.answer = &question, talk.said(1)
		return e, nil
	}
	for _, name := range talkColumns {
		messages, answer := firstMessages(r[name])
		if len(messages) == 0 {
			continue
		}
		e.Messages = messages
		if answer != "" {
			e.answer = answer
		}
		break
	}
	if e.Messages == nil {
		prompt := r.prompt(set)
		if prompt == "" {
			return e, fmt.Errorf("no column holds a prompt: have %s, want one of %s", strings.Join(slices.Sorted(maps.Keys(r)), ", "),
				strings.Join(slices.Concat(talkColumns, promptColumns), ", "))
		}
		e.Prompt = &prompt
		if system := r.text("system_prompt", "system"); system != "" {
			e.Prompt, e.Messages = nil, []tacho.Message{{Role: "system", Content: system}, {Role: "user", Content: prompt}}
		}
	}
	if e.answer == "" {
		e.OutputTokens = defaultOutput // if the data's own length is wanted
	}
	return e, nil
}

// fill takes what is asked from one column.
func (r tableRow) fill(e *entry, column string) error {
	if text := r.text(column); text != "" {
		e.Prompt = &text
	} else if messages, answer := firstMessages(r[column]); len(messages) > 0 {
		e.Messages, e.answer = messages, cmp.Or(answer, e.answer)
	} else {
		return fmt.Errorf("the column %q of --hf-text-column holds no text and no conversation: have %s", column, strings.Join(slices.Sorted(maps.Keys(r)), ", "))
	}
	if e.answer == "" {
		e.OutputTokens = defaultOutput // if the data's own length is wanted
	}
	return nil
}

// talk is the conversation of a row that has one in ShareGPT's form.
func (r tableRow) talk() (t shareGPTTalk) {
	_ = json.Unmarshal(r["conversations"], &t.Conversations) // a column of another type holds none
	return t
}

// isPair says whether a row's conversation has a question and an answer.
func (r tableRow) isPair() bool { return len(r.talk().Conversations) >= 2 }

// prompt is what a row without a conversation asks.
func (r tableRow) prompt(set *namedSet) string {
	if code, request := r.text("code"), r.text("change_request"); code != "" && request != "" {
		return "Change this file:\n\n" + code + "\n\nas follows, and write all of it:\n\n" + request
	}
	if events, input := r.text("events"), r.text("input"); events != "" && input != "" {
		return events + "\n\n" + input
	}
	for _, name := range promptColumns {
		s := r.text(name)
		if s == "" {
			continue
		}
		if more := r.text("input"); name == "instruction" && more != "" {
			s = more + "\n\n" + s
		}
		if before, _, found := strings.Cut(s, set.cut); found && set.cut != "" {
			s = strings.TrimSpace(before)
		}
		return s + r.choices() + set.suffix
	}
	return ""
}

// firstMessages are the messages of a conversation up to its first question,
// which can be asked without an answer, and the answer that it had. Some keep a
// conversation in a list of one.
func firstMessages(column json.RawMessage) (messages []tacho.Message, answer string) {
	var turns []string
	var nested []json.RawMessage
	switch {
	case len(column) == 0:
		return nil, ""
	case json.Unmarshal(column, &turns) == nil && len(turns) > 0:
		return []tacho.Message{{Role: "user", Content: turns[0]}}, ""
	case json.Unmarshal(column, &nested) == nil && len(nested) > 0 && len(nested[0]) > 0 && nested[0][0] == '[':
		return firstMessages(nested[0])
	case json.Unmarshal(column, &messages) != nil:
		var t shareGPTTalk
		if json.Unmarshal(slices.Concat([]byte(`{"conversations":`), column, []byte("}")), &t) != nil {
			return nil, ""
		}
		messages = t.messages()
	}
	for i, m := range messages {
		switch m.Role {
		case "assistant":
			return messages[:i], m.Content
		case "user":
			if i+1 < len(messages) && messages[i+1].Role == "assistant" {
				answer = messages[i+1].Content
			}
			return messages[:i+1], answer
		}
	}
	return nil, ""
}
