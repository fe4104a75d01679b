package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

// Datasets of questions with known answers.

var gsm8k = Kind{
	Name: "gsm8k", Doc: "grade school math with known answers: openai/gsm8k from the hub, or a file with question and answer; scored by gsm8k-flexible",
	Chat: true, Hub: true, DefaultHub: "openai/gsm8k", New: newGSM8K,
	options: func(d *Dataset, o *Options) { o.Output = d.AnswerLen },
}

var arithmetic = Kind{
	Name: "arithmetic", Doc: "generated sums with known answers, without any file; scored by gsm8k-numeric",
	Chat: true, New: newArithmetic,
	options: func(d *Dataset, o *Options) { o.Output = d.AnswerLen },
}

var bfclQuestions = Kind{
	Name: "bfcl", Doc: "questions of the Berkeley Function Calling Leaderboard, a file BFCL_v4_CATEGORY.json beside the folder possible_answer; needs a chat backend; scored by bfcl",
	Chat: true, New: newBFCL,
	options: func(d *Dataset, o *Options) { o.Output = d.AnswerLen },
}

// questionFlags are the options of questions with known answers.
type questionFlags struct {
	AnswerLen Length `flag:"answer-len" default:"512" help:"+ gsm8k, arithmetic, bfcl: maximum output tokens of an answer"`
}

// numberForm asks for the form of an answer that all scorers of numbers read.
const numberForm = "\n\nThink step by step, and end with a line that has only #### and the number."

// reference returns a reference as scorers read it: a text without its quotes, or other JSON as it is.
func reference(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func newGSM8K(ctx context.Context, o Options) (Workload, error) {
	files := o.Files
	if files == nil {
		files = []string{o.Path}
	}
	return newQuestions(ctx, o, "gsm8k", files, func(row json.RawMessage) (e entry, err error) {
		var line struct{ Question, Answer string }
		if err := json.Unmarshal(row, &line); err != nil {
			return e, err
		}
		_, answer, marked := strings.Cut(line.Answer, "#### ")
		if line.Question == "" || !marked {
			return e, errors.New(`no "question", or no "answer" with ####`)
		}
		prompt := line.Question + numberForm
		return entry{Prompt: &prompt, Scorer: "gsm8k-flexible", Reference: asJSON(strings.ReplaceAll(strings.TrimSpace(answer), ",", ""))}, nil
	})
}

// asJSON returns a text as JSON.
func asJSON(text string) json.RawMessage {
	b, _ := json.Marshal(text) // a text always has a form in JSON
	return b
}

// newQuestions reads files of questions.
func newQuestions(ctx context.Context, o Options, name string, files []string, entryOf func(json.RawMessage) (entry, error)) (Workload, error) {
	bad, list := rows.Bad{Skip: o.Trace.SkipBad}, o.newEntryList()
	for _, path := range files {
		err := rows.Each(path, &bad, func(row json.RawMessage) error {
			e, err := entryOf(row)
			if err != nil {
				return err
			}
			return list.add(e, len(row))
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(list.entries) == 0 {
		return nil, fmt.Errorf("%s: %s has no questions%s", name, strings.Join(files, ", "), bad.Also())
	}
	return newPool(ctx, o, list.entries, bad.Notes()...)
}

// mostSums is the number of sums of a run limited by time, after which they repeat.
const mostSums = 10_000

func newArithmetic(ctx context.Context, o Options) (Workload, error) {
	n := o.Count
	if n == 0 {
		n = mostSums
	}
	o.Shuffle = false // sum i depends on i alone, whatever their number
	entries := make([]entry, n)
	for i := range entries {
		question, result := sum(rngOf(o.Seed, uint64(i)))
		prompt := question + numberForm
		entries[i] = entry{Prompt: &prompt, Scorer: "gsm8k-numeric", Reference: asJSON(fmt.Sprint(result))}
	}
	return newPool(ctx, o, entries)
}

// sum draws a sum and its result.
func sum(rng *rand.Rand) (question string, result int) {
	a, b, c := 10+rng.IntN(90), 10+rng.IntN(90), 100+rng.IntN(900)
	if rng.IntN(2) == 0 {
		return fmt.Sprintf("What is %d * %d + %d?", a, b, c), a*b + c
	}
	return fmt.Sprintf("What is %d * %d - %d?", a, b, c), a*b - c
}

func newBFCL(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("bfcl: no data; set a file such as --dataset-path data/BFCL_v4_simple_python.json")
	}
	base := filepath.Base(o.Path)
	category := strings.TrimPrefix(strings.TrimSuffix(base, ".json"), "BFCL_v4_")
	truth := map[string]json.RawMessage{}
	if !strings.Contains(category, "relevance") { // those have no key
		err := rows.EachLine(filepath.Join(filepath.Dir(o.Path), "possible_answer", base), &rows.Bad{}, func(row json.RawMessage) error {
			var line struct {
				ID    string          `json:"id"`
				Truth json.RawMessage `json:"ground_truth"`
			}
			err := json.Unmarshal(row, &line)
			truth[line.ID] = line.Truth
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("bfcl: the answer key: %w", err)
		}
	}
	return newQuestions(ctx, o, "bfcl", []string{o.Path}, func(row json.RawMessage) (e entry, err error) {
		var line struct {
			ID       string            `json:"id"`
			Question [][]tacho.Message `json:"question"`
			Function json.RawMessage   `json:"function"`
		}
		if err := json.Unmarshal(row, &line); err != nil {
			return e, err
		}
		if len(line.Question) == 0 {
			return e, errors.New(`no "question"`)
		}
		e = entry{Messages: line.Question[0], Scorer: "bfcl", Labels: map[string]string{"category": category}}
		if e.Tools, err = toolsOf(line.Function); err != nil {
			return e, err
		}
		e.Reference, err = json.Marshal(map[string]any{"category": category, "function": line.Function, "ground_truth": truth[line.ID]})
		return e, err
	})
}

// toolsOf converts functions to OpenAI's format, which allows no dots in names.
func toolsOf(functions json.RawMessage) (json.RawMessage, error) {
	var list []map[string]any
	d := json.NewDecoder(bytes.NewReader(functions))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	tools := make([]map[string]any, len(list))
	for i, f := range list {
		f, _ = schemaTypes(maps.Clone(f)).(map[string]any)
		if name, is := f["name"].(string); is {
			f["name"] = strings.ReplaceAll(name, ".", "_")
		}
		tools[i] = map[string]any{"type": "function", "function": f}
	}
	return json.Marshal(tools)
}
