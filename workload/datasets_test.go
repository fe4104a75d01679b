package workload_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // for the images of random_mm
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

func words(n int, word string) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }

// share returns a ShareGPT conversation with a question and an answer of the given number
// of words. byWord counts one more token than words, like a start token.
func share(question, answer int) string {
	return fmt.Sprintf(`{"id":"x","conversations":[{"from":"human","value":%q},{"from":"gpt","value":%q},{"from":"human","value":"more"}]}`,
		words(question-1, fmt.Sprintf("q%d", question)), words(answer-1, "a"))
}

// TestShareGPTFilters checks the filters of the reference: prompts of 4 to 1024 tokens,
// answers of at least 4, together at most 2048. If an output length is given, the answer
// does not matter.
func TestShareGPTFilters(t *testing.T) {
	lines := []string{
		share(3, 50), share(4, 4), share(50, 3), share(1024, 1024), share(1025, 10), share(1000, 1049), share(10, 20),
		`{"conversations":[{"from":"human","value":"alone"}]}`,
	}
	path := write(t, "sharegpt.json", "["+strings.Join(lines, ",\n")+"]")
	lengths := func(o workload.Options) (out [][2]int) {
		o.Path = path
		w := make1(t, "sharegpt", o)
		for i := range uint64(100) {
			s, err := w.Session(i)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			q := s.Turns[0].Request
			out = append(out, [2]int{q.InputTokens, q.MaxTokens})
		}
		return out
	}
	if got, want := lengths(workload.Options{}), [][2]int{{4, 4}, {1024, 1024}, {10, 20}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := lengths(workload.Options{Output: workload.Fixed(1024)}), [][2]int{{4, 1024}, {50, 1024}, {1024, 1024}, {1000, 1024}, {10, 1024}}; !slices.Equal(got, want) {
		t.Errorf("with an output length %v, want %v", got, want)
	}
	// It stops at the requested number and oversamples up to it.
	if got := lengths(workload.Options{Count: 2}); len(got) != 2 {
		t.Errorf("%d of 2", len(got))
	}
	if got := lengths(workload.Options{Count: 9, Repeat: true}); len(got) != 9 {
		t.Errorf("%d of 9", len(got))
	}
	shuffled := lengths(workload.Options{Shuffle: true, Seed: 3})
	if len(shuffled) != 3 || slices.Equal(shuffled, lengths(workload.Options{})) && slices.Equal(shuffled, lengths(workload.Options{Shuffle: true, Seed: 4})) {
		t.Errorf("shuffled %v", shuffled)
	}
}

// TestSonnetLines checks the rule of the reference: the average line determines the
// number of lines, the first lines are shared, and no prompt is longer than requested.
func TestSonnetLines(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "line%d %s\n", i, words(8+i%3, "w")) // 9 to 11 words, 10 on average
	}
	w := make1(t, "sonnet", workload.Options{
		Path: write(t, "poem.txt", text.String()), Input: workload.Fixed(110), Output: workload.Fixed(5), Prefix: 50, Count: 30,
	})
	// The base has 10 words and a start token; a line has 10.02 tokens on average.
	fifth := map[string]bool{}
	for i, q := range requests(t, w, 30) {
		lines := strings.Split(strings.TrimSpace(q.Input.Text), "\n")
		if lines[0] != "Pick as many lines as you can from these poem lines:" || len(lines) != 1+10 {
			t.Fatalf("%d lines, want the instruction and round((110-12)/10.02) = 10", len(lines))
		}
		for k := range 4 { // round((50-12)/10.02)
			if !strings.HasPrefix(lines[1+k], fmt.Sprintf("line%d ", k)) {
				t.Errorf("shared line %d is %q", k, lines[1+k])
			}
		}
		fifth[lines[5]] = true
		if q.InputTokens > 110 || q.InputTokens != len(strings.Fields(q.Input.Text))+1 {
			t.Errorf("prompt %d has %d tokens", i, q.InputTokens)
		}
	}
	if len(fifth) < 10 {
		t.Errorf("the line behind the shared ones is one of %d", len(fifth))
	}
	if qs := requests(t, make1(t, "sonnet", workload.Options{Input: workload.Fixed(550), Output: workload.Fixed(150), Prefix: 200}), 2); qs[0].Input.Text == qs[1].Input.Text {
		t.Error("the poems that come along give one prompt only")
	}
	k, _ := workload.Find("sonnet")
	if _, err := k.New(t.Context(), workload.Options{Counter: &byWord{}, Input: workload.Fixed(5), Output: workload.Fixed(1)}); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("%v", err)
	}
}

// TestPrefixRepetition checks that every prefix gets the same number of prompts, that the
// remainder is dropped, and that all lengths are exact.
func TestPrefixRepetition(t *testing.T) {
	inOrder := requests(t, make1(t, "prefix_repetition", workload.Options{IDs: true, Count: 20, Prefix: 5, Prefixes: 4, Input: workload.Fixed(2), Output: workload.Fixed(1)}), 20)
	for i, q := range inOrder {
		if same := slices.Equal(q.Input.IDs[:5], inOrder[i/5*5].Input.IDs[:5]); !same {
			t.Errorf("not shuffled, prompt %d is of another prefix than the first of its five", i)
		}
	}
	for _, ids := range []bool{true, false} {
		w := make1(t, "prefix_repetition", workload.Options{
			Shuffle: true, IDs: ids, Count: 103, Prefix: 20, Prefixes: 10, Input: workload.Fixed(7), Output: workload.Fixed(3), Seed: 5,
		})
		if n := w.Notes(); len(n) != 1 || !strings.Contains(n[0], "3 of 103 prompts were dropped") {
			t.Errorf("%q", n)
		}
		prefixes, prompts := map[string]int{}, map[string]bool{}
		var order []string
		for _, q := range requests(t, w, 100) {
			units := strings.Fields(q.Input.Text)
			if ids {
				units = nil
				for _, id := range q.Input.IDs {
					units = append(units, fmt.Sprint(id))
				}
			}
			want := 27
			if !ids {
				want-- // the start token
			}
			if len(units) != want || q.InputTokens != 27 || q.MaxTokens != 3 {
				t.Fatalf("%d units, %d tokens", len(units), q.InputTokens)
			}
			p := strings.Join(units[:20], " ")
			prefixes[p]++
			order = append(order, p)
			prompts[strings.Join(units, " ")] = true
		}
		if len(prefixes) != 10 || len(prompts) != 100 || slices.IsSorted(order) {
			t.Errorf("%d prefixes, %d different prompts", len(prefixes), len(prompts))
		}
		for p, n := range prefixes {
			if n != 10 {
				t.Errorf("%d prompts begin with %.30s", n, p)
			}
		}
		if _, err := w.Session(100); !errors.Is(err, io.EOF) {
			t.Errorf("past the end: %v", err)
		}
	}
}

// twofold counts two tokens for each word and one start token.
type twofold struct{ byWord }

func (*twofold) Count(_ context.Context, s string) (int, error) {
	return 2*len(strings.Fields(s)) + 1, nil
}

// TestPrefixesAreCountedInTokens checks that the length of a prefix is in tokens, not
// words. Otherwise prompts of long words would consist of the prefix alone.
func TestPrefixesAreCountedInTokens(t *testing.T) {
	w := make1(t, "random", workload.Options{Input: workload.Fixed(21), Output: workload.Fixed(1), Prefix: 20, Counter: &twofold{}, Count: 9})
	first := strings.Fields(requests(t, w, 1)[0].Input.Text)
	for i, q := range requests(t, w, 9) {
		units := strings.Fields(q.Input.Text)
		if q.InputTokens != 41 || !slices.Equal(units[:10], first[:10]) || i > 0 && slices.Equal(units[10:12], first[10:12]) {
			t.Errorf("prompt %d has %d tokens: %s", i, q.InputTokens, q.Input.Text)
		}
	}
}

// TestShortOutputs checks a length of 0 to 2 tokens: 0 is never requested, and 1 and 2
// are equally likely.
func TestShortOutputs(t *testing.T) {
	w := make1(t, "random", workload.Options{IDs: true, Input: workload.Fixed(9), Output: workload.Fixed(1), OutRatio: 0.5})
	counts := map[int]int{}
	for _, q := range requests(t, w, 10_000) {
		counts[q.MaxTokens]++
	}
	if len(counts) != 2 || counts[1] < 4800 || counts[1] > 5200 {
		t.Errorf("%v", counts)
	}
}

// TestRandomPrefixesByZipf checks that the k-th prefix is 1/k^s as popular as the first.
func TestRandomPrefixesByZipf(t *testing.T) {
	w := make1(t, "random", workload.Options{IDs: true, Input: workload.Fixed(3), Output: workload.Fixed(1), Prefix: 4, Prefixes: 5, Zipf: 1, Seed: 9})
	counts := map[string]int{}
	for _, q := range requests(t, w, 20_000) {
		counts[fmt.Sprint(q.Input.IDs[:4])]++
	}
	var got []int
	for _, n := range counts {
		got = append(got, n)
	}
	slices.Sort(got)
	slices.Reverse(got)
	h5 := 1 + 1.0/2 + 1.0/3 + 1.0/4 + 1.0/5
	for k, n := range got {
		want := 20_000 / h5 / float64(k+1)
		if len(got) != 5 || float64(n) < want*0.93 || float64(n) > want*1.07 {
			t.Errorf("prefix %d of %d came %d times, want about %.0f", k, len(got), n, want)
		}
	}
}

const burstCSV = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
	"5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,230,1317,Conversation log\n" +
	"118,GPT-4,417,0,417,API log\n119,GPT-4,12,8,20,API log\n"

// TestBurstGPTRows checks that only rows of GPT-4 with an answer are used.
func TestBurstGPTRows(t *testing.T) {
	path := write(t, "burst.csv", burstCSV)
	w := make1(t, "burstgpt", workload.Options{IDs: true, Path: path})
	var got []string
	for _, q := range requests(t, w, 2) {
		got = append(got, fmt.Sprint(q.InputTokens, q.MaxTokens))
	}
	slices.Sort(got)
	if want := []string{"1087 230", "12 8"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := w.Session(2); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	requests(t, make1(t, "burstgpt", workload.Options{IDs: true, Path: path, Count: 9, Repeat: true}), 9)
	// Prompts are prepared for the rows of the file, not for all requests.
	requests(t, make1(t, "burstgpt", workload.Options{Path: path, Counter: &byWord{}, Count: 9}), 2)
}

func TestSpeculativeBenchmarks(t *testing.T) {
	path := write(t, "question.jsonl", `{"question_id":1,"category":"writing","turns":["write a poem","again"]}`+"\n"+`{"category":"math","turns":["add"]}`+"\n")
	w := make1(t, "spec_bench", workload.Options{Path: path, Category: "writing", Output: workload.Fixed(9)})
	if q := requests(t, w, 1)[0]; q.Input.Text != "write a poem" || q.MaxTokens != 9 || q.Labels[0].Value != "writing" {
		t.Errorf("%+v", q)
	}
	dir := filepath.Dir(write(t, "qualitative.jsonl", `{"category":"x","messages":[{"role":"user","content":"hello there"}]}`+"\n"))
	w = make1(t, "speed_bench", workload.Options{Path: dir, Subset: "qualitative", Output: workload.Fixed(9)})
	if q := requests(t, w, 1)[0]; q.Input.Text != "hello there" {
		t.Errorf("%+v", q)
	}
	long := filepath.Dir(write(t, "throughput_1k.jsonl", fmt.Sprintf(`{"category":"x","messages":[{"role":"user","content":%q}]}`+"\n"+`{"turns":["short"]}`+"\n", words(200, "word"))))
	w = make1(t, "speed_bench", workload.Options{Path: long, Subset: "throughput_1k", Output: workload.Fixed(9), MaxInput: 40})
	for i, want := range []int{40, 2} {
		if q := requests(t, w, 2)[i]; q.InputTokens != want || len(strings.Fields(q.Input.Text)) != want-1 {
			t.Errorf("prompt %d has %d tokens, want %d: %q", i, q.InputTokens, want, q.Input.Text)
		}
	}
}

// TestHuggingFaceColumn checks that the named column is the prompt, as text or as a
// conversation.
func TestHuggingFaceColumn(t *testing.T) {
	row := `{"question":"not this","mine":"this","talk":[{"role":"user","content":"hello"},{"role":"assistant","content":"yes"}],"n":3}`
	path := write(t, "rows.jsonl", row)
	for column, want := range map[string]string{"mine": "this", "talk": "hello"} {
		q := requests(t, make1(t, "hf", workload.Options{Path: path, Column: column, Output: workload.Fixed(9), Messages: true}), 1)[0]
		got := q.Input.Text
		if len(q.Input.Messages) == 1 {
			got = q.Input.Messages[0].Content
		}
		if got != want {
			t.Errorf("%s: %q", column, got)
		}
	}
	kind, _ := workload.Find("hf")
	for _, column := range []string{"n", "nosuch"} {
		if _, err := kind.New(context.Background(), workload.Options{Path: path, Column: column}); err == nil || !strings.Contains(err.Error(), "the columns are mine, n, question, talk") {
			t.Errorf("%s: %v", column, err)
		}
	}
}

// TestHuggingFaceFiles reads the same rows in every file format, compressed and not.
func TestHuggingFaceFiles(t *testing.T) {
	type row struct {
		Question string `parquet:"question" json:"question"`
		Answer   string `parquet:"answer" json:"answer"`
	}
	rows := []row{{"how many?", "12"}, {"and now?", "13"}}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, r := range rows {
		must.Do(t, enc.Encode(r))
	}
	list, _ := json.Marshal(rows)
	var gz, pq bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, _ = z.Write(lines.Bytes())
	_ = z.Close()
	zw := must.Get(zstd.NewWriter(nil))(t)
	must.Do(t, parquet.Write(&pq, rows))
	for name, content := range map[string]string{
		"a.jsonl": lines.String(), "a.json": string(list), "a.jsonl.gz": gz.String(),
		"a.jsonl.zst": string(zw.EncodeAll(lines.Bytes(), nil)), "a.parquet": pq.String(),
		"a.csv": "question,answer\nhow many?,12\n\"and now?\",13\n",
	} {
		for _, path := range []string{write(t, name, content), filepath.Dir(write(t, name, content))} {
			w := make1(t, "hf", workload.Options{Path: path, Output: workload.Fixed(9)})
			qs := requests(t, w, 2)
			if qs[0].Input.Text != "how many?" || qs[1].Input.Text != "and now?" {
				t.Errorf("%s: %+v", name, qs)
			}
		}
	}
	for row, want := range map[string]string{
		`{"instruction":"sum","input":"1 2"}`: "1 2\n\nsum",
		`{"turns":["first","second"]}`:        "user:first",
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}`: "system:s user:u",
		`{"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"ho"}]}`:                                   "user:hi",
	} {
		q := requests(t, make1(t, "hf", workload.Options{Path: write(t, "r.jsonl", row), Output: workload.Fixed(9), Messages: true}), 1)[0]
		parts := strings.Split(q.Input.Text, "\x00")
		for _, m := range q.Input.Messages {
			parts = append(parts, m.Role+":"+m.Content)
		}
		if got := strings.TrimSpace(strings.Join(parts, " ")); got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

func TestRandomImages(t *testing.T) {
	var b workload.Buckets
	must.Do(t, b.UnmarshalText([]byte("{(32, 48, 1): 0.5, (64,16,1): 0.5, (720,1280,16): 0.0}")))
	w := make1(t, "random-mm", workload.Options{
		Input: workload.Fixed(12), Output: workload.Fixed(1), Messages: true, Media: true,
		Images: workload.ImageOptions{Base: 2, Ratio: 0.5, Images: 3, Buckets: b, AudioMS: workload.Fixed(250)},
	})
	sizes, counts := map[image.Point]int{}, map[int]int{}
	for _, q := range requests(t, w, 40) {
		var m struct {
			Content []struct {
				Type  string `json:"type"`
				Text  string `json:"text"`
				Image struct {
					URL string `json:"url"`
				} `json:"image_url"`
				Audio struct{ Data, Format string } `json:"input_audio"`
			} `json:"content"`
		}
		must.Do(t, json.Unmarshal(q.Input.Messages[0].Raw, &m))
		last := len(m.Content) - 1
		wav, err := base64.StdEncoding.DecodeString(m.Content[last].Audio.Data)
		if err != nil || q.AudioS != 0.25 || len(wav) != 44+2*16_000/4 || string(wav[:4]) != "RIFF" || m.Content[last].Audio.Format != "wav" {
			t.Fatalf("a sound of %d bytes, %v", len(wav), err)
		}
		counts[last-1]++
		for _, p := range m.Content[1:last] {
			data := must.Get(base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Image.URL, "data:image/jpeg;base64,")))(t)
			c, _, err := image.DecodeConfig(bytes.NewReader(data))
			must.Do(t, err)
			sizes[image.Pt(c.Width, c.Height)]++
		}
	}
	if len(counts) != 3 || counts[1] == 0 || counts[3] == 0 || len(sizes) != 2 || sizes[image.Pt(48, 32)] == 0 || sizes[image.Pt(16, 64)] == 0 {
		t.Errorf("images %v, sizes %v", counts, sizes)
	}
	for _, bad := range []string{"", "{}", "{(1,2):1}", "{(1,2,0):1}", "{(1,2,99999):1}", "{(0,2,1):1}", "{(1,2,1):-1}"} {
		if err := new(workload.Buckets).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestCustomToolsAndImages checks lines with tools, images and multi-part messages.
func TestCustomToolsAndImages(t *testing.T) {
	picture := write(t, "p.png", "not really a picture")
	lines := fmt.Sprintf(`{"prompt":"what is it?","images":[%q,"http://127.0.0.1/x.jpg"]}
{"messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:,"}}]}],"tools":[{"type":"function"}],"extra_body":{"top_k":3}}
`, picture)
	qs := requests(t, make1(t, "custom", workload.Options{Path: write(t, "c.jsonl", lines), Output: workload.Fixed(3), Messages: true, Media: true}), 2)
	if raw := string(qs[0].Input.Messages[0].Raw); !strings.Contains(raw, "data:image/png;base64,"+base64.StdEncoding.EncodeToString([]byte("not really a picture"))) || !strings.Contains(raw, `"url":"http://127.0.0.1/x.jpg"`) {
		t.Errorf("%s", raw)
	}
	if q := qs[1]; q.Input.Messages[0].Content != "see" || q.Extra["top_k"] != 3.0 || q.Extra["tools"] == nil {
		t.Errorf("%+v", q)
	}
	qs[1].Quote(nil)
	body, err := json.Marshal(qs[1].Input.Messages)
	if err != nil || !strings.Contains(string(body), `[{"role":"user","content":[{"type":"text","text":"see"}`) {
		t.Errorf("%s %v", body, err)
	}
}

func TestStructuredOutput(t *testing.T) {
	for text, want := range map[string]string{
		`json:{"type":"object"}`: `{"json":{"type":"object"}}`,
		`regex:[a-z]+`:           `{"regex":"[a-z]+"}`,
		`choice:yes|no`:          `{"choice":["yes","no"]}`,
		"grammar:@" + write(t, "g.ebnf", "root ::= x"): `{"grammar":"root ::= x"}`,
	} {
		var s workload.Structured
		must.Do(t, s.UnmarshalText([]byte(text)))
		w := s.Shape(make1(t, "random", workload.Options{IDs: true, Input: workload.Fixed(3), Output: workload.Fixed(3), IgnoreEOS: true}), 0.5, 1)
		with := 0
		for _, q := range requests(t, w, 400) {
			if q.Extra == nil {
				continue
			}
			with++
			if b, _ := json.Marshal(q.Extra["structured_outputs"]); string(b) != want || q.IgnoreEOS {
				t.Fatalf("%s, want %s", b, want)
			}
		}
		if with < 150 || with > 250 {
			t.Errorf("%d of 400 have the form", with)
		}
	}
	for _, bad := range []string{"json:x", "xml:y", "choice:one", "regex:", "grammar:@/none"} {
		if err := new(workload.Structured).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestMix checks that 3 of every 4 sessions belong to one class and 1 to the other, that
// each class numbers its own sessions, and that any session can be made alone.
func TestMix(t *testing.T) {
	class := func(n int) workload.Workload {
		return make1(t, "random", workload.Options{IDs: true, Seed: uint64(n), Input: workload.Fixed(n), Output: workload.Fixed(1)})
	}
	low := 5
	mix := must.Get(workload.Mix(1, []workload.Class{
		{Workload: class(10), Weight: 0.75, Label: "chat", Model: "lora-a"},
		{Workload: class(99), Weight: 0.25, Label: "rag", Priority: &low, Header: []tacho.Label{{Key: "X-Tier", Value: "gold"}}},
	}))(t)
	counts, seen := map[int]int{}, map[string]bool{}
	for i, q := range requests(t, mix, 400) {
		if i%4 == 0 && i > 0 && counts[99] != i/4 {
			t.Errorf("%d of %d are of the class of 1 in 4", counts[99], i)
		}
		counts[q.InputTokens]++
		seen[opening(q)] = true
		label := q.Labels[0].Value
		if q.InputTokens == 10 && (label != "chat" || q.Model != "lora-a" || q.Extra != nil) ||
			q.InputTokens == 99 && (label != "rag" || q.Extra["priority"] != 5 || q.Header[0].Value != "gold") || q.Session != uint64(i) {
			t.Fatalf("%d: %+v", i, q)
		}
		again, err := mix.Session(uint64(i))
		if err != nil || opening(again.Turns[0].Request) != opening(q) {
			t.Fatalf("session %d made again is another: %v", i, err)
		}
	}
	if counts[10] != 300 || counts[99] != 100 || len(seen) != 400 {
		t.Errorf("%v, %d different", counts, len(seen))
	}
	if _, err := workload.Mix(1, []workload.Class{{Workload: class(1), Weight: 0}}); err == nil {
		t.Error("a weight of 0 is taken")
	}
}

// TestRandomBatches checks that a batch is one request with several prompts.
func TestRandomBatches(t *testing.T) {
	o := workload.Options{IDs: true, Input: workload.Fixed(5), Output: workload.Fixed(1), Count: 11}
	one := requests(t, make1(t, "random", o), 11)
	o.Batch = 3
	for i, q := range requests(t, make1(t, "random", o), 4) {
		inputs := q.Extra["input"].([]any)
		if n := []int{3, 3, 3, 2}[i]; q.InputTokens != 5*n || len(inputs) != n || q.Session != uint64(i) {
			t.Fatalf("%+v", q)
		}
		for k, in := range inputs {
			if !slices.Equal(in.([]int32), one[3*i+k].Input.IDs) {
				t.Errorf("batch %d holds another prompt at %d", i, k)
			}
		}
	}
}

// TestRandomRerank checks the lengths: the query has input/2-1 tokens, and query,
// separator and document together have input tokens.
func TestRandomRerank(t *testing.T) {
	// 8 documents: 3, 3 and 2.
	w := make1(t, "random-rerank", workload.Options{Messages: true, Input: workload.Fixed(40), Batch: 3, Count: 8})
	queries, documents := map[string]bool{}, map[string]bool{}
	for i, q := range requests(t, w, 3) {
		m := q.Input.Messages
		n := []int{3, 3, 2}[i]
		if len(m) != 1+n || q.InputTokens != n*40 {
			t.Fatalf("%d messages, %d tokens", len(m), q.InputTokens)
		}
		for k, want := range []int{19, 20, 20, 20}[:1+n] {
			if n := len(strings.Fields(m[k].Content)) + 1; n != want {
				t.Errorf("message %d has %d tokens, want %d", k, n, want)
			}
		}
		queries[m[0].Content] = true
		for _, d := range m[1:] {
			documents[d.Content] = true
		}
	}
	if len(queries) != 1 || len(documents) != 8 {
		t.Errorf("%d queries, %d documents", len(queries), len(documents))
	}
	// Without ranking the query is one of the texts, and all have the same length.
	w = make1(t, "random-rerank", workload.Options{NoRank: true, Input: workload.Fixed(40), Batch: 3, Count: 8})
	for i, q := range requests(t, w, 4) {
		if n := len(q.Extra["input"].([]any)); n != []int{3, 3, 3, 2}[i] || q.InputTokens != n*40 {
			t.Errorf("%d texts, %d tokens", n, q.InputTokens)
		}
	}
}
