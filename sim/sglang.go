package sim

import (
	"net/http"
	"strconv"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

var sglangGenerate = &dialect{
	mime:      sseMime,
	read:      readSGLang,
	errorBody: sglangErrorBody,
	streamError: func(p *emulatedServer, c *apiError) []byte {
		return append(wire.AppendSSE(nil, "", sglangErrorBody(p, c)), doneEvent...)
	},
}

func sglangErrorBody(_ *emulatedServer, c *apiError) []byte {
	kind := "invalid_request_error"
	if c.status >= http.StatusInternalServerError {
		kind = "internal_error"
	}
	return appendJSON(nil, sglangErrorResponse{Error: sglangError{Message: c.message, Type: kind, Code: c.status}})
}

func readSGLang(in *incoming) (*generation, error) {
	var q sglangRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.Text)
	p.AddIDs(q.InputIDs)
	o := &q.SamplingParams
	a, err := in.generation(p, params{limit: o.MaxNewTokens, min: o.MinNewTokens, ignoreEOS: o.IgnoreEOS, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	if q.RequestID != "" {
		a.id = q.RequestID
	}
	a.stopAtFirst(stops{strings: o.Stop, ids: o.StopTokenIDs, min: o.MinNewTokens})
	v := &sglangEncoder{interval: max(1, o.StreamInterval)}
	v.eventEncoder = eventEncoder{generation: a, frame: sseFrame, appendJSON: v.answer, after: doneEvent}
	a.encoder = v
	return a, nil
}

// sglangEncoder repeats the whole text so far in every event.
type sglangEncoder struct {
	eventEncoder
	interval int // tokens from one event to the next
	sent     int // tokens sent so far
	soFar    []byte
	idsSoFar []byte
}

func (v *sglangEncoder) tokens(b []byte, from, to int) []byte {
	if len(v.idsSoFar) > 0 {
		v.idsSoFar = append(v.idsSoFar, ',')
	}
	v.soFar = v.text(v.soFar, from, to)
	v.idsSoFar = v.ids(v.idsSoFar, from, to)
	if !v.isLast(to) && (v.noVisibleText(from, to) || v.sent > 0 && to-v.sent < v.interval) {
		return b
	}
	v.sent = to
	return v.eventEncoder.tokens(b, from, to)
}

func (v *sglangEncoder) answer(b []byte, _, to int) []byte {
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

func (v *sglangEncoder) whole(b []byte) []byte {
	v.soFar, v.idsSoFar = v.text(nil, 0, v.output), v.ids(nil, 0, v.output)
	return v.eventEncoder.whole(b)
}
