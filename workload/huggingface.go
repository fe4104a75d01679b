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
	"path/filepath"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/rows"
)

var huggingFace = Kind{
	Name: "hf", Doc: "a dataset of the Hugging Face hub: its name (owner/name), downloaded if it is not in the local cache, or a file or directory of parquet, json, jsonl or csv, plain, .gz or .zst; columns are found by name, and audio and images are sent if the backend accepts them",
	reads: [][]string{{".parquet"}},
	Chat:  true, Hub: true, ByLength: true, New: newHuggingFace,
	options: func(d *Dataset, o *Options) { d.hubFlags.options(o) },
	check:   func(d *Dataset) error { return d.hubFlags.check() },
}

// hubFlags are the options of hf.
type hubFlags struct {
	HFSubset       string  `flag:"hf-subset" list:"yes" help:"hf: subset of a dataset on the hub; for local files, a part of the file name"`
	HFSplit        string  `flag:"hf-split" list:"yes" help:"hf: split, such as train or test; for local files, a part of the file name"`
	HFName         string  `flag:"hf-name" help:"hf: name of the dataset on the hub if the path is local; prompts are then built as in vLLM"`
	HFTextColumn   string  `flag:"hf-text-column" list:"yes" help:"+ hf: prompt column, text or conversations; by default found by name"`
	HFOutputLen    Length  `flag:"hf-output-len" help:"hf: output tokens; by default vLLM's value for this dataset, otherwise 256, or 1024 for transcription"`
	ASRMinS        float64 `flag:"asr-min-audio-len-sec" help:"hf: leave out audio shorter than this, in seconds"`
	ASRMaxS        float64 `flag:"asr-max-audio-len-sec" default:"inf" help:"hf: leave out audio longer than this, in seconds"`
	NoStream       bool    `flag:"no-stream" help:"hf: download all files of the split; by default only the files needed"`
	EditMin        float64 `flag:"blazedit-min-distance" help:"hf: minimum edit distance in datasets of edits"`
	EditMax        float64 `flag:"blazedit-max-distance" default:"1" help:"hf: maximum edit distance in datasets of edits"`
	BFCLCategories string  `flag:"bfcl-categories" default:"simple,live_simple,multiple" help:"hf: categories of the Berkeley function calling leaderboard (one file each)"`
}

func (f *hubFlags) options(o *Options) {
	o.Output, o.Subset, o.Hub, o.Column = f.HFOutputLen, f.HFSubset+" "+f.HFSplit, f.HFName, f.HFTextColumn
	o.Distance = Range{Low: f.EditMin, High: f.EditMax}
	if o.AudioLimits.MinS = f.ASRMinS; !math.IsInf(f.ASRMaxS, 1) {
		o.AudioLimits.MaxS = f.ASRMaxS
	}
}

func (f *hubFlags) check() error {
	if !(f.ASRMinS >= 0) || !(f.ASRMaxS > 0) || f.ASRMinS > f.ASRMaxS {
		return fmt.Errorf("audio from %v to %v s; --asr-min-audio-len-sec must be at least 0 and not above --asr-max-audio-len-sec", f.ASRMinS, f.ASRMaxS)
	}
	return nil
}

// promptColumns are the usual names of prompt columns, the most specific first.
var promptColumns = []string{"prompt", "question", "problem", "query", "instruction", "text", "input", "content", "document", "article"}

// conversationColumns are the usual names of columns with conversations.
var conversationColumns = []string{"messages", "conversations", "conversation", "turns", "question"}

// answerColumns are the usual names of answer columns.
var answerColumns = []string{"answer", "solution", "output", "response", "completion", "ref_output", "canonical_solution"}

// editedRegion marks the start of the rewritten part in answers that contain more than
// that part.
const editedRegion = "<|editable_region_start|>"

func newHuggingFace(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("hf: no data; set --dataset-path to a name on the hub, a file or a directory")
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
	if n, constant := o.Output.Constant(); !set.forceBounds && (!constant || n != 0) {
		set.bounds = nil
	}
	o.Output = set.outputOf(o.Output)
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	t := table{Options: o, entryList: o.newEntryList(), set: set, bad: &bad, media: mediaRows{Options: o}, unsent: map[string]int{}}
	if set.bounds != nil || set.interleaved {
		t.limit = 0 // the first rows are not enough
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
		w = withNote{w, fmt.Sprintf("the column %[2]s of %[1]d rows was not sent; if it matters, choose a --backend that accepts it", t.unsent[name], name)}
	}
	return w, err
}

// table converts the rows of a dataset to entries.
type table struct {
	Options
	*entryList
	set    namedSet
	bad    *rows.Bad
	media  mediaRows
	unsent map[string]int // number of rows by non-empty column that is not sent
}

func (t *table) read(files []string) error {
	var parts [][]entry // entries by file
	for _, path := range files {
		from := len(t.entries)
		if err := rows.Each(path, t.bad, t.row); err != nil {
			return err
		}
		parts = append(parts, t.entries[from:])
		if len(t.entries) == t.limit && t.limit > 0 {
			break
		}
	}
	if t.set.interleaved {
		t.entries = interleave(parts, len(t.entries))
	}
	return nil
}

// interleave returns n entries of several lists: the first of each list, then the second
// of each, and so on.
func interleave(parts [][]entry, n int) []entry {
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
	if audio, use, err := t.media.audio(row); audio != nil || err != nil {
		if use {
			err = t.add(*audio, len(row))
		}
		return err
	}
	r, err := rowOfColumns(row)
	if err != nil || !t.Distance.holds(r) {
		return err
	}
	if t.set.pairs && len(r.conversation().Conversations) < 2 {
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

// dataFiles returns the data files under a path, sorted. If subset is given, it returns
// only files whose path contains all its words.
func dataFiles(path, subset string) ([]string, error) {
	info, err := atomicfile.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; write the name of a dataset on the hub as owner/name", err)
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
		err = fmt.Errorf("no parquet, json, jsonl or csv file with %q in its name under %s; choose another directory, subset or split", strings.TrimSpace(subset), path)
	}
	return out, err
}

// tableRow is a row by column name.
type tableRow map[string]json.RawMessage

func rowOfColumns(row json.RawMessage) (r tableRow, err error) {
	if err := json.Unmarshal(row, &r); err != nil {
		return nil, fmt.Errorf("not a row of columns: %w", err)
	}
	return r, nil
}

// text returns the text of the first of these columns that is not empty.
func (r tableRow) text(names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(r[name], &s) == nil && s != "" { // skips columns of another type
			return s
		}
	}
	return ""
}

// entry finds the prompt and the answer in a row.
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
		c := r.conversation()
		question := c.text(0)
		e.Prompt, e.answer = &question, c.text(1)
		return e, nil
	}
	for _, name := range conversationColumns {
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
			return e, fmt.Errorf("no prompt column; found %s, expected one of %s", strings.Join(slices.Sorted(maps.Keys(r)), ", "),
				strings.Join(slices.Concat(conversationColumns, promptColumns), ", "))
		}
		e.Prompt = &prompt
		if system := r.text("system_prompt", "system"); system != "" {
			e.Prompt, e.Messages = nil, []tacho.Message{{Role: "system", Content: system}, {Role: "user", Content: prompt}}
		}
	}
	if e.answer == "" {
		e.OutputTokens = defaultOutput // used if the output length should come from the data
	}
	return e, nil
}

// fill takes the prompt from one column.
func (r tableRow) fill(e *entry, column string) error {
	if text := r.text(column); text != "" {
		e.Prompt = &text
	} else if messages, answer := firstMessages(r[column]); len(messages) > 0 {
		e.Messages, e.answer = messages, cmp.Or(answer, e.answer)
	} else {
		return fmt.Errorf("--hf-text-column %q contains neither text nor a conversation; the columns are %s", column, strings.Join(slices.Sorted(maps.Keys(r)), ", "))
	}
	if e.answer == "" {
		e.OutputTokens = defaultOutput // used if the output length should come from the data
	}
	return nil
}

// conversation returns the conversation of a row in ShareGPT's format, if any.
func (r tableRow) conversation() (t shareGPTConversation) {
	_ = json.Unmarshal(r["conversations"], &t.Conversations) // ignore columns of another type
	return t
}

// prompt returns the prompt of a row without a conversation.
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

// firstMessages returns the messages of a conversation up to its first question, which
// can be asked without an earlier answer, and the answer to it. Some datasets wrap a
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
		var t shareGPTConversation
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
