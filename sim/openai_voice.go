package sim

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"tacho/wire/llamacpp"
	"tacho/wire/openai"
)

// openAIVoice is what completions and chat have in common.
type openAIVoice struct {
	*ask
	manner     *manner
	model      string
	created    int64
	usage      bool // asked for, as a chunk at the end
	continuous bool // asked for, in every chunk
	ids        bool // token ids asked for

	token template // the event of a token that is not the last
}

func (v *openAIVoice) options(o *openai.StreamOptions) error {
	switch {
	case o == nil:
	case !v.stream && v.manner.optionsStream:
		return errors.New("stream_options are allowed only with stream true")
	case v.manner.usage != usageNever:
		v.usage = o.IncludeUsage || v.manner.usageImplied
		v.continuous = o.IncludeUsage && o.ContinuousUsageStats && v.manner.usage == usageAsked
	}
	return nil
}

func (v *openAIVoice) start(s *Server, model string) {
	v.model, v.created = s.modelName(model), time.Now().Unix()
}

func (v *openAIVoice) name(prefix string) string {
	if v.manner.noID {
		return ""
	}
	return prefix + v.id
}

// finishReason is what a chunk up to token to says.
func (v *openAIVoice) finishReason(last bool) *string {
	if !last {
		return v.manner.noFinish
	}
	f := v.finish
	return &f
}

// tokenIDs is the hole for the ids of an event's tokens, if they were asked for.
func (v *openAIVoice) tokenIDs() []int32 {
	if !v.ids {
		return nil
	}
	return []int32{intHole}
}

// holeUsage is the usage of every chunk, if that was asked for.
func (v *openAIVoice) holeUsage() *openai.Usage {
	switch {
	case v.continuous && !v.fx.noUsage:
		return &openai.Usage{PromptTokens: v.input, TotalTokens: intHole, CompletionTokens: intHole2}
	case v.usage && v.manner.usage == usageZero:
		return &openai.Usage{}
	}
	return nil
}

func (v *openAIVoice) realUsage() *openai.Usage {
	if v.fx.noUsage {
		return nil
	}
	out := v.counted(v.output)
	u := &openai.Usage{PromptTokens: v.input, TotalTokens: v.input + out, CompletionTokens: out}
	if v.cached > 0 {
		u.PromptTokensDetails = &openai.PromptTokensDetails{CachedTokens: v.cached}
	}
	if v.fx.reasoning > 0 {
		u.CompletionTokensDetails = &openai.CompletionTokensDetails{ReasoningTokens: min(v.fx.reasoning, v.output)}
	}
	return u
}

// template cuts a chunk at its holes, after dressing it in the server's manner.
func (v *openAIVoice) template(chunk any) template {
	holes := []any{textHole}
	if v.ids {
		holes = append(holes, intHole)
	}
	if v.continuous && !v.fx.noUsage {
		holes = append(holes, intHole, intHole2)
	}
	return newTemplate(v.dress(chunk), holes...)
}

// dress encodes a chunk as an event.
func (v *openAIVoice) dress(chunk any) string {
	j := string(appendJSON(nil, chunk))
	if v.manner.dropNulls {
		j = strings.NewReplacer(`,"logprobs":null`, "", `,"finish_reason":null`, "").Replace(j)
	}
	if v.usage && v.manner.usage == usageNull && !strings.Contains(j, `"usage":`) {
		j = strings.TrimSuffix(j, "}") + `,"usage":null}`
	}
	return "data: " + j + "\n\n"
}

// fill appends the event of some tokens.
func (v *openAIVoice) fill(b []byte, t template, from, to int) []byte {
	b = v.text(append(b, t[0]...), from, to)
	t = t[1:]
	if v.ids {
		b = v.ask.ids(append(b, t[0]...), from, to)
		t = t[1:]
	}
	if len(t) == 3 { // usage in every chunk
		b = strconv.AppendInt(append(b, t[0]...), int64(v.input+v.counted(to)), 10)
		b = strconv.AppendInt(append(b, t[1]...), int64(v.counted(to)), 10)
		t = t[2:]
	}
	return append(b, t[0]...)
}

// end appends an event with llama.cpp's timings, if the server has them.
func (v *openAIVoice) end(b []byte, chunk any) []byte {
	event := v.dress(chunk)
	if v.manner.timings {
		event = strings.TrimSuffix(event, "}\n\n") + `,"timings":` + string(appendJSON(nil, v.timings())) + "}\n\n"
	}
	return append(b, event...)
}

// timings are llama.cpp's own measurements of an answer that is over.
func (a *ask) timings() *llamacpp.Timings {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	prompt, predicted := a.firstAt.Sub(a.admittedAt), a.lastAt.Sub(a.firstAt)
	t := &llamacpp.Timings{
		CacheN: a.cached, PromptN: a.input - a.cached, PromptMs: ms(prompt),
		PredictedN: a.counted(a.output), PredictedMs: ms(predicted),
		PromptPerSecond: perSecond(int64(a.input-a.cached), prompt), PredictedPerSecond: perSecond(int64(a.output), predicted),
	}
	if t.PromptN > 0 {
		t.PromptPerTokenMs = t.PromptMs / float64(t.PromptN)
	}
	t.PredictedPerTokenMs = t.PredictedMs / float64(max(1, t.PredictedN))
	return t
}

// completionVoice speaks /v1/completions.
type completionVoice struct{ openAIVoice }

func (v *completionVoice) begin(s *Server, model string) {
	v.start(s, model)
	v.token = v.template(v.chunk(textHole, false, v.holeUsage()))
}

func (v *completionVoice) chunk(text string, last bool, u *openai.Usage) *openai.Completion {
	finish := v.finishReason(last)
	if last && v.eos && v.manner.eosFinish != "" {
		finish = &v.manner.eosFinish
	}
	return &openai.Completion{
		ID: v.name("cmpl-"), Object: "text_completion", Created: v.created, Model: v.model, Usage: u,
		Choices: []openai.CompletionChoice{{Text: text, FinishReason: finish, TokenIDs: v.tokenIDs()}},
	}
}

func (v *completionVoice) early(b []byte) []byte { return b }

func (v *completionVoice) tokens(b []byte, from, to int) []byte {
	if !v.isLast(to) || v.manner.timings { // llama.cpp ends with a chunk without text
		return v.fill(b, v.token, from, to)
	}
	c := v.chunk(textHole, true, v.holeUsage())
	if v.manner.usageAlways {
		c.Usage = v.realUsage()
	}
	return v.fill(b, v.template(c), from, to)
}

func (v *completionVoice) last(b []byte) []byte {
	if v.manner.timings {
		c := v.chunk("", true, v.realUsage())
		c.Choices[0].TokenIDs = nil
		b = v.end(b, c)
	} else if v.usage && !v.manner.usageAlways && !v.fx.noUsage {
		c := v.chunk("", true, v.realUsage())
		c.Choices = []openai.CompletionChoice{}
		b = append(b, v.dress(c)...)
	}
	return append(b, doneEvent...)
}

func (v *completionVoice) whole(b []byte) []byte {
	v.ids = false
	t := newTemplate(string(appendJSON(nil, v.chunk(textHole, true, v.realUsage()))), textHole)
	b = v.text(append(b, t[0]...), 0, v.output)
	return append(b, t[1]...)
}

// chatVoice speaks /v1/chat/completions.
type chatVoice struct {
	openAIVoice
	thought template // the event of a token of reasoning
	told    bool     // the role
}

func (v *chatVoice) begin(s *Server, model string) {
	v.start(s, model)
	v.token = v.template(v.chunk(v.delta(false), false, v.holeUsage()))
	if v.fx.reasoning > 0 {
		v.thought = v.template(v.chunk(v.delta(true), false, v.holeUsage()))
	}
}

// delta has a hole where the text goes.
func (v *chatVoice) delta(thought bool) openai.ChatDelta {
	text := textHole
	d := openai.ChatDelta{}
	switch {
	case !thought:
		d.Content = &text
	case v.manner.reasoning:
		d.Reasoning = &text
	default:
		d.ReasoningContent = &text
	}
	if v.manner.role == roleEach {
		d.Role = "assistant"
	}
	return d
}

func (v *chatVoice) chunk(d openai.ChatDelta, last bool, u *openai.Usage) *openai.ChatChunk {
	return &openai.ChatChunk{
		ID: v.name("chatcmpl-"), Object: "chat.completion.chunk", Created: v.created, Model: v.model, Usage: u,
		Choices: []openai.ChatChoice{{Delta: d, FinishReason: v.finishReason(last), TokenIDs: v.tokenIDs()}},
	}
}

// role appends the chunk that tells the role, once.
func (v *chatVoice) role(b []byte) []byte {
	if v.told || v.manner.role == roleEach && !v.fx.earlyRole {
		return b
	}
	v.told = true
	d := openai.ChatDelta{Role: "assistant"}
	if v.manner.role != roleBare {
		d.Content = new(string)
	}
	c := v.chunk(d, false, v.holeUsage())
	c.Choices[0].TokenIDs = nil
	if v.continuous && !v.fx.noUsage {
		c.Usage = v.usageAt(0)
	}
	event := v.dress(c)
	if v.manner.role == roleNull {
		event = strings.Replace(event, `"content":""`, `"content":null`, 1)
	}
	return append(b, event...)
}

func (v *chatVoice) usageAt(n int) *openai.Usage {
	return &openai.Usage{PromptTokens: v.input, TotalTokens: v.input + n, CompletionTokens: n}
}

func (v *chatVoice) early(b []byte) []byte {
	if v.manner.role == roleEarly || v.fx.earlyRole {
		return v.role(b)
	}
	return b
}

func (v *chatVoice) tokens(b []byte, from, to int) []byte {
	b = v.role(b)
	thought := from < v.fx.reasoning
	switch {
	case v.isLast(to) && !v.manner.finishAlone:
		return v.fill(b, v.template(v.chunk(v.delta(thought), true, v.holeUsage())), from, to)
	case thought:
		return v.fill(b, v.thought, from, to)
	}
	return v.fill(b, v.token, from, to)
}

func (v *chatVoice) last(b []byte) []byte {
	if v.manner.finishAlone {
		c := v.chunk(openai.ChatDelta{}, true, nil)
		c.Choices[0].TokenIDs = nil
		b = v.end(b, c)
	}
	if v.usage && !v.fx.noUsage {
		c := v.chunk(openai.ChatDelta{}, true, v.realUsage())
		c.Choices = []openai.ChatChoice{}
		b = append(b, v.dress(c)...)
	}
	return append(b, doneEvent...)
}

func (v *chatVoice) whole(b []byte) []byte {
	text := textHole
	t := newTemplate(string(appendJSON(nil, openai.ChatCompletion{
		ID: v.name("chatcmpl-"), Object: "chat.completion", Created: v.created, Model: v.model, Usage: v.realUsage(),
		Choices: []openai.ChatMessageChoice{{Message: openai.ChatDelta{Role: "assistant", Content: &text}, FinishReason: v.finishReason(true)}},
	})), textHole)
	b = v.text(append(b, t[0]...), 0, v.output)
	return append(b, t[1]...)
}
