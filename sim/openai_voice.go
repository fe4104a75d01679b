package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tacho/wire"
)

// openAIVoice is what completions and chat have in common.
type openAIVoice struct {
	*ask
	manner     *manner
	created    int64
	usage      bool // asked for, as a chunk at the end
	continuous bool // asked for, in every chunk
	ids        bool // token ids asked for
	probs      *int // log probabilities asked for: of so many others besides each token; nil is none

	token template // the event of a token that is not the last
	// appendProbs appends log probabilities of tokens in the words of the dialect.
	appendProbs func(b []byte, from, to int) []byte
}

func (v *openAIVoice) options(o *wire.OpenAIStreamOptions, stream bool) error {
	switch {
	case o == nil:
	case !stream && v.manner.optionsStream:
		return &complaint{param: "stream_options", message: "stream_options are allowed only with stream true"}
	case v.manner.usage != usageNever:
		v.usage = o.IncludeUsage || v.manner.usageImplied
		v.continuous = o.IncludeUsage && o.ContinuousUsageStats && v.manner.usage == usageAsked
	}
	return nil
}

// fits complains about an answer that would fill the memory.
func (v *openAIVoice) fits() error {
	each := 1
	if v.probs != nil {
		each += 1 + *v.probs
	}
	if v.count(v.limit)*each > 2*maxNumbers {
		return &complaint{message: "so many choices, tokens and log probabilities are too much for a simulator: ask for fewer"}
	}
	return nil
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

// stopReason is what stopped the answer, if the request named it.
func (v *openAIVoice) stopReason(last bool) json.RawMessage {
	if !last || v.output != v.stopAt {
		return nil
	}
	return v.reason
}

// logprobs is the hole for log probabilities, if they were asked for.
func (v *openAIVoice) logprobs() json.RawMessage {
	if v.probs == nil {
		return nil
	}
	return strconv.AppendInt(nil, probHole, 10)
}

// repeat appends the event at begin once more for each further choice.
func (v *openAIVoice) repeat(b []byte, begin int) []byte {
	event := bytes.Clone(b[begin:])
	for i := 1; i < v.choices; i++ {
		b = append(b, bytes.Replace(event, []byte(`"index":0`), fmt.Appendf(nil, `"index":%d`, i), 1)...)
	}
	return b
}

// tokenIDs is the hole for the ids of an event's tokens, if they were asked for.
func (v *openAIVoice) tokenIDs() []int32 {
	if !v.ids {
		return nil
	}
	return []int32{intHole}
}

// holeUsage is the usage of every chunk, if that was asked for.
func (v *openAIVoice) holeUsage() *openaiUsage {
	switch {
	case v.continuous && !v.fx.noUsage:
		return &openaiUsage{PromptTokens: v.Tokens, TotalTokens: intHole, CompletionTokens: intHole2}
	case v.usage && v.manner.usage == usageZero:
		return &openaiUsage{}
	}
	return nil
}

func (v *openAIVoice) realUsage() *openaiUsage {
	if v.fx.noUsage {
		return nil
	}
	out := v.counted(v.count(v.output))
	u := &openaiUsage{PromptTokens: v.Tokens, TotalTokens: v.Tokens + out, CompletionTokens: out}
	if v.cached > 0 {
		u.PromptTokensDetails = &openaiPromptTokensDetails{CachedTokens: v.cached}
	}
	if v.fx.reasoning > 0 {
		u.CompletionTokensDetails = &openaiCompletionTokensDetails{ReasoningTokens: min(v.fx.reasoning, v.output)}
	}
	return u
}

// template cuts a chunk at its holes, after dressing it in the server's manner.
func (v *openAIVoice) template(chunk any) template {
	holes := []any{textHole}
	if v.probs != nil {
		holes = append(holes, probHole)
	}
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
	return wire.SSEBegin + j + wire.SSEEnd
}

// fill appends the event of some tokens.
func (v *openAIVoice) fill(b []byte, t template, from, to int) []byte {
	b, t = v.fillText(b, t, from, to)
	if v.ids {
		b = v.ask.ids(append(b, t[0]...), from, to)
		t = t[1:]
	}
	if len(t) == 3 { // usage in every chunk
		b = strconv.AppendInt(append(b, t[0]...), int64(v.Tokens+v.counted(to)), 10)
		b = strconv.AppendInt(append(b, t[1]...), int64(v.counted(to)), 10)
		t = t[2:]
	}
	return append(b, t[0]...)
}

// fillText appends text and log probabilities, and returns what is left of the
// template.
func (v *openAIVoice) fillText(b []byte, t template, from, to int) ([]byte, template) {
	b = v.text(append(b, t[0]...), from, to)
	if v.probs != nil {
		b = v.appendProbs(append(b, t[1]...), from, to)
		t = t[1:]
	}
	return b, t[1:]
}

// fillWhole appends a document with a text, and log probabilities, for each
// choice.
func (v *openAIVoice) fillWhole(b []byte, document any) []byte {
	var holes []any
	for range max(1, v.choices) {
		holes = append(holes, textHole)
		if v.probs != nil {
			holes = append(holes, probHole)
		}
	}
	t := newTemplate(string(appendJSON(nil, document)), holes...)
	for len(t) > 1 {
		b, t = v.fillText(b, t, 0, v.output)
	}
	return append(b, t[0]...)
}

// end appends an event with llama.cpp's timings, if the server has them.
func (v *openAIVoice) end(b []byte, chunk any) []byte {
	event := v.dress(chunk)
	if v.manner.timings {
		event = strings.TrimSuffix(event, "}"+wire.SSEEnd) + `,"timings":` + string(appendJSON(nil, v.timings())) + "}" + wire.SSEEnd
	}
	return append(b, event...)
}

// timings are llama.cpp's own measurements of an answer that is over.
func (a *ask) timings() *llamacppTimings {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	prompt, predicted := a.took(a.admittedAt, a.firstAt), a.took(a.firstAt, a.lastAt)
	t := &llamacppTimings{
		CacheN: a.cached, PromptN: a.Tokens - a.cached, PromptMs: ms(prompt),
		PredictedN: a.counted(a.output), PredictedMs: ms(predicted),
		PromptPerSecond: perSecond(int64(a.Tokens-a.cached), prompt), PredictedPerSecond: perSecond(int64(a.output), predicted),
	}
	if t.PromptN > 0 {
		t.PromptPerTokenMs = t.PromptMs / float64(t.PromptN)
	}
	t.PredictedPerTokenMs = t.PredictedMs / float64(max(1, t.PredictedN))
	return t
}

// completionVoice speaks /v1/completions.
type completionVoice struct{ openAIVoice }

func (v *completionVoice) begin() {
	v.created = time.Now().Unix()
	v.appendProbs = func(b []byte, from, to int) []byte { return appendJSON(b, v.completionLogprobs(from, to, *v.probs)) }
	v.token = v.tokenTemplate(false)
}

// tokenTemplate is that of the event of a token.
func (v *completionVoice) tokenTemplate(last bool) template {
	c := v.chunk(textHole, last, v.holeUsage())
	if last && v.manner.usageAlways {
		c.Usage = v.realUsage()
	}
	c.Choices[0].Logprobs, c.Choices[0].TokenIDs = v.logprobs(), v.tokenIDs()
	return v.template(c)
}

func (v *completionVoice) chunk(text string, last bool, u *openaiUsage) *openaiCompletion {
	finish := v.finishReason(last)
	if last && v.manner.tgiFinish {
		reason := v.tgiReason()
		finish = &reason
	}
	return &openaiCompletion{
		ID: v.name("cmpl-"), Object: "text_completion", Created: v.created, Model: v.model, Usage: u,
		Choices: []openaiCompletionChoice{{Text: text, FinishReason: finish, StopReason: v.stopReason(last)}},
	}
}

func (v *completionVoice) early(b []byte) []byte { return b }

func (v *completionVoice) tokens(b []byte, from, to int) []byte {
	begin, t := len(b), v.token
	if v.isLast(to) && !v.manner.timings { // llama.cpp ends with a chunk without text
		t = v.tokenTemplate(true)
	}
	return v.repeat(v.fill(b, t, from, to), begin)
}

func (v *completionVoice) last(b []byte) []byte {
	if v.manner.timings {
		begin := len(b)
		b = v.repeat(v.end(b, v.chunk("", true, v.realUsage())), begin)
	} else if v.usage && !v.manner.usageAlways && !v.fx.noUsage {
		c := v.chunk("", true, v.realUsage())
		c.Choices = []openaiCompletionChoice{}
		b = append(b, v.dress(c)...)
	}
	return append(b, doneEvent...)
}

func (v *completionVoice) whole(b []byte) []byte {
	c := v.chunk(textHole, true, v.realUsage())
	c.Choices[0].Logprobs = v.logprobs()
	for i := 1; i < v.choices; i++ {
		c.Choices = append(c.Choices, c.Choices[0])
		c.Choices[i].Index = i
	}
	return v.fillWhole(b, c)
}

// chatVoice speaks /v1/chat/completions.
type chatVoice struct {
	openAIVoice
	thought template        // the event of a token of reasoning
	told    bool            // the role
	call    *openaiToolCall // what is said are the arguments of this; nil is content
	chosen  bool            // the request chose the tool
}

func (v *chatVoice) begin() {
	v.created = time.Now().Unix()
	v.appendProbs = func(b []byte, from, to int) []byte { return appendJSON(b, v.chatLogprobs(from, to, *v.probs)) }
	v.token = v.tokenTemplate(v.delta(false), false)
	if v.fx.reasoning > 0 {
		v.thought = v.tokenTemplate(v.delta(true), false)
	}
}

// tokenTemplate is that of the event of a token.
func (v *chatVoice) tokenTemplate(d openaiChatDelta, last bool) template {
	c := v.chunk(d, last, v.holeUsage())
	c.Choices[0].Logprobs, c.Choices[0].TokenIDs = v.logprobs(), v.tokenIDs()
	return v.template(c)
}

// finishReason calls the end of a call by its name, unless the call was no
// choice of the model's.
func (v *chatVoice) finishReason(last bool) *string {
	f := v.openAIVoice.finishReason(last)
	if last && v.call != nil && !v.chosen && v.finish == finishStop {
		*f = "tool_calls"
	}
	return f
}

// delta has a hole where the text goes.
func (v *chatVoice) delta(thought bool) openaiChatDelta {
	text := textHole
	d := openaiChatDelta{}
	switch {
	case v.call != nil:
		d.ToolCalls = []openaiToolCall{{Function: openaiFunctionCall{Arguments: textHole}}}
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

func (v *chatVoice) chunk(d openaiChatDelta, last bool, u *openaiUsage) *openaiChatChunk {
	return &openaiChatChunk{
		ID: v.name("chatcmpl-"), Object: "chat.completion.chunk", Created: v.created, Model: v.model, Usage: u,
		Choices: []openaiChatChoice{{Delta: d, FinishReason: v.finishReason(last), StopReason: v.stopReason(last)}},
	}
}

// role appends the chunk that tells the role, once.
func (v *chatVoice) role(b []byte) []byte {
	if v.told || v.manner.role == roleEach && !v.fx.earlyRole {
		return b
	}
	v.told = true
	d := openaiChatDelta{Role: "assistant"}
	if v.manner.role != roleBare {
		d.Content = new(string)
	}
	c := v.chunk(d, false, v.holeUsage())
	if v.continuous && !v.fx.noUsage {
		c.Usage = v.usageAt(0)
	}
	event := v.dress(c)
	if v.manner.role == roleNull {
		event = strings.Replace(event, `"content":""`, `"content":null`, 1)
	}
	begin := len(b)
	return v.repeat(append(b, event...), begin)
}

func (v *chatVoice) usageAt(n int) *openaiUsage {
	return &openaiUsage{PromptTokens: v.Tokens, TotalTokens: v.Tokens + n, CompletionTokens: n}
}

func (v *chatVoice) early(b []byte) []byte {
	if v.manner.role == roleEarly || v.fx.earlyRole {
		return v.role(b)
	}
	return b
}

func (v *chatVoice) tokens(b []byte, from, to int) []byte {
	b = v.role(b)
	thought, last := from < v.fx.reasoning, v.isLast(to) && !v.manner.finishAlone
	t := v.token
	switch {
	case v.call != nil && from == 0:
		d := v.delta(false)
		d.ToolCalls[0].ID, d.ToolCalls[0].Type, d.ToolCalls[0].Function.Name = v.call.ID, v.call.Type, v.call.Function.Name
		t = v.tokenTemplate(d, last)
	case last:
		t = v.tokenTemplate(v.delta(thought), true)
	case thought:
		t = v.thought
	}
	begin := len(b)
	b = v.fill(b, t, from, to)
	if v.manner.emptyDelta && (v.isLast(to) || v.hold > 0) {
		b = append(b[:begin], bytes.Replace(b[begin:], []byte(`"delta":{"content":""}`), []byte(`"delta":{}`), 1)...)
	}
	return v.repeat(b, begin)
}

func (v *chatVoice) last(b []byte) []byte {
	if v.manner.finishAlone {
		begin := len(b)
		b = v.repeat(v.end(b, v.chunk(openaiChatDelta{}, true, nil)), begin)
	}
	if v.usage && !v.fx.noUsage {
		c := v.chunk(openaiChatDelta{}, true, v.realUsage())
		c.Choices = []openaiChatChoice{}
		b = append(b, v.dress(c)...)
	}
	return append(b, doneEvent...)
}

func (v *chatVoice) whole(b []byte) []byte {
	text := textHole
	m := openaiChatDelta{Role: "assistant", Content: &text}
	if v.call != nil {
		call := *v.call
		call.Function.Arguments = textHole
		m.Content, m.ToolCalls = new(string), []openaiToolCall{call}
	}
	c := openaiChatCompletion{ID: v.name("chatcmpl-"), Object: "chat.completion", Created: v.created, Model: v.model, Usage: v.realUsage()}
	for i := range max(1, v.choices) {
		c.Choices = append(c.Choices, openaiChatMessageChoice{
			Index: i, Message: m, Logprobs: v.logprobs(), FinishReason: v.finishReason(true), StopReason: v.stopReason(true),
		})
	}
	return v.fillWhole(b, c)
}
