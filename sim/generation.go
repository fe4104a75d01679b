package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/wav"
	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/sim/words"
)

// A generation is one answer to generate, independent of the dialect.
type generation struct {
	prompt
	id        string // x-request-id, or an id assigned by the server
	model     string // model name in the answer
	limit     int    // maximum number of tokens to generate
	ignoreEOS bool   // generate exactly limit
	asked     int    // limit and ignoreEOS as requested
	asksExact bool
	stream    bool   // token by token
	adapter   string // LoRA adapter; empty: none
	priority  int
	outputSpec
	encoder encoder
	fx      effects

	// Set with the last token.
	output int    // tokens generated, the end of sequence included; 0 before
	eos    bool   // the last token is the end of sequence, which has no text
	finish string // finishLength or finishStop

	// Set with the first token.
	cached int // prompt tokens found in the prefix cache

	clock      *clock
	arrivedAt  time.Time
	firstAt    time.Time // when the first token was generated
	lastAt     time.Time // when the last token was generated
	admittedAt time.Time // when the model admitted the request
}

// Finish reasons.
const (
	finishLength = step.FinishLength
	finishStop   = step.FinishStop
)

// isLast reports whether the event that ends before token to is the last of the
// answer.
func (a *generation) isLast(to int) bool { return to == a.output }

// onlyEnds reports whether tokens from up to but not including to are only the end
// of sequence, for which many servers send no event.
func (a *generation) onlyEnds(from, to int) bool { return a.eos && a.isLast(to) && to-from == 1 }

// text appends the text of tokens from up to but not including to, escaped for a
// JSON string.
func (a *generation) text(b []byte, from, to int) []byte {
	if from == 0 {
		b = quoted(b, a.prefix)
	}
	if a.hold > 0 || a.stopText != "" {
		return a.piece(b, a.visibleBytes(from), a.visibleBytes(to))
	}
	if a.eos && a.isLast(to) {
		to--
	}
	if a.fx.hostile != nil {
		for k := from; k < to; k++ {
			b = append(b, a.fx.hostile[k%len(a.fx.hostile)]...)
		}
		return b
	}
	if a.script != nil {
		for _, text := range a.script[min(from, len(a.script)):min(to, len(a.script))] {
			b = quoted(b, text)
		}
		return b
	}
	for k := from; k < to; k++ {
		b = append(b, words.Text(words.Output(a.Seed, k))...)
	}
	return b
}

// fillHoles appends encoded JSON and puts the whole text into each text hole.
func (a *generation) fillHoles(b, encoded []byte) []byte {
	for {
		before, after, found := bytes.Cut(encoded, []byte(textHole))
		b = append(b, before...)
		if !found {
			return b
		}
		b, encoded = a.text(b, 0, a.output), after
	}
}

// ids appends the ids of tokens from up to but not including to, as elements of a
// JSON list.
func (a *generation) ids(b []byte, from, to int) []byte {
	for k := from; k < to; k++ {
		if k > from {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(a.tokenID(k)), 10)
	}
	return b
}

func (a *generation) tokenID(k int) int32 {
	if a.eos && a.isLast(k+1) && a.reason == nil {
		return words.EOS
	}
	return words.Output(a.Seed, k)
}

// took is the time between two wall-clock times in model time.
func (a *generation) took(from, to time.Time) time.Duration { return a.clock.faster(to.Sub(from)) }

// counted is the number of tokens the server reports after n generated tokens.
func (a *generation) counted(n int) int { return max(0, n+a.fx.miscount) }

// A prompt is the prompt of a request in tokens.
type prompt struct{ words.Prompt }

func (s *Server) newPrompt() prompt { return prompt{words.Prompt{BlockTokens: s.blockTokens}} }

func (p *prompt) addMessages(messages []wire.OpenAIMessage) {
	for _, m := range messages {
		p.AddText(m.Content.Text)
		for _, part := range m.Content.Parts {
			p.addPart(&part)
		}
	}
}

const (
	pictureTokens        = 256     // of a picture or a video of any size
	audioTokensPerSecond = 100     // vLLM's rate for Whisper
	mostAudioTokens      = 1 << 22 // above the limit of any model
)

func (p *prompt) addPart(part *wire.OpenAIPart) {
	p.AddText(part.Text)
	if sound := part.InputAudio; sound != nil {
		// 16 bits at 16,000 samples per second are assumed for audio of unknown duration.
		seconds := cmp.Or(wav.Seconds(sound.Data), float64(len(sound.Data))/32_000)
		p.addData(sound.Data, int(math.Ceil(min(seconds*audioTokensPerSecond, mostAudioTokens))))
	}
	for _, picture := range [][]byte{part.ImageURL, part.VideoURL} {
		if picture != nil {
			p.addData(picture, pictureTokens)
		}
	}
}

// addData adds n tokens determined by the data alone.
func (p *prompt) addData(data []byte, n int) {
	h := fnv.New64a()
	_, _ = h.Write(data) // a hash never fails
	for k := range n {
		p.Add(h.Sum64() + uint64(k))
	}
}

// modelName returns the model name for an answer: the requested name, if any. A
// name must not contain a template hole.
func (s *Server) modelName(requested string) string {
	return strings.ReplaceAll(cmp.Or(requested, s.opt.Model), textHole, "")
}

// params are the generation parameters of a request.
type params struct {
	model     string // empty: the served model
	limit     int    // maximum number of tokens; 0: chosen by the server
	min       int    // minimum number of tokens
	ignoreEOS bool
	stream    bool
	priority  *int // nil: none
}

// An incoming is a request before a dialect has parsed it.
type incoming struct {
	*Server
	w    http.ResponseWriter // for headers only
	r    *http.Request
	body []byte
	fx   effects
}

// generation validates the parameters and returns the answer to generate.
func (in *incoming) generation(p prompt, w params) (*generation, error) {
	if err := in.checkModel(w.model); err != nil {
		return nil, err
	}
	if p.Tokens == 0 {
		return nil, &apiError{param: "prompt", message: "the prompt is empty"}
	}
	if w.limit < 0 {
		return nil, &apiError{param: "max_tokens", message: fmt.Sprintf("max_tokens is %d: give a positive number", w.limit)}
	}
	room := in.opt.MaxModelLen - p.Tokens
	if w.limit == 0 {
		w.limit = min(in.defaultOutput, max(room, 1))
	}
	if in.emulated.clips && room > 0 && w.limit <= in.opt.MaxModelLen {
		w.limit = min(w.limit, room)
	}
	if w.limit > room {
		c := &apiError{param: "input_tokens", message: fmt.Sprintf("prompt of %d tokens and answer of %d exceed the model's %d tokens: shorten one of them",
			p.Tokens, w.limit, in.opt.MaxModelLen)}
		if w.limit > in.opt.MaxModelLen {
			c.param = "max_tokens"
		}
		return nil, c
	}
	id := strings.ReplaceAll(in.r.Header.Get("X-Request-Id"), textHole, "")
	if id == "" {
		id = fmt.Sprintf("sim-%d", in.serial.Add(1))
	}
	a := &generation{
		prompt: p, id: id, model: in.modelName(w.model), limit: w.limit, ignoreEOS: w.ignoreEOS || w.min >= w.limit,
		stream: w.stream, fx: in.fx, clock: in.clock,
	}
	a.asked, a.asksExact = a.limit, a.ignoreEOS
	if slices.Contains(in.opt.Adapters, w.model) {
		a.adapter = w.model
	}
	if w.priority != nil {
		a.priority = *w.priority
	}
	return a, nil
}
