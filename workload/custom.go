package workload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"tacho"
)

var custom = Kind{
	Name: "custom", Doc: `JSON lines of your own: {"prompt": "...", "output_tokens": 128} or {"messages": [...]}`,
	New: newCustom,
}

// customLine is one line of the file.
type customLine struct {
	Prompt       *string         `json:"prompt"`
	Messages     []tacho.Message `json:"messages"`
	OutputTokens *int            `json:"output_tokens"`

	tokens int
}

// customWorkload sends the prompts of a file.
type customWorkload struct {
	Options
	lines []customLine
	order []int
	*fitted
}

func newCustom(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("custom: no data: give a JSONL file with --dataset-path prompts.jsonl")
	}
	lines, err := readCustom(o.Path, o.Output < 0)
	if err != nil {
		return nil, err
	}
	if o.Count > len(lines) && !o.Repeat {
		o.Count = len(lines)
	}
	w := &customWorkload{Options: o, lines: lines, order: make([]int, len(lines)), fitted: newFitted(ctx, o.Counter)}
	for i := range w.order {
		w.order[i] = i
	}
	if o.Shuffle {
		rngOf(o.Seed, 0).Shuffle(len(w.order), func(a, b int) { w.order[a], w.order[b] = w.order[b], w.order[a] })
	}
	used := len(lines)
	if t := w.total(); t > 0 {
		used = min(used, t)
	}
	return w, w.ready(used, o.Progress, w.count)
}

// readCustom reads the file; the error of a bad line names it.
func readCustom(path string, wantOutput bool) ([]customLine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("custom: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	var out []customLine
	br := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		text, err := br.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			line, err := parseCustom(text, wantOutput)
			if err != nil {
				return nil, fmt.Errorf("custom: %s:%d: %w", path, n, err)
			}
			out = append(out, line)
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("custom: %w", err)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("custom: %s has no lines in it", path)
	}
	return out, nil
}

func parseCustom(text []byte, wantOutput bool) (l customLine, err error) {
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf(`not a JSON object with a "prompt": %w`, err)
	}
	switch {
	case l.Prompt == nil && len(l.Messages) == 0:
		return l, errors.New(`neither "prompt" nor "messages"`)
	case l.Prompt != nil && *l.Prompt == "":
		return l, errors.New(`"prompt" is empty`)
	case wantOutput && (l.OutputTokens == nil || *l.OutputTokens < 1):
		return l, errors.New(`no "output_tokens" above 0, which --custom-output-len -1 asks for`)
	}
	return l, nil
}

// total is how many sessions there are, 0 if there is no end.
func (w *customWorkload) total() int {
	switch {
	case w.Count > 0:
		return w.Count
	case w.Repeat:
		return 0
	default:
		return len(w.lines)
	}
}

// count counts the tokens of line i of the order, once.
func (w *customWorkload) count(i uint64) error {
	l := &w.lines[w.order[i]]
	text := ""
	if l.Prompt != nil {
		text = *l.Prompt
	}
	for _, m := range l.Messages {
		text += m.Content + "\n"
	}
	var err error
	l.tokens, err = w.counter.Count(w.ctx, text)
	return err
}

// Session implements tacho.Source. When the lines are used up it takes random
// ones again.
func (w *customWorkload) Session(i uint64) (tacho.Session, error) {
	if t := w.total(); t > 0 && i >= uint64(t) {
		return tacho.Session{}, io.EOF
	}
	at := i
	if i >= uint64(len(w.lines)) {
		at = rngOf(w.Seed, i).Uint64N(uint64(len(w.lines)))
	}
	return single(i, w.request(w.lines[w.order[at]], "")), nil
}

// Warmup implements Workload. It opens a prompt of the file with words that no
// prompt of the run has, so that not even its beginning is in a cache.
func (w *customWorkload) Warmup(i uint64) (tacho.Session, error) {
	l := w.lines[w.order[i%uint64(len(w.lines))]]
	return single(warmupBase+i, w.request(l, fmt.Sprintf("(warm-up %d.%d) ", w.Seed, i))), nil
}

func (w *customWorkload) request(l customLine, opening string) tacho.Request {
	q := tacho.Request{InputTokens: l.tokens, MaxTokens: w.Output, IgnoreEOS: w.IgnoreEOS}
	if w.Output < 0 {
		q.MaxTokens = *l.OutputTokens
	}
	if l.Prompt != nil {
		q.Input.Text = opening + *l.Prompt
		return q
	}
	q.Input.Messages = append([]tacho.Message(nil), l.Messages...)
	q.Input.Messages[0].Content = opening + q.Input.Messages[0].Content
	return q
}

// Notes implements Workload.
func (w *customWorkload) Notes() []string {
	if t := w.total(); t > len(w.lines) {
		return []string{fmt.Sprintf("%d prompts were made of the %d in the file: repeats can be served from a cache", t, len(w.lines))}
	}
	return nil
}
