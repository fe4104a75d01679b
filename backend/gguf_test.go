//go:build engines

package backend_test

import (
	"bufio"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strings"
)

// A ggufWriter writes the parts of a GGUF file: little-endian numbers, and strings prefixed by their length.
type ggufWriter struct {
	*bufio.Writer
	n int64
}

func (w *ggufWriter) put(v any) {
	_ = binary.Write(w.Writer, binary.LittleEndian, v) // Flush reports the error
	w.n += int64(binary.Size(v))
}

func (w *ggufWriter) text(s string) {
	w.put(uint64(len(s)))
	w.raw(s)
}

func (w *ggufWriter) raw(s string) {
	_, _ = w.WriteString(s)
	w.n += int64(len(s))
}

func (w *ggufWriter) align() {
	for w.n%32 != 0 {
		w.raw("\x00")
	}
}

// Metadata types of a GGUF file.
const (
	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufString  = 8
	ggufArray   = 9
)

// byteTokens returns the names of the 256 bytes in byte-level vocabularies, followed by some pairs and an
// end-of-text token.
func byteTokens() (tokens, merges []string) {
	next := rune(256)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			tokens = append(tokens, string(b))
			continue
		}
		tokens = append(tokens, string(next))
		next++
	}
	for _, m := range []string{"Ġ t", "Ġ a", "h e", "i n", "r e", "o n", "Ġt he", "e r", "Ġ s", "a t"} {
		merges = append(merges, m)
		tokens = append(tokens, strings.ReplaceAll(m, " ", ""))
	}
	return append(tokens, "<|end|>"), merges
}

// writeTinyGGUF writes a language model with random weights and the llama architecture, about 1 MB. The output
// makes no sense, but arrives at the pace of a real server.
func writeTinyGGUF(path string) error {
	const embedding, layers, heads, hidden, context = 64, 2, 4, 128, 2048
	tokens, merges := byteTokens()
	end := uint32(len(tokens) - 1)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := &ggufWriter{Writer: bufio.NewWriter(f)}
	type entry struct {
		key   string
		kind  uint32
		value func()
	}
	number := func(key string, v uint32) entry { return entry{key, ggufUint32, func() { w.put(v) }} }
	word := func(key, v string) entry { return entry{key, ggufString, func() { w.text(v) }} }
	words := func(key string, list []string) entry {
		return entry{key, ggufArray, func() {
			w.put(uint32(ggufString))
			w.put(uint64(len(list)))
			for _, s := range list {
				w.text(s)
			}
		}}
	}
	kinds := make([]int32, len(tokens))
	for i := range kinds {
		kinds[i] = 1 // normal
	}
	kinds[end] = 3 // control
	entries := []entry{
		word("general.architecture", "llama"), word("general.name", "tiny-random"), number("general.file_type", 0),
		number("llama.context_length", context), number("llama.embedding_length", embedding), number("llama.block_count", layers),
		number("llama.feed_forward_length", hidden), number("llama.attention.head_count", heads), number("llama.attention.head_count_kv", heads),
		{"llama.attention.layer_norm_rms_epsilon", ggufFloat32, func() { w.put(float32(1e-5)) }},
		number("llama.rope.dimension_count", embedding/heads), number("llama.vocab_size", uint32(len(tokens))),
		word("tokenizer.ggml.model", "gpt2"), word("tokenizer.ggml.pre", "gpt-2"), words("tokenizer.ggml.tokens", tokens),
		{"tokenizer.ggml.token_type", ggufArray, func() {
			w.put(uint32(ggufInt32))
			w.put(uint64(len(kinds)))
			w.put(kinds)
		}},
		words("tokenizer.ggml.merges", merges),
		number("tokenizer.ggml.bos_token_id", end), number("tokenizer.ggml.eos_token_id", end),
	}
	type tensor struct {
		name string
		dims []uint64
	}
	tensors := []tensor{{"token_embd.weight", []uint64{embedding, uint64(len(tokens))}}, {"output_norm.weight", []uint64{embedding}}}
	for l := range layers {
		block := "blk." + string(rune('0'+l)) + "."
		for _, t := range []tensor{
			{"attn_norm", []uint64{embedding}},
			{"attn_q", []uint64{embedding, embedding}},
			{"attn_k", []uint64{embedding, embedding}},
			{"attn_v", []uint64{embedding, embedding}},
			{"attn_output", []uint64{embedding, embedding}},
			{"ffn_norm", []uint64{embedding}},
			{"ffn_gate", []uint64{embedding, hidden}},
			{"ffn_up", []uint64{embedding, hidden}},
			{"ffn_down", []uint64{hidden, embedding}},
		} {
			tensors = append(tensors, tensor{block + t.name + ".weight", t.dims})
		}
	}
	w.raw("GGUF")
	w.put(uint32(3))
	w.put(uint64(len(tensors)))
	w.put(uint64(len(entries)))
	for _, e := range entries {
		w.text(e.key)
		w.put(e.kind)
		e.value()
	}
	offset := uint64(0)
	for _, t := range tensors {
		w.text(t.name)
		w.put(uint32(len(t.dims)))
		size := uint64(4)
		for _, d := range t.dims {
			w.put(d)
			size *= d
		}
		w.put(uint32(0)) // 32-bit floats
		w.put(offset)
		offset += (size + 31) / 32 * 32
	}
	w.align()
	rng := rand.New(rand.NewPCG(7, 7))
	for _, t := range tensors {
		n := uint64(1)
		for _, d := range t.dims {
			n *= d
		}
		weights := make([]float32, n)
		for i := range weights {
			weights[i] = 1
			if len(t.dims) > 1 {
				weights[i] = float32(rng.NormFloat64()) * 0.05
			}
		}
		w.put(weights)
		w.align()
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
