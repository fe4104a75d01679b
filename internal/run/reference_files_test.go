//go:build vllm

package run_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// refFiles writes input files for tacho and the reference.
type refFiles struct {
	t   *testing.T
	dir string
	rng *rand.Rand
}

func newRefFiles(t *testing.T) *refFiles {
	return &refFiles{t, t.TempDir(), rand.New(rand.NewPCG(1, 2))}
}

func (f *refFiles) write(name, text string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	must.Do(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(f.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// lines writes values as JSON lines.
func (f *refFiles) lines(name string, rows ...any) string {
	f.t.Helper()
	var b strings.Builder
	for _, row := range rows {
		text := must.Get(json.Marshal(row))(f.t)
		b.Write(append(text, '\n'))
	}
	return f.write(name, b.String())
}

// say returns text with this many words, some in other scripts.
func (f *refFiles) say(words int) string {
	list := []string{"the", "tokens", "of", "a", "prompt", "wörter", "слова", "単語", "🙂", "func", "(x)", "1234", "trace's", "\n", "  "}
	out := make([]string, words)
	for i := range out {
		out[i] = list[f.rng.IntN(len(list))]
	}
	return strings.Join(out, " ")
}

type object = map[string]any

// shareGPT writes a list of conversations of many lengths, some of them empty.
func (f *refFiles) shareGPT(name string, more ...any) string {
	f.t.Helper()
	said := func(texts ...string) object {
		turns := []object{}
		for i, text := range texts {
			turns = append(turns, object{"from": []string{"human", "gpt"}[i%2], "value": text})
		}
		return object{"id": fmt.Sprint(f.rng.Int()), "conversations": turns}
	}
	list := []any{object{"id": "none"}, said(), said("alone"), said("", "an answer to nothing"), said("nothing to a question", ""), said("x", "y", "z")}
	for _, question := range []int{1, 2, 3, 4, 5, 20, 100, 300, 500, 700, 1200} {
		for _, answer := range []int{1, 2, 4, 30, 400, 800, 1500} {
			list = append(list, said(f.say(question), f.say(answer), f.say(9), f.say(9)))
		}
	}
	text := must.Get(json.Marshal(append(list, more...)))(f.t)
	return f.write(name, string(text))
}

// Files produce the same prompts as in the reference, in the same order and
// with the same lengths.
func TestReferenceFiles(t *testing.T) {
	plain, opened := makeTokenizers(t, "bytes")
	f := newRefFiles(t)
	var cases []refCase
	add := func(name, tokenizer, line string, check func(t *testing.T, ref, got []drawn)) {
		words := append([]string{"--tokenizer", tokenizer}, strings.Fields(line)...)
		cases = append(cases, refCase{name: name, words: words, check: check})
	}
	fails := func(name, line, why string) {
		add(name, plain, line, nil)
		cases[len(cases)-1].fails = why
	}

	talks := f.shareGPT("talks.json")
	for name, tokenizer := range map[string]string{"plain": plain, "opened": opened} {
		base := "--backend openai --dataset-name sharegpt --disable-shuffle --dataset-path " + talks
		add("sharegpt "+name, tokenizer, base+" --num-prompts 500 --no-oversample", same)
		add("sharegpt first "+name, tokenizer, base+" --num-prompts 7", same)
		for _, n := range []string{"1", "50", "1600"} {
			add("sharegpt asked "+n+" "+name, tokenizer, base+" --num-prompts 500 --no-oversample --sharegpt-output-len "+n, same)
		}
	}
	add("sharegpt chat", plain, "--backend openai-chat --disable-shuffle --dataset-name sharegpt --num-prompts 500 --no-oversample --dataset-path "+talks, func(t *testing.T, ref, got []drawn) {
		template := got[0].Input - ref[0].Input // not counted by the reference
		for i := range ref {
			if n := got[i].Input - ref[i].Input; template < 5 || max(n-template, template-n) > 1 { // two newlines may be one token
				t.Errorf("request %d: %d tokens of a chat template, and %d in the first", i, n, template)
			}
			ref[i].Input = got[i].Input
		}
		same(t, ref, got)
	})
	add("sharegpt shuffled", plain, "--backend openai --dataset-name sharegpt --num-prompts 500 --no-oversample --dataset-path "+talks, func(t *testing.T, ref, got []drawn) {
		if slices.EqualFunc(ref, got, func(a, b drawn) bool { return a.Text == b.Text }) {
			t.Error("in the same order by chance?")
		}
		for _, list := range [][]drawn{ref, got} {
			slices.SortFunc(list, func(a, b drawn) int { return strings.Compare(a.Text, b.Text) })
		}
		same(t, ref, got)
	})
	add("sharegpt again", plain, "--backend openai --dataset-name sharegpt --disable-shuffle --num-prompts 90 --dataset-path "+talks, again)
	fails("sharegpt of numbers", "--backend openai --dataset-name sharegpt --num-prompts 500 --disable-shuffle --dataset-path "+
		f.shareGPT("numbers.json", object{"conversations": []object{{"from": "human", "value": 5}, {"from": "gpt", "value": "five"}}}), "not a ShareGPT conversation")

	var prompts []any
	for i := range 12 {
		prompts = append(prompts, object{"prompt": f.say(3 + i*7), "output_tokens": 5 + i})
	}
	file := f.lines("prompts.jsonl", prompts...)
	for name, base := range map[string]string{"custom": "--backend openai --disable-shuffle --dataset-name custom --dataset-path " + file} {
		add(name, plain, base+" --num-prompts 12", same)
		add(name+" all", plain, base+" --num-prompts 0", same)
		add(name+" asked", plain, base+" --num-prompts 5 --custom-output-len 77", same)
		add(name+" own lengths", plain, base+" --num-prompts 12 --custom-output-len -1", same)
		add(name+" as they are", plain, base+" --num-prompts 12 --skip-chat-template", same)
		add(name+" as they are, opened", opened, base+" --num-prompts 12 --skip-chat-template", same)
		add(name+" opened", opened, base+" --num-prompts 12", opensOnce)
		add(name+" again", plain, base+" --num-prompts 40", again)
		add(name+" not again", plain, base+" --num-prompts 40 --no-oversample", same)
	}
	add("custom chat", plain, "--backend openai-chat --disable-shuffle --dataset-name custom --num-prompts 12 --dataset-path "+file, templatedTwice)
	fails("custom without lengths", "--backend openai --dataset-name custom --num-prompts 2 --custom-output-len -1 --dataset-path "+f.lines("short.jsonl", object{"prompt": "a b"}), "output_tokens")

	var questions, speeds []any
	for i := range 9 {
		category := []string{"writing", "math"}[i%2]
		questions = append(questions, object{"question_id": i, "category": category, "turns": []string{f.say(5 + i), f.say(3)}})
		speeds = append(speeds, object{"category": category, "messages": []object{{"role": "user", "content": f.say(5 + i)}, {"role": "assistant", "content": "x"}}})
	}
	spec := "--backend openai --disable-shuffle --dataset-name spec_bench --dataset-path " + f.lines("question.jsonl", questions...)
	add("spec_bench", plain, spec+" --num-prompts 9", same)
	add("spec_bench category", plain, spec+" --num-prompts 50 --no-oversample --spec-bench-category math --spec-bench-output-len 9", same)
	f.lines("speed/qualitative.jsonl", speeds...)
	f.lines("speed/throughput_1k.jsonl", speeds[3:]...)
	speed := "--backend openai --disable-shuffle --dataset-name speed_bench --dataset-path " + filepath.Join(f.dir, "speed")
	add("speed_bench", plain, speed+" --num-prompts 9", same)
	add("speed_bench as they are", plain, speed+" --num-prompts 9 --skip-chat-template", same)
	add("speed_bench subset", plain, speed+" --num-prompts 50 --no-oversample --speed-bench-category math --speed-bench-dataset-subset throughput_1k --speed-bench-output-len 9", same)

	burst := f.write("burst.csv", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"+
		"5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,30,7,37,API log\n118,GPT-4,25,0,25,API log\n120,GPT-4,31,8,39,Conversation log\n90,GPT-4,32,9,41,API log\n")
	add("burstgpt", plain, "--backend openai --dataset-name burstgpt --num-prompts 3 --dataset-path "+burst, rowsOf(3))
	add("burstgpt empty", plain, "--backend openai --dataset-name burstgpt --num-prompts 2 --no-oversample --dataset-path "+f.write("empty.csv",
		"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,0,18,18,API log\n6,GPT-4,7,9,16,API log\n"), leftOut)
	cases[len(cases)-1].fewer = 1
	add("burstgpt again", plain, "--backend openai --dataset-name burstgpt --num-prompts 600 --dataset-path "+burst, rowsOf(3))

	add("timed_trace", plain, "--backend vllm --dataset-name timed_trace --num-prompts 5 --dataset-path "+f.lines("timed.jsonl",
		object{"timestamp": 0, "input_length": 40, "output_length": 5, "hash_ids": []int{1, 2, 3}},
		object{"timestamp": 0.25, "input_length": 48, "output_length": 6, "hash_ids": []int{1, 2, 4}},
		object{"timestamp": 1.5, "input_length": 32, "output_length": 7, "hash_ids": []int{1, 5}},
		object{"timestamp": 1.5, "input_length": 3, "output_length": 1, "hash_ids": []int{9}},
		object{"timestamp": 2, "input_length": 40, "output_length": 5, "hash_ids": []int{1, 2, 3}}), replayed)
	add("timed_trace by other names", plain, "--backend vllm --dataset-name timed_trace --num-prompts 2 --timed-trace-chunk-hash-size 8 --timed-trace-sec-multiplier 0.001 "+
		"--timed-trace-label-timestamp t --timed-trace-label-input-length in --timed-trace-label-output-length out --timed-trace-label-hash-ids blocks --dataset-path "+
		f.lines("other.jsonl", object{"t": 0, "in": 16, "out": 5, "blocks": []int{1, 2}}, object{"t": 1500, "in": 20, "out": 6, "blocks": []int{1, 2, 4}}), replayed)
	add("timed_trace cut", plain, "--backend vllm --dataset-name timed_trace --num-prompts 2 --dataset-path "+f.lines("cut.jsonl",
		object{"timestamp": 3, "input_length": 40, "output_length": 5, "hash_ids": []int{1, 2}},
		object{"timestamp": 4.5, "input_length": 24, "output_length": 5, "hash_ids": []int{1, 2}}), cutShort)
	runCases(t, cases)
}

// again checks that all prompts are sent in order, and then some of them again.
func again(t *testing.T, ref, got []drawn) {
	known := map[string]int{}
	for i, s := range got {
		if first, ok := known[s.Text]; !ok {
			if known[s.Text] = i; len(known) != i+1 {
				t.Fatalf("request %d has a new prompt, behind repeats", i)
			}
		} else if d := cmp.Diff(got[first], s); d != "" {
			t.Errorf("request %d repeats %d otherwise:\n%s", i, first, d)
		}
	}
	same(t, ref[:len(known)], got[:len(known)])
	if n := slices.IndexFunc(ref[len(known):], func(d drawn) bool { _, ok := known[d.Text]; return !ok }); n >= 0 {
		t.Errorf("the reference has a prompt that tacho has not, request %d", n)
	}
	if len(known) == len(got) {
		t.Error("nothing was asked again")
	}
}

// opensOnce checks a chat template with a start token: the reference's prompts
// start with two.
func opensOnce(t *testing.T, ref, got []drawn) {
	for i := range ref {
		rest, ok := strings.CutPrefix(ref[i].Text, "<|begin|>")
		if !ok {
			t.Errorf("the reference no longer opens a text twice: %.60q", ref[i].Text)
		}
		ref[i].Text, ref[i].Input = rest, ref[i].Input-1
	}
	same(t, ref, got)
}

// templatedTwice checks chats: the reference applies the chat template to
// messages, and the server applies it again.
func templatedTwice(t *testing.T, ref, got []drawn) {
	for i := range ref {
		want := "<|im_start|>user\n" + got[i].Text + "<|im_end|>\n<|im_start|>assistant"
		if ref[i].Text != want || ref[i].Output != got[i].Output || ref[i].Input != got[i].Input {
			t.Errorf("request %d: %+v, the reference has %+v", i, got[i], ref[i])
		}
	}
}

// rowsOf checks that lengths come from rows: each row once while there are new
// ones, then random rows.
func rowsOf(rows int) func(t *testing.T, ref, got []drawn) {
	return func(t *testing.T, ref, got []drawn) {
		count := func(samples []drawn) map[[2]int]int {
			out := map[[2]int]int{}
			for _, s := range samples {
				out[[2]int{s.Input, s.Output}]++
			}
			return out
		}
		want, have := count(ref), count(got)
		if len(want) != rows || len(have) != rows {
			t.Errorf("rows %v, want %v", have, want)
		}
		alike(t, "prompt tokens", each(ref, inputOf), each(got, inputOf))
		alike(t, "output tokens", each(ref, outputOf), each(got, outputOf))
	}
}

// leftOut checks a row without a prompt, which tacho skips.
func leftOut(t *testing.T, ref, got []drawn) {
	if len(ref) != 2 || len(got) != 1 || min(ref[0].Input, ref[1].Input) != 0 || got[0].Input != 7 || got[0].Output != 9 {
		t.Errorf("%+v, the reference has %+v", got, ref)
	}
}

// cutShort checks the intended differences in trace replay: prompts have the
// length in the trace, equal blocks start with equal tokens even if cut, and
// times count from the first line.
func cutShort(t *testing.T, ref, got []drawn) {
	type replay struct {
		lengths [2]int
		shared  int
		times   [2]float64
	}
	of := func(s []drawn) replay {
		return replay{[2]int{s[0].Input, s[1].Input}, common(s[0].IDs, s[1].IDs), [2]float64{*s[0].At, *s[1].At}}
	}
	if have, want := of(got), (replay{[2]int{40, 24}, 24, [2]float64{0, 1.5}}); have != want {
		t.Errorf("%+v, want %+v", have, want)
	}
	if have, want := of(ref), (replay{[2]int{32, 24}, 16, [2]float64{3, 4.5}}); have != want {
		t.Errorf("the reference now has %+v, and had %+v", have, want)
	}
}

// replayed checks times, lengths and shared prefixes of a trace.
func replayed(t *testing.T, ref, got []drawn) {
	for i := range ref {
		if *ref[i].At != *got[i].At || ref[i].Input != got[i].Input || ref[i].Output != got[i].Output || len(got[i].IDs) != ref[i].Input {
			t.Errorf("request %d: at %v, %d in, %d out, want at %v, %d in, %d out", i, *got[i].At, got[i].Input, got[i].Output, *ref[i].At, ref[i].Input, ref[i].Output)
		}
		for k := range i {
			if want, have := common(ref[i].IDs, ref[k].IDs), common(got[i].IDs, got[k].IDs); want != have {
				t.Errorf("requests %d and %d share %d tokens, want %d", k, i, have, want)
			}
		}
	}
}
