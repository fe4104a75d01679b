package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tacho/sim/step"
	"tacho/sim/words"
	"tacho/wire"
)

// An ask is one answer to generate, whatever the dialect.
type ask struct {
	prompt
	id        string // x-request-id, or a name of the server's own
	model     string // the name that the answer gives for the model
	limit     int    // most tokens to generate
	ignoreEOS bool   // generate exactly limit
	stream    bool   // token by token
	adapter   string // of the model; empty: none
	priority  int
	form
	voice voice
	fx    effects

	// Known when the last token is there.
	output int    // tokens generated, the end of sequence included; 0 before
	eos    bool   // the last of them is the end of sequence, which has no text
	finish string // finishLength or finishStop

	// Known when the first token is there.
	cached int // prompt tokens found in the prefix cache

	clock      *clock
	arrivedAt  time.Time
	firstAt    time.Time // the first token was there
	lastAt     time.Time // the last token was there
	admittedAt time.Time // the model took it up
}

// The reasons for an answer to end.
const (
	finishLength = step.FinishLength
	finishStop   = step.FinishStop
)

// isLast is whether the event that ends with token to is the last of the answer.
func (a *ask) isLast(to int) bool { return to == a.output }

// onlyEnds is whether tokens from up to but not including to are nothing but
// the end of sequence, of which many servers say nothing.
func (a *ask) onlyEnds(from, to int) bool { return a.eos && a.isLast(to) && to-from == 1 }

// text appends the text of tokens from up to but not including to, ready to
// stand inside a JSON string.
func (a *ask) text(b []byte, from, to int) []byte {
	if from == 0 {
		b = quoted(b, a.before)
	}
	if a.hold > 0 || a.stopText != "" {
		return a.piece(b, a.shown(from), a.shown(to))
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

// retell appends encoded JSON, with the text of tokens from up to but not
// including to in each hole for a text.
func (a *ask) retell(b, encoded []byte, from, to int) []byte {
	for {
		before, after, found := bytes.Cut(encoded, []byte(textHole))
		b = append(b, before...)
		if !found {
			return b
		}
		b, encoded = a.text(b, from, to), after
	}
}

// ids appends the ids of tokens from up to but not including to, as the
// elements of a JSON list.
func (a *ask) ids(b []byte, from, to int) []byte {
	for k := from; k < to; k++ {
		if k > from {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(a.tokenID(k)), 10)
	}
	return b
}

func (a *ask) tokenID(k int) int32 {
	if a.eos && a.isLast(k+1) && a.reason == nil {
		return words.EOS
	}
	return words.Output(a.Seed, k)
}

// took is the time between two moments, in the model's own time.
func (a *ask) took(from, to time.Time) time.Duration { return a.clock.faster(to.Sub(from)) }

// counted is what the server says it generated, when it has generated n.
func (a *ask) counted(n int) int { return max(0, n+a.fx.miscount) }

// A prompt is what was asked, in tokens.
type prompt struct{ words.Prompt }

func (s *Server) newPrompt() prompt { return prompt{words.Prompt{Every: s.blockTokens}} }

func (p *prompt) addMessages(messages []wire.OpenAIMessage) {
	for _, m := range messages {
		p.AddText(m.Content.Text)
		for _, part := range m.Content.Parts {
			p.addPart(&part)
		}
	}
}

// pictureTokens is what a picture or a video counts for, whatever its size.
const pictureTokens = 256

func (p *prompt) addPart(part *wire.OpenAIPart) {
	p.AddText(part.Text)
	if part.InputAudio != nil {
		p.addData(part.InputAudio.Data, soundTokens(soundSeconds(part.InputAudio.Data)))
	}
	for _, picture := range [][]byte{part.ImageURL, part.VideoURL} {
		if picture != nil {
			p.addData(picture, pictureTokens)
		}
	}
}

// modelName is the name an answer gives for the model: the one it was asked
// under, if any. It must not look like a hole in a template.
func (s *Server) modelName(asked string) string {
	return strings.ReplaceAll(cmp.Or(asked, s.opt.Model), textHole, "")
}

// A wish is what a request says about its answer.
type wish struct {
	model     string // empty: the one that is served
	limit     int    // most tokens; 0: as many as the server likes
	min       int    // fewest tokens
	ignoreEOS bool
	stream    bool
	priority  *int // nil: none
}

// An incoming is a request that a dialect has yet to understand.
type incoming struct {
	*Server
	w    http.ResponseWriter // for headers only
	r    *http.Request
	body []byte
	fx   effects
}

// ask checks what a request wants, and says what to generate.
func (in *incoming) ask(p prompt, w wish) (*ask, error) {
	if err := in.knows(w.model); err != nil {
		return nil, err
	}
	if p.Tokens == 0 {
		return nil, &complaint{param: "prompt", message: "the prompt is empty"}
	}
	if w.limit < 0 {
		return nil, &complaint{param: "max_tokens", message: fmt.Sprintf("%d tokens asked for: give a positive number", w.limit)}
	}
	room := in.opt.MaxModelLen - p.Tokens
	if w.limit == 0 {
		w.limit = min(in.defaultOutput, max(room, 1))
	}
	if in.pose.clips && room > 0 && w.limit <= in.opt.MaxModelLen {
		w.limit = min(w.limit, room)
	}
	if w.limit > room {
		c := &complaint{param: "input_tokens", message: fmt.Sprintf("prompt of %d tokens and answer of %d are more than the model's %d: shorten one of them",
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
	a := &ask{
		prompt: p, id: id, model: in.modelName(w.model), limit: w.limit, ignoreEOS: w.ignoreEOS || w.min >= w.limit,
		stream: w.stream, fx: in.fx, clock: in.clock,
	}
	if slices.Contains(in.opt.Adapters, w.model) {
		a.adapter = w.model
	}
	if w.priority != nil {
		a.priority = *w.priority
	}
	return a, nil
}
