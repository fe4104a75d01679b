//go:build vllm

package run_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

func (f *refFiles) png(width, height int) []byte {
	f.t.Helper()
	var b bytes.Buffer
	must.Do(f.t, png.Encode(&b, image.NewRGBA(image.Rect(0, 0, width, height))))
	return b.Bytes()
}

// wav returns silence with this many samples at 16 kHz.
func (f *refFiles) wav(samples int) []byte {
	head := struct {
		RIFF                 [4]byte
		Size                 uint32
		WAVE, Fmt            [4]byte
		FmtSize              uint32
		Format, Channels     uint16
		Rate, BytesPerSecond uint32
		Align, Bits          uint16
		Data                 [4]byte
		DataSize             uint32
	}{
		[4]byte([]byte("RIFF")), uint32(36 + 2*samples), [4]byte([]byte("WAVE")), [4]byte([]byte("fmt ")), 16, 1, 1, 16000, 32000, 2, 16,
		[4]byte([]byte("data")), uint32(2 * samples),
	}
	var b bytes.Buffer
	must.Do(f.t, binary.Write(&b, binary.LittleEndian, &head))
	return append(b.Bytes(), make([]byte, 2*samples)...)
}

// Images and audio files are sent as in the reference.
func TestReferenceMedia(t *testing.T) {
	plain, _ := makeTokenizers(t, "bytes")
	f := newRefFiles(t)
	one, two := f.write("one.png", string(f.png(8, 4))), f.write("two.png", string(f.png(5, 9)))
	long, short := f.write("long.wav", string(f.wav(40000))), f.write("short.wav", string(f.wav(8000)))
	images := f.lines("images.jsonl",
		object{"prompt": "How many?", "image_files": []string{one, two}},
		object{"prompt": "Which?", "image_files": []string{"http://127.0.0.1/x.png"}},
		object{"content": []object{{"type": "text", "text": "Compare "}, {"type": "image", "image": one}, {"type": "text", "text": " and "}, {"type": "image_url", "image_url": object{"url": two}}}})
	sounds := f.lines("sounds.jsonl", object{"prompt": "What is said?", "audio": long, "output_tokens": 7}, object{"prompt": "And here?", "audio": short, "output_tokens": 9})
	words := func(line string) []string {
		return append([]string{"--tokenizer", plain, "--disable-shuffle"}, strings.Fields(line)...)
	}
	base := "--backend openai-chat --dataset-name custom_image --num-prompts 3 --custom-output-len 20 --dataset-path "
	seen := func(question, image string) object {
		return object{"image": image, "conversations": []object{{"from": "human", "value": question}, {"from": "gpt", "value": f.say(9)}}}
	}
	talks := f.lines("talks.json", []object{seen(f.say(20), one), seen("x", one), seen(f.say(9), "http://127.0.0.1/x.png")})
	runCases(t, []refCase{
		{name: "sharegpt", words: words("--backend openai-chat --dataset-name sharegpt --num-prompts 5 --no-oversample --dataset-path " + talks), check: sentAlong},
		{name: "custom_image", words: words(base + images), check: sentAlong},
		{name: "custom_image sent along", words: words("--custom-ensure-client-side-data --backend openai-chat --dataset-name custom_image --num-prompts 2 --dataset-path " + f.lines("local.jsonl",
			object{"prompt": "How many?", "image_files": []string{one, two}}, object{"prompt": "Which?", "image_files": []string{two}})), check: sentAlong},
		{name: "custom_audio chat", words: words("--enable-multimodal-chat --backend openai-chat --dataset-name custom_audio --num-prompts 2 --custom-output-len -1 --dataset-path " + sounds), check: sentAlong},
		{name: "custom_audio", words: words("--backend openai-audio --dataset-name custom_audio --num-prompts 2 --custom-output-len -1 --dataset-path " + sounds), check: alone},
	})
}

// sentAlong checks media sent with a text. The server counts their tokens.
func sentAlong(t *testing.T, ref, got []drawn) {
	for i := range ref {
		parts := ref[i].Parts
		if ref[i].Text != "" {
			parts = slices.Concat([]string{"text " + ref[i].Text}, parts)
		}
		if d := cmp.Diff(parts, got[i].Parts); d != "" || ref[i].Output != got[i].Output || got[i].Input != 0 {
			t.Errorf("request %d: %d in, %d out, want %d out (-reference +tacho):\n%s", i, got[i].Input, got[i].Output, ref[i].Output, d)
		}
	}
}

// alone checks audio for transcription, which is sent without text.
func alone(t *testing.T, ref, got []drawn) {
	for i := range ref {
		if d := cmp.Diff(ref[i].Parts, got[i].Parts); d != "" || ref[i].Output != got[i].Output || got[i].Text != "" {
			t.Errorf("request %d: %d out, want %d (-reference +tacho):\n%s", i, got[i].Output, ref[i].Output, d)
		}
	}
}

// Hub datasets known to the reference by name produce the same requests.
func TestReferenceHub(t *testing.T) {
	plain, _ := makeTokenizers(t, "bytes")
	f := newRefFiles(t)
	var cases []refCase
	// A dataset is read from a local directory. For datasets the reference
	// knows by path only, the directory replaces the name.
	add := func(what, set, line string, check func(t *testing.T, ref, got []drawn), byPath bool) {
		words := append([]string{"--tokenizer", plain, "--dataset-name", "hf", "--disable-shuffle"}, strings.Fields(line)...)
		dir := filepath.Join(f.dir, filepath.Base(set))
		c := refCase{name: strings.TrimSpace(filepath.Base(set) + " " + what), check: check}
		if byPath {
			c.words = slices.Concat(words, []string{"--dataset-path", set})
			c.folders = map[string]string{set: dir}
			c.ours = []string{"--dataset-path", dir, "--hf-name", set}
		} else {
			c.words = slices.Concat(words, []string{"--dataset-path", dir, "--hf-name", set})
		}
		cases = append(cases, c)
	}
	rows := func(n int, row func(i int) object) (out []any) {
		for i := range n {
			out = append(out, row(i))
		}
		return out
	}
	const all, openai = "--num-prompts 500 --no-oversample", "--backend openai --num-prompts 500 --no-oversample"

	f.lines("InstructCoder/train.jsonl", rows(5, func(i int) object {
		return object{"instruction": f.say(5 + i), "input": f.say(20), "output": f.say(9)}
	})...)
	add("", "likaixin/InstructCoder", openai, same, false)
	add("asked", "likaixin/InstructCoder", openai+" --hf-output-len 31", same, false)
	add("as they are", "likaixin/InstructCoder", openai+" --skip-chat-template", same, false)

	f.lines("mt-bench/train.jsonl", rows(5, func(i int) object { return object{"turns": []string{f.say(5 + i), f.say(3)}, "category": "math"} })...)
	add("", "philschmid/mt-bench", openai, same, false)
	f.lines("openai_humaneval/test.jsonl", rows(5, func(i int) object {
		return object{"prompt": f.say(5 + i), "canonical_solution": f.say(7), "test": f.say(2), "entry_point": "f"}
	})...)
	add("", "openai/openai_humaneval", openai, same, false)
	f.lines("gsm8k/test.jsonl", rows(5, func(i int) object { return object{"question": f.say(5 + i), "answer": f.say(7)} })...)
	f.write("gsm8k/README.md", "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: test.jsonl\n---\n")
	add("", "openai/gsm8k", openai, same, false)

	f.lines("aimo-validation-aime/train.jsonl", rows(40, func(i int) object {
		return object{"problem": f.say(1 + i*i), "solution": f.say(1 + 2*i), "answer": "7", "url": "x"}
	})...)
	add("", "AI-MO/aimo-validation-aime", openai, same, false)
	add("asked", "AI-MO/aimo-validation-aime", openai+" --hf-output-len 3", same, false)

	f.lines("ShareGPT_Vicuna_unfiltered/train.jsonl", rows(60, func(i int) object {
		turns := []object{{"from": "human", "value": f.say(1 + i*i/3)}, {"from": "gpt", "value": f.say(1 + i*3)}, {"from": "human", "value": "x"}}
		switch i % 5 {
		case 1:
			turns = turns[:1]
		case 3:
			turns = []object{turns[1], turns[0]}
		}
		return object{"id": "x", "conversations": turns}
	})...)
	add("", "Aeala/ShareGPT_Vicuna_unfiltered", openai+" --hf-split train", same, false)
	add("asked", "Aeala/ShareGPT_Vicuna_unfiltered", openai+" --hf-split train --hf-output-len 5", same, false)

	f.lines("mlperf-inference-llama2-data/train.jsonl", rows(30, func(i int) object {
		return object{"system_prompt": f.say(9), "question": f.say(1 + i*i), "output": f.say(1 + 3*i)}
	})...)
	add("", "mgoin/mlperf-inference-llama2-data", openai, same, false)
	add("asked", "mgoin/mlperf-inference-llama2-data", openai+" --hf-output-len 900", same, false)

	f.lines("zeta/train.jsonl", rows(5, func(i int) object {
		return object{"events": f.say(9), "input": f.say(9 + i), "output": "ab <|editable_region_start|>\n" + f.say(5+i)}
	})...)
	add("", "zed-industries/zeta", openai, otherWords, false)
	f.lines("edit_5k_char/train.jsonl", rows(8, func(i int) object {
		return object{"code": f.say(9 + i), "change_request": f.say(5), "norm_distance": float64(i) / 10}
	})...)
	add("", "vdaita/edit_5k_char", openai+" --blazedit-min-distance 0.2 --blazedit-max-distance 0.5", otherWords, true)

	f.functions("Berkeley-Function-Calling-Leaderboard")
	add("", "gorilla-llm/Berkeley-Function-Calling-Leaderboard", "--backend openai-chat "+all, tooled, true)
	add("first", "gorilla-llm/Berkeley-Function-Calling-Leaderboard", "--backend openai-chat --num-prompts 4", tooled, true)

	f.pictured()
	chat := "--backend openai-chat " + all
	add("", "Lin-Chen/MMStar", chat, sentAlong, false)
	add("", "lmarena-ai/VisionArena-Chat", chat, sentAlong, false)
	add("", "lmms-lab/LLaVA-OneVision-Data", chat+" --hf-split train", sentAlong, false)
	f.lines("MMVU/validation.jsonl", rows(4, func(i int) object {
		return object{"question": f.say(5 + i), "choices": object{"A": f.say(2), "B": f.say(1), "C": "", "D": "d", "E": ""}, "video": "https://example.org/v.mp4"}
	})...)
	add("", "yale-nlp/MMVU", chat, texts, true)
	add("", "openslr/librispeech_asr", "--backend openai-audio "+all, alone, false)
	add("by length", "openslr/librispeech_asr", "--backend openai-audio --asr-min-audio-len-sec 0.3 --asr-max-audio-len-sec 0.8 "+all, alone, false)
	runCases(t, cases)
}

// functions writes categories of different sizes.
func (f *refFiles) functions(dir string) {
	for category, n := range map[string]int{"simple": 5, "live_simple": 2, "multiple": 3} {
		var rows []any
		for range n {
			row := object{
				"id": category, "question": [][]object{{{"role": "system", "content": f.say(2)}, {"role": "user", "content": f.say(6)}}},
				"function": []object{{"name": "f.g", "description": f.say(3), "parameters": object{"type": "dict", "required": []string{"h"}, "properties": object{
					"h": object{"type": "float"}, "t": object{"type": "tuple", "items": object{"type": "any"}},
				}}}},
			}
			rows = append(rows, row)
		}
		f.lines(dir+"/BFCL_v3_"+category+".json", rows...)
	}
}

// pictured writes datasets with media in Parquet rows.
func (f *refFiles) pictured() {
	cell := func(data []byte, path string) object { return object{"bytes": data, "path": path} }
	f.write("MMStar/README.md", "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: val\n    path: val.parquet\n---\n")
	f.lines("MMStar/val.rows", object{"question": "Which colour is it?\nOptions: A: red, B: blue", "image": cell(f.png(7, 3), "a.png")},
		object{"question": "What is it?", "image": cell(f.png(4, 4), "b.png")})
	for i, size := range []int{7, 2} {
		f.lines(fmt.Sprintf("VisionArena-Chat/train-%d.rows", i), object{
			"conversation": [][]object{{{"role": "user", "content": f.say(5)}}, {{"role": "assistant", "content": "A box."}}},
			"images":       []object{cell(f.png(size, 3), "a.png")},
		})
	}
	seen := func(question, answer string, width int) object {
		return object{"conversations": []object{{"from": "human", "value": question}, {"from": "gpt", "value": answer}}, "image": cell(f.png(width, 3), "a.png")}
	}
	f.lines("LLaVA-OneVision-Data/train.rows", seen("What do you see in this picture here?", "There is a small box in the picture.", 7), seen("x", "y", 7),
		seen("How many boxes do you see in this one?", "Some boxes, I cannot count them.", 5))
	f.lines("librispeech_asr/train.rows", object{"audio": cell(f.wav(3200), "a.wav"), "text": "one"},
		object{"audio": cell(f.wav(8000), "b.wav"), "text": "two"}, object{"audio": cell(f.wav(24000), "c.wav"), "text": "three"})
	runPython(f.t, "parquet", f.dir)
}

// otherWords checks datasets with different prompt wording in tacho: same rows,
// same order, same output lengths.
func otherWords(t *testing.T, ref, got []drawn) {
	if want, have := each(ref, outputOf), each(got, outputOf); !slices.Equal(want, have) {
		t.Errorf("%v tokens out, want %v", have, want)
	}
	for i := range ref {
		if ref[i].Text == got[i].Text {
			t.Errorf("request %d is the same in words, and might be held against the reference word by word", i)
		}
	}
}

// texts checks datasets of which tacho sends only the text.
func texts(t *testing.T, ref, got []drawn) {
	for i := range ref {
		if ref[i].Text != got[i].Text || ref[i].Output != got[i].Output {
			t.Errorf("request %d: %q, %d out, want %q, %d out", i, got[i].Text, got[i].Output, ref[i].Text, ref[i].Output)
		}
	}
}

// tooled checks function calls.
func tooled(t *testing.T, ref, got []drawn) {
	for i := range ref {
		ref[i].Text = "" // for people only
		ref[i].Input, got[i].Input = 0, 0
	}
	same(t, ref, got)
}
