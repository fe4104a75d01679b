package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

// tgiStream sends its header immediately, so errors come inside the stream.
var tgiStream = &dialect{
	paths:      []string{wire.TGIGenerateStreamPath},
	mime:       "text/event-stream",
	frame:      tgiFrame,
	read:       readTGI,
	errorBody:  tgiErrorBody,
	invalid:    http.StatusUnprocessableEntity,
	overloaded: http.StatusTooManyRequests,
	inBand:     true,
	streams:    true,
	keepAlive:  15 * time.Second,
}

var tgiWhole = &dialect{
	read:       readTGI,
	errorBody:  tgiErrorBody,
	invalid:    http.StatusUnprocessableEntity,
	overloaded: http.StatusTooManyRequests,
}

// generate is a path shared by several servers. The position of the prompt in the
// body determines the server; otherwise it is the emulated one.
var generate = &dialect{
	paths:     []string{wire.TGIGeneratePath},
	errorBody: tgiErrorBody,
	pick: func(p *emulatedServer, body []byte) *dialect {
		var q struct {
			Inputs   json.RawMessage `json:"inputs"`
			Sampling json.RawMessage `json:"sampling_params"`
		}
		_ = json.Unmarshal(body, &q) // the dialect reports the error
		if q.Inputs != nil {
			return tgiWhole
		}
		return sglangGenerate
	},
}

func tgiErrorBody(_ *emulatedServer, c *apiError) []byte {
	return appendJSON(nil, tgiErrorResponse{Error: c.message, ErrorType: tgiErrorType(c.status)})
}

// tgiFrame has no blank before the data.
var tgiFrame = frame{"data:", wire.SSEEnd}

func tgiErrorType(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return "overloaded"
	case http.StatusUnprocessableEntity:
		return "validation"
	case http.StatusInternalServerError:
		return "incomplete_generation"
	}
	return "generation"
}

func readTGI(in *incoming) (*generation, error) {
	var q tgiGenerateRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	o := &q.Parameters
	if o.Temperature != nil && *o.Temperature <= 0 {
		return nil, errors.New("`temperature` must be strictly positive")
	}
	if o.TopP != nil && (*o.TopP <= 0 || *o.TopP >= 1) {
		return nil, errors.New("`top_p` must be > 0.0 and < 1.0")
	}
	p := in.newPrompt()
	p.AddText(q.Inputs)
	if o.Truncate != nil && *o.Truncate > 0 && *o.Truncate < p.Tokens {
		whole := p
		p = in.newPrompt()
		p.addLast(q.Inputs, *o.Truncate)
		p.Chars = whole.Chars
	}
	a, err := in.generation(p, params{limit: o.MaxNewTokens})
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stops{strings: o.Stop, include: true, atEnd: true})
	h := in.w.Header()
	h.Set("X-Compute-Type", "cpu+simulated")
	h.Set("X-Compute-Characters", strconv.Itoa(p.Chars))
	h.Set("X-Accel-Buffering", "no")
	a.encoder = &tgiEncoder{generation: a, details: o.Details, header: h}
	return a, nil
}

// addLast adds the last n tokens of a text, as TGI does when it truncates.
func (p *prompt) addLast(text string, n int) {
	skip := words.Count(text) - n
	for w := range words.Each(text) {
		if skip--; skip < 0 {
			p.Add(words.Hash(text[w.Start:w.Stop]))
		}
	}
}

// tgiEncoder writes one event for each token. The last event contains the whole
// text.
type tgiEncoder struct {
	*generation
	details bool
	header  http.Header
}

func (v *tgiEncoder) early(b []byte) []byte { return b }

func (v *tgiEncoder) tokens(b []byte, from, to int) []byte {
	for k := from; k < to; k++ {
		b = v.token(b, k)
	}
	return b
}

func (v *tgiEncoder) token(b []byte, k int) []byte {
	b = strconv.AppendInt(append(b, tgiFrame.begin+`{"index":`...), int64(k+1), 10)
	b = append(b, `,"token":{`...)
	b = v.appendToken(b, k)
	b = append(b, `},"generated_text":`...)
	if !v.isLast(k + 1) {
		return append(b, `null,"details":null}`+tgiFrame.end...)
	}
	b = append(v.text(append(b, '"'), 0, v.output), `","details":`...)
	if v.details && !v.fx.noUsage {
		b = appendJSON(b, tgiStreamDetails{
			FinishReason: v.tgiReason(), GeneratedTokens: v.counted(v.output), InputLength: v.Tokens,
		})
	} else {
		b = append(b, "null"...)
	}
	return append(b, "}"+tgiFrame.end...)
}

// appendToken appends the members of a token. The end of sequence has a text that
// is not part of the answer.
func (v *tgiEncoder) appendToken(b []byte, k int) []byte {
	b = strconv.AppendInt(append(b, `"id":`...), int64(v.tokenID(k)), 10)
	if v.eos && v.isLast(k+1) {
		return append(b, `,"text":"<|eot_id|>","logprob":-0.1,"special":true`...)
	}
	b = v.text(append(b, `,"text":"`...), k, k+1)
	return append(b, `","logprob":-0.1,"special":false`...)
}

// tgiReason returns TGI's name of the finish reason.
func (a *generation) tgiReason() string {
	switch {
	case a.stoppedBy() != "":
		return "stop_sequence"
	case a.finish == finishStop:
		return "eos_token"
	}
	return a.finish
}

func (v *tgiEncoder) last(b []byte) []byte { return b }

// whole also sets TGI's timing headers.
func (v *tgiEncoder) whole(b []byte) []byte {
	ms := func(name string, d time.Duration) { v.header.Set(name, strconv.FormatInt(d.Milliseconds(), 10)) }
	ms("X-Total-Time", v.took(v.arrivedAt, v.lastAt))
	ms("X-Validation-Time", 0)
	ms("X-Queue-Time", v.took(v.arrivedAt, v.admittedAt))
	ms("X-Inference-Time", v.took(v.admittedAt, v.lastAt))
	ms("X-Time-Per-Token", v.took(v.admittedAt, v.lastAt)/time.Duration(v.output))
	v.header.Set("X-Prompt-Tokens", strconv.Itoa(v.Tokens))
	v.header.Set("X-Generated-Tokens", strconv.Itoa(v.counted(v.output)))
	b = append(v.text(append(b, `{"generated_text":"`...), 0, v.output), '"')
	if v.details && !v.fx.noUsage {
		b = append(b, fmt.Sprintf(`,"details":{"finish_reason":%q,"generated_tokens":%d,"seed":null,"prefill":[],"tokens":[`, v.tgiReason(), v.counted(v.output))...)
		for k := range v.output {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(v.appendToken(append(b, '{'), k), '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, '}')
}
