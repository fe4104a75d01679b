package sim

import (
	"net/http"
	"strconv"

	"tacho/sim/words"
	"tacho/wire"
)

var sglangGenerate = &dialect{
	mime:    sseMime,
	read:    readSGLang,
	refusal: sglangRefusal,
	broken: func(p *pose, c *complaint) []byte {
		return append(wire.AppendSSE(nil, "", sglangRefusal(p, c)), doneEvent...)
	},
}

func sglangRefusal(_ *pose, c *complaint) []byte {
	kind := "invalid_request_error"
	if c.status >= http.StatusInternalServerError {
		kind = "internal_error"
	}
	return appendJSON(nil, sglangErrorResponse{Error: sglangError{Message: c.message, Type: kind, Code: c.status}})
}

func readSGLang(in *incoming) (*ask, error) {
	var q sglangRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.Text)
	p.AddIDs(q.InputIDs)
	o := &q.SamplingParams
	a, err := in.ask(p, wish{limit: o.MaxNewTokens, min: o.MinNewTokens, ignoreEOS: o.IgnoreEOS, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	if q.RequestID != "" {
		a.id = q.RequestID
	}
	a.stopAtFirst(stops{strings: o.Stop, ids: o.StopTokenIDs, min: o.MinNewTokens})
	v := &sglangVoice{interval: max(1, o.StreamInterval)}
	v.eventVoice = eventVoice{ask: a, frame: sseFrame, words: v.answer, after: doneEvent}
	a.voice = v
	return a, nil
}

// sglangVoice repeats, in every event, all that was said before.
type sglangVoice struct {
	eventVoice
	interval int // tokens from one event to the next
	spoken   int // tokens told so far
	soFar    []byte
	idsSoFar []byte
}

func (v *sglangVoice) tokens(b []byte, from, to int) []byte {
	if len(v.idsSoFar) > 0 {
		v.idsSoFar = append(v.idsSoFar, ',')
	}
	v.soFar = v.text(v.soFar, from, to)
	v.idsSoFar = v.ids(v.idsSoFar, from, to)
	if !v.isLast(to) && (v.unheard(from, to) || v.spoken > 0 && to-v.spoken < v.interval) {
		return b
	}
	v.spoken = to
	return v.eventVoice.tokens(b, from, to)
}

func (v *sglangVoice) answer(b []byte, _, to int) []byte {
	b = append(append(b, `{"text":"`...), v.soFar...)
	b = append(append(b, `","output_ids":[`...), v.idsSoFar...)
	m := sglangMetaInfo{
		ID: v.id, PromptTokens: v.Tokens, CompletionTokens: v.counted(to), CachedTokens: v.cached, WeightVersion: "default",
	}
	if v.isLast(to) {
		m.FinishReason = &sglangFinishReason{Type: v.finish}
		switch {
		case v.finish == finishLength:
			m.FinishReason.Length = v.output
		case v.output == v.stopAt:
			m.FinishReason.Matched = v.reason
		default:
			m.FinishReason.Matched = words.EOS
		}
		m.E2ELatency = v.took(v.arrivedAt, v.lastAt).Seconds()
	}
	b = append(b, `],"meta_info":`...)
	if v.fx.noUsage {
		b = append(strconv.AppendQuote(append(b, `{"id":`...), v.id), `,"finish_reason":`...)
		return append(appendJSON(b, m.FinishReason), "}}"...)
	}
	return append(appendJSON(b, m), '}')
}

func (v *sglangVoice) whole(b []byte) []byte {
	v.soFar, v.idsSoFar = v.text(nil, 0, v.output), v.ids(nil, 0, v.output)
	return v.eventVoice.whole(b)
}
