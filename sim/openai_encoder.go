package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

// openAIEncoder is the common part of completions and chat.
type openAIEncoder struct {
	*generation
	variant    *openAIVariant
	created    int64
	usage      bool // send usage as a chunk at the end
	continuous bool // send usage in every chunk
	ids        bool // send token ids
	probs      *int // number of alternatives with log probabilities for each token; nil: no log probabilities

	token template // the event of a token other than the last
	// appendProbs appends log probabilities in the format of the dialect.
	appendProbs func(b []byte, from, to int) []byte
}

func (v *openAIEncoder) options(o *wire.OpenAIStreamOptions, stream bool) error {
	switch {
	case o == nil:
	case !stream && v.variant.optionsStream:
		return &apiError{param: "stream_options", message: "stream_options are allowed only with stream true"}
	default:
		v.usage = o.IncludeUsage || v.variant.usageImplied
		v.continuous = o.IncludeUsage && o.ContinuousUsageStats && !v.variant.zeroUsage
	}
	return nil
}

// fits returns an error if the answer would use too much memory.
func (v *openAIEncoder) fits() error {
	each := 1
	if v.probs != nil {
		each += 1 + *v.probs
	}
	if v.count(v.limit)*each > 2*maxNumbers {
		return &apiError{message: "the answer is too large for the simulator: ask for fewer choices, tokens or log probabilities"}
	}
	return nil
}

func (v *openAIEncoder) name(prefix string) string {
	if v.variant.noID {
		return ""
	}
	return prefix + v.id
}

// finishReason returns the finish reason of a chunk.
func (v *openAIEncoder) finishReason(last bool) *string {
	if !last {
		return v.variant.noFinish
	}
	f := v.finish
	return &f
}

// stopReason returns the stop string or token that ended the answer, if the request
// named it.
func (v *openAIEncoder) stopReason(last bool) json.RawMessage {
	if !last || v.output != v.stopAt {
		return nil
	}
	return v.reason
}

// logprobs returns a hole for log probabilities if the client wants them.
func (v *openAIEncoder) logprobs() json.RawMessage {
	if v.probs == nil {
		return nil
	}
	return strconv.AppendInt(nil, probHole, 10)
}

// repeat appends the event at begin again for each further choice.
func (v *openAIEncoder) repeat(b []byte, begin int) []byte {
	event := bytes.Clone(b[begin:])
	for i := 1; i < v.choices; i++ {
		b = append(b, bytes.Replace(event, []byte(`"index":0`), fmt.Appendf(nil, `"index":%d`, i), 1)...)
	}
	return b
}

// tokenIDs returns a hole for token ids if the client wants them.
func (v *openAIEncoder) tokenIDs() []int32 {
	if !v.ids {
		return nil
	}
	return []int32{intHole}
}

// holeUsage returns the usage of every chunk if the client wants it.
func (v *openAIEncoder) holeUsage() *openaiUsage {
	switch {
	case v.continuous && !v.fx.noUsage:
		return &openaiUsage{PromptTokens: v.Tokens, TotalTokens: intHole, CompletionTokens: intHole2}
	case v.usage && v.variant.zeroUsage:
		return &openaiUsage{}
	}
	return nil
}

func (v *openAIEncoder) realUsage() *openaiUsage {
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

// template encodes a chunk and cuts it at its holes.
func (v *openAIEncoder) template(chunk any) template {
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
	return newTemplate(v.encodeEvent(chunk), holes...)
}

// encodeEvent encodes a chunk as an event in the server's variant.
func (v *openAIEncoder) encodeEvent(chunk any) string {
	j := string(appendJSON(nil, chunk))
	if v.variant.dropNulls {
		j = strings.NewReplacer(`,"logprobs":null`, "", `,"finish_reason":null`, "").Replace(j)
	}
	return wire.SSEBegin + j + wire.SSEEnd
}

// fill appends the event of some tokens.
func (v *openAIEncoder) fill(b []byte, t template, from, to int) []byte {
	b, t = v.fillText(b, t, from, to)
	if v.ids {
		b = v.generation.ids(append(b, t[0]...), from, to)
		t = t[1:]
	}
	if len(t) == 3 { // usage in every chunk
		b = strconv.AppendInt(append(b, t[0]...), int64(v.Tokens+v.counted(to)), 10)
		b = strconv.AppendInt(append(b, t[1]...), int64(v.counted(to)), 10)
		t = t[2:]
	}
	return append(b, t[0]...)
}

// fillText appends text and log probabilities and returns the rest of the template.
func (v *openAIEncoder) fillText(b []byte, t template, from, to int) ([]byte, template) {
	b = v.text(append(b, t[0]...), from, to)
	if v.probs != nil {
		b = v.appendProbs(append(b, t[1]...), from, to)
		t = t[1:]
	}
	return b, t[1:]
}

// fillWhole appends a document with text and log probabilities for each choice.
func (v *openAIEncoder) fillWhole(b []byte, document any) []byte {
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

// end appends an event, with llama.cpp's timings if the server sends them.
func (v *openAIEncoder) end(b []byte, chunk any) []byte {
	event := v.encodeEvent(chunk)
	if v.variant.timings {
		event = strings.TrimSuffix(event, "}"+wire.SSEEnd) + `,"timings":` + string(appendJSON(nil, v.timings())) + "}" + wire.SSEEnd
	}
	return append(b, event...)
}

// timings are llama.cpp's measurements of a finished answer.
func (a *generation) timings() *llamacppTimings {
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

// completionEncoder encodes answers of /v1/completions.
type completionEncoder struct{ openAIEncoder }

// tokenTemplate returns the template of a token event.
func (v *completionEncoder) tokenTemplate(last bool) template {
	c := v.chunk(textHole, last, v.holeUsage())
	if last && v.variant.usageAlways {
		c.Usage = v.realUsage()
	}
	c.Choices[0].Logprobs, c.Choices[0].TokenIDs = v.logprobs(), v.tokenIDs()
	return v.template(c)
}

func (v *completionEncoder) chunk(text string, last bool, u *openaiUsage) *openaiCompletion {
	finish := v.finishReason(last)
	if last && v.variant.tgiFinish {
		reason := v.tgiReason()
		finish = &reason
	}
	return &openaiCompletion{
		ID: v.name("cmpl-"), Object: "text_completion", Created: v.created, Model: v.model, Usage: u,
		Choices: []openaiCompletionChoice{{Text: text, FinishReason: finish, StopReason: v.stopReason(last)}},
	}
}

func (v *completionEncoder) early(b []byte) []byte { return b }

func (v *completionEncoder) tokens(b []byte, from, to int) []byte {
	begin, t := len(b), v.token
	if v.isLast(to) && !v.variant.timings { // llama.cpp ends with a chunk without text
		t = v.tokenTemplate(true)
	}
	return v.repeat(v.fill(b, t, from, to), begin)
}

func (v *completionEncoder) last(b []byte) []byte {
	if v.variant.timings {
		begin := len(b)
		b = v.repeat(v.end(b, v.chunk("", true, v.realUsage())), begin)
	} else if v.usage && !v.variant.usageAlways && !v.fx.noUsage {
		c := v.chunk("", true, v.realUsage())
		c.Choices = []openaiCompletionChoice{}
		b = append(b, v.encodeEvent(c)...)
	}
	return append(b, doneEvent...)
}

func (v *completionEncoder) whole(b []byte) []byte {
	c := v.chunk(textHole, true, v.realUsage())
	c.Choices[0].Logprobs = v.logprobs()
	for i := 1; i < v.choices; i++ {
		c.Choices = append(c.Choices, c.Choices[0])
		c.Choices[i].Index = i
	}
	return v.fillWhole(b, c)
}

// chatEncoder encodes answers of /v1/chat/completions.
type chatEncoder struct {
	openAIEncoder
	thought  template        // the event of a reasoning token
	roleSent bool            // the role was sent
	call     *openaiToolCall // the text is the arguments of this call; nil: the text is content
	chosen   bool            // the request selected the tool
}

func (v *chatEncoder) begin() {
	v.created = time.Now().Unix()
	v.appendProbs = func(b []byte, from, to int) []byte { return appendJSON(b, v.chatLogprobs(from, to, *v.probs)) }
	v.token = v.tokenTemplate(v.delta(false), false)
	if v.fx.reasoning > 0 {
		v.thought = v.tokenTemplate(v.delta(true), false)
	}
}

// tokenTemplate returns the template of a token event.
func (v *chatEncoder) tokenTemplate(d openaiChatDelta, last bool) template {
	c := v.chunk(d, last, v.holeUsage())
	c.Choices[0].Logprobs, c.Choices[0].TokenIDs = v.logprobs(), v.tokenIDs()
	return v.template(c)
}

// finishReason is tool_calls at the end of a tool call, unless the request selected
// the tool.
func (v *chatEncoder) finishReason(last bool) *string {
	f := v.openAIEncoder.finishReason(last)
	if last && v.call != nil && !v.chosen && v.finish == finishStop {
		*f = "tool_calls"
	}
	return f
}

// delta returns a delta with a text hole.
func (v *chatEncoder) delta(thought bool) openaiChatDelta {
	text := textHole
	d := openaiChatDelta{}
	switch {
	case v.call != nil:
		d.ToolCalls = []openaiToolCall{{Function: openaiFunctionCall{Arguments: textHole}}}
	case !thought:
		d.Content = &text
	case v.variant.reasoning:
		d.Reasoning = &text
	default:
		d.ReasoningContent = &text
	}
	if v.variant.role == roleEach {
		d.Role = "assistant"
	}
	return d
}

func (v *chatEncoder) chunk(d openaiChatDelta, last bool, u *openaiUsage) *openaiChatChunk {
	return &openaiChatChunk{
		ID: v.name("chatcmpl-"), Object: "chat.completion.chunk", Created: v.created, Model: v.model, Usage: u,
		Choices: []openaiChatChoice{{Delta: d, FinishReason: v.finishReason(last), StopReason: v.stopReason(last)}},
	}
}

// role appends the chunk with the role, once.
func (v *chatEncoder) role(b []byte) []byte {
	if v.roleSent || v.variant.role == roleEach && !v.fx.earlyRole {
		return b
	}
	v.roleSent = true
	d := openaiChatDelta{Role: "assistant"}
	if v.variant.role != roleBare {
		d.Content = new(string)
	}
	c := v.chunk(d, false, v.holeUsage())
	if v.continuous && !v.fx.noUsage {
		c.Usage = &openaiUsage{PromptTokens: v.Tokens, TotalTokens: v.Tokens}
	}
	event := v.encodeEvent(c)
	if v.variant.role == roleNull {
		event = strings.Replace(event, `"content":""`, `"content":null`, 1)
	}
	begin := len(b)
	return v.repeat(append(b, event...), begin)
}

func (v *chatEncoder) early(b []byte) []byte {
	if v.fx.earlyRole {
		return v.role(b)
	}
	return b
}

func (v *chatEncoder) tokens(b []byte, from, to int) []byte {
	b = v.role(b)
	thought, last := from < v.fx.reasoning, v.isLast(to) && !v.variant.finishAlone
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
	if v.variant.emptyDelta && (v.isLast(to) || v.hold > 0) {
		b = append(b[:begin], bytes.Replace(b[begin:], []byte(`"delta":{"content":""}`), []byte(`"delta":{}`), 1)...)
	}
	return v.repeat(b, begin)
}

func (v *chatEncoder) last(b []byte) []byte {
	if v.variant.finishAlone {
		begin := len(b)
		b = v.repeat(v.end(b, v.chunk(openaiChatDelta{}, true, nil)), begin)
	}
	if v.usage && !v.fx.noUsage {
		c := v.chunk(openaiChatDelta{}, true, v.realUsage())
		c.Choices = []openaiChatChoice{}
		b = append(b, v.encodeEvent(c)...)
	}
	return append(b, doneEvent...)
}

func (v *chatEncoder) whole(b []byte) []byte {
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
