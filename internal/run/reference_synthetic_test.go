//go:build vllm

package run_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // format of generated images
	_ "image/png"  // possible format of files
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// Synthetic datasets have the same prompt lengths and shared prefixes as in the
// reference.
func TestReferenceSynthetic(t *testing.T) {
	plain, opened := makeTokenizers(t, "ascii")
	words := func(tokenizer, line string) []string {
		return append([]string{"--tokenizer", tokenizer}, strings.Fields(line)...)
	}
	lengths := func(t *testing.T, ref, got []drawn) {
		alike(t, "prompt tokens", each(ref, inputOf), each(got, inputOf))
		alike(t, "output tokens", each(ref, outputOf), each(got, outputOf))
	}
	// The reference's prompt length excludes the start token, which the server
	// counts.
	opens := func(t *testing.T, ref, got []drawn) {
		for i := range ref {
			ref[i].Input++
		}
		lengths(t, ref, got)
		for i, ids := range tokensOf(t, opened, got) {
			if len(ids) != got[i].Input {
				t.Fatalf("prompt %d has %d tokens, not %d", i, len(ids), got[i].Input)
			}
		}
	}
	shares := func(prefix int) func(t *testing.T, ref, got []drawn) {
		return func(t *testing.T, ref, got []drawn) {
			lengths(t, ref, got)
			for who, samples := range map[string][]drawn{"the reference": ref, "tacho": got} {
				prompts := tokensOf(t, plain, samples)
				for i, p := range prompts[1:] {
					// The suffix may merge with the last token of the prefix.
					if n := common(prompts[0], p); n < prefix-2 || n > prefix+4 {
						t.Errorf("%s: prompts 0 and %d share %d tokens, want %d", who, i+1, n, prefix)
						break
					}
				}
			}
		}
	}
	repeats := func(prefixes, prefix int, shuffled bool) func(t *testing.T, ref, got []drawn) {
		return func(t *testing.T, ref, got []drawn) {
			lengths(t, ref, got)
			want := groupSizes(tokensOf(t, plain, ref), prefix)
			sizes := groupSizes(tokensOf(t, plain, got), prefix)
			if len(want) != prefixes || len(sizes) != prefixes || !shuffled && !slices.Equal(want, sizes) ||
				!slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(sizes))) {
				t.Errorf("prefixes have %v prompts, want %v", sizes, want)
			}
		}
	}
	var cases []refCase
	add := func(name string, words []string, check func(t *testing.T, ref, got []drawn), ours ...string) {
		cases = append(cases, refCase{name: name, words: words, check: check, ours: ours})
	}
	for _, text := range [][]string{nil, {"--prompt-text"}} {
		as := fmt.Sprint(text)
		add("random"+as, words(plain, "--dataset-name random --num-prompts 50 --random-input-len 100 --random-output-len 40"), lengths, text...)
		add("random ratio"+as, words(plain, "--dataset-name random --num-prompts 2000 --random-input-len 41 --random-output-len 17 --random-range-ratio 0.37"), lengths, text...)
		add("random ratios"+as, words(plain, `--dataset-name random --num-prompts 2000 --random-input-len 40 --random-output-len 9 --random-range-ratio {"input":0.1,"output":0.95}`), lengths, text...)
		add("random short answers"+as, words(plain, `--dataset-name random --num-prompts 2000 --random-input-len 20 --random-output-len 1 --random-range-ratio 0.5`), lengths, text...)
		add("random prefix"+as, words(plain, "--dataset-name random --num-prompts 600 --random-input-len 30 --random-output-len 9 --random-prefix-len 50 --random-range-ratio 0.3"), shares(50), text...)
		add("prefix_repetition"+as, words(plain, "--dataset-name prefix_repetition --num-prompts 47 --prefix-repetition-num-prefixes 5 --prefix-repetition-prefix-len 40 --prefix-repetition-suffix-len 25 --prefix-repetition-output-len 7"), repeats(5, 40, true), text...)
		add("prefix_repetition in order"+as, words(plain, "--dataset-name prefix_repetition --num-prompts 24 --prefix-repetition-num-prefixes 4 --prefix-repetition-prefix-len 40 --prefix-repetition-suffix-len 25 --disable-shuffle"), repeats(4, 40, false), text...)
	}
	add("random opened", words(opened, "--dataset-name random --num-prompts 50 --random-input-len 100 --random-output-len 40 --backend openai"), opens, "--prompt-text")
	add("random batches", words(plain, "--dataset-name random --num-prompts 25 --random-batch-size 10 --random-input-len 30 --random-range-ratio 0.2 --backend openai-embeddings"), batches)
	add("random-rerank", words(plain, "--dataset-name random-rerank --num-prompts 25 --random-batch-size 10 --random-input-len 30 --backend vllm-rerank"), batches)
	add("random-rerank ratio", words(plain, "--dataset-name random-rerank --num-prompts 2000 --random-batch-size 1 --random-input-len 50 --random-range-ratio 0.4 --backend vllm-rerank"), reranked(plain))
	add("random-rerank embedded", words(plain, "--dataset-name random-rerank --no-reranker --num-prompts 25 --random-batch-size 10 --random-input-len 30 --backend openai-embeddings"), batches)
	mm := "--dataset-name random-mm --backend openai-chat --random-input-len 20 --random-output-len 5 --random-range-ratio 0.5 "
	add("random-mm", words(plain, mm+`--num-prompts 600 --random-mm-base-items-per-request 3 --random-mm-num-mm-items-range-ratio 1 --random-mm-limit-mm-per-prompt {"image":3,"video":1} --random-mm-bucket-config {(16,24,1):0.5,(32,16,1):0.2,(16,32,3):0.3,(8,8,1):0.0}`), pictures)
	add("random-mm within limits", words(plain, mm+`--num-prompts 600 --random-mm-base-items-per-request 4 --random-mm-num-mm-items-range-ratio 0.3 --random-mm-bucket-config {(16,24,1):3,(32,16,1):1}`), pictures)
	cases = append(cases, refCase{
		name: "random-mm of too many", fails: "at most 2 are allowed",
		words: words(plain, mm+`--num-prompts 6 --random-mm-base-items-per-request 3 --random-mm-limit-mm-per-prompt {"image":2,"video":1} --random-mm-bucket-config {(16,24,1):1}`),
	}, refCase{
		name: "random too short", fails: "too short",
		words: words(plain, "--dataset-name random --num-prompts 5 --random-input-len 1 --random-range-ratio 0.5"),
	}, refCase{
		name: "random ratio of 1", fails: "range ratio",
		words: words(plain, "--dataset-name random --num-prompts 5 --random-input-len 10 --random-range-ratio 1"),
	}, refCase{
		name: "prefix_repetition of too few", fails: "each prefix needs at least one",
		words: words(plain, "--dataset-name prefix_repetition --num-prompts 3 --prefix-repetition-num-prefixes 4"),
	})
	runCases(t, cases)
}

// pictures checks number and kind of the media items of random-mm.
func pictures(t *testing.T, ref, got []drawn) {
	for i := range got { // the text is one part
		got[i].Parts = got[i].Parts[1:]
	}
	alike(t, "output tokens", each(ref, outputOf), each(got, outputOf))
	alike(t, "items", each(ref, func(d *drawn) int { return len(d.Parts) }), each(got, func(d *drawn) int { return len(d.Parts) }))
	kinds := map[string]bool{}
	for _, d := range slices.Concat(ref, got) {
		for _, p := range d.Parts {
			kinds[p] = true
		}
	}
	for kind := range kinds {
		count := func(d *drawn) (n int) {
			for _, p := range d.Parts {
				if p == kind {
					n++
				}
			}
			return n
		}
		if d := twoSample(each(ref, count), each(got, count)); d > 1 {
			t.Errorf("%s: another distribution: %.2f times the distance that chance allows", kind, d)
		}
	}
}

// groupSizes returns the sizes of groups of prompts with the same first tokens,
// in order of appearance. The last tokens of a prefix may merge with the
// suffix.
func groupSizes(prompts [][]int32, prefix int) []int {
	var firsts [][]int32
	var sizes []int
	for _, p := range prompts {
		at := slices.IndexFunc(firsts, func(f []int32) bool { return common(f, p) >= prefix-2 })
		if at < 0 {
			at, firsts, sizes = len(firsts), append(firsts, p), append(sizes, 0)
		}
		sizes[at]++
	}
	return sizes
}

// batches checks requests with several prompts.
func batches(t *testing.T, ref, got []drawn) {
	count := func(d *drawn) int { return max(len(d.Texts), len(d.Messages)) }
	if want, have := each(ref, count), each(got, count); !slices.Equal(want, have) {
		t.Errorf("%v prompts in the requests, want %v", have, want)
	}
	sum := func(samples []drawn) (n float64) {
		for _, v := range each(samples, inputOf) {
			n += float64(v)
		}
		return n
	}
	if a, b := sum(ref), sum(got); a < b*0.95 || a > b*1.05 {
		t.Errorf("%v tokens in all, want about %v", b, a)
	}
}

// reranked checks that a query is drawn once and each document separately.
func reranked(tokenizer string) func(t *testing.T, ref, got []drawn) {
	return func(t *testing.T, ref, got []drawn) {
		split := func(samples []drawn) (query int, documents []int) {
			var queries, docs []drawn
			for _, s := range samples {
				texts := s.Texts
				for _, m := range s.Messages {
					texts = append(texts, m.Content)
				}
				queries, docs = append(queries, drawn{Text: texts[0]}), append(docs, drawn{Text: texts[1]})
			}
			q := tokensOf(t, tokenizer, queries)
			for i := range q {
				if !slices.Equal(q[i], q[0]) {
					t.Error("the query is not the same for all")
				}
			}
			for _, d := range tokensOf(t, tokenizer, docs) {
				documents = append(documents, len(d))
			}
			return len(q[0]), documents
		}
		for who, samples := range map[string][]drawn{"the reference": ref, "tacho": got} {
			query, documents := split(samples)
			rest := 50 - query - 1
			low, high := rest*6/10, (rest*14+9)/10
			if query < 14 || query > 34 || slices.Min(documents) != low || slices.Max(documents) != high {
				t.Errorf("%s: a query of %d tokens, documents from %d to %d, want %d to %d", who, query, slices.Min(documents), slices.Max(documents), low, high)
			}
		}
	}
}

// partsOf describes the parts of a message in the reference's format.
func partsOf(t *testing.T, message json.RawMessage, audioS float64) (out []string) {
	t.Helper()
	var m struct {
		Content []struct {
			Type, Text string
			Image      struct{ URL string } `json:"image_url"`
			Video      struct{ URL string } `json:"video_url"`
		}
	}
	must.Do(t, json.Unmarshal(message, &m))
	for _, p := range m.Content {
		switch p.Type {
		case "text":
			out = append(out, "text "+p.Text)
		case "image_url":
			out = append(out, pictureOf(t, p.Image.URL))
		case "video_url":
			out = append(out, filmOf(t, p.Video.URL))
		default:
			out = append(out, fmt.Sprintf("audio %.3f", audioS))
		}
	}
	return out
}

func pictureOf(t *testing.T, url string) string {
	t.Helper()
	_, data, ok := strings.Cut(url, ";base64,")
	if !ok {
		return url
	}
	raw := must.Get(base64.StdEncoding.DecodeString(data))(t)
	c, _, err := image.DecodeConfig(bytes.NewReader(raw))
	must.Do(t, err)
	return fmt.Sprintf("image %dx%d", c.Width, c.Height)
}

// filmOf returns size and frame count of a generated video, which is a sequence
// of JPEGs.
func filmOf(t *testing.T, url string) string {
	t.Helper()
	_, data, ok := strings.Cut(url, ";base64,")
	if !ok {
		return "video " + url
	}
	raw := must.Get(base64.StdEncoding.DecodeString(data))(t)
	begin := []byte("\xff\xd8\xff")
	c, _, err := image.DecodeConfig(bytes.NewReader(raw[bytes.Index(raw, begin):]))
	must.Do(t, err)
	return fmt.Sprintf("video %dx%dx%d", c.Width, c.Height, bytes.Count(raw, begin))
}
