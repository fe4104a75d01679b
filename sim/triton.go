package sim

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

var tritonStream = &dialect{
	paths:     []string{wire.TritonStreamPath("{model}"), "/v2/models/{model}/versions/{version}/generate_stream"},
	mime:      "text/event-stream",
	frame:     sseFrame,
	read:      readTriton,
	errorBody: tritonErrorBody,
	streams:   true,
	// The first response decides the status.
	lateHead: true,
}

var tritonGenerate = &dialect{
	paths:     []string{tritonGeneratePath("{model}"), "/v2/models/{model}/versions/{version}/generate"},
	read:      readTriton,
	errorBody: tritonErrorBody,
}

// tritonPages exist only on this server, which has no other models page. Its only
// model is TensorRT-LLM's ensemble, or vLLM's.
var tritonPages = map[string]page{
	"GET /v1/models": notFound,
	"GET " + wire.TritonServerPath: func(s *Server, w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"name": "triton", "version": s.emulated.version, "extensions": []string{"classification", "model_repository", "generate"}})
	},
	"POST " + wire.TritonIndexPath: func(s *Server, w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, []wire.TritonIndexEntry{{Name: s.opt.Model, Version: "1", State: "READY"}})
	},
	"GET " + wire.TritonConfigPath("{model}"): func(s *Server, w http.ResponseWriter, r *http.Request) {
		c := wire.TritonModelConfig{Name: r.PathValue("model"), Platform: "ensemble", Input: []wire.TritonTensor{{Name: "text_input"}, {Name: "max_tokens"}}}
		if s.emulated.name == "triton-vllm" {
			c.Platform, c.Backend, c.Input[1].Name = "", "vllm", "sampling_parameters"
		}
		writeJSON(w, c)
	},
}

func tritonErrorBody(_ *emulatedServer, c *apiError) []byte {
	return appendJSON(nil, tritonErrorResponse{Error: c.message})
}

func readTriton(in *incoming) (*generation, error) {
	var q struct {
		wire.TritonRequest
		StopWords wire.OpenAIStop `json:"stop_words"` // a list is also allowed
	}
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	w := params{limit: q.MaxTokens, min: max(q.MinTokens, q.MinLength)}
	w.ignoreEOS = q.EndID != nil && (*q.EndID < 0 || *q.EndID > words.Size) // an id outside the vocabulary is never generated
	// TensorRT-LLM compares whole tokens after sending them.
	stop := stops{strings: q.StopWords, min: w.min, include: true, atEnd: true}
	wantsStream := q.Stream
	if o := q.Parameters; o != nil {
		w = params{limit: o.MaxTokens, min: o.MinTokens, ignoreEOS: o.IgnoreEOS}
		stop = stops{strings: o.Stop, ids: o.StopTokenIDs, min: o.MinTokens, include: o.IncludeStop, always: true}
		wantsStream = o.Stream
	}
	if wantsStream && strings.HasSuffix(in.r.URL.Path, "/generate") {
		return nil, errors.New("generate expects model to produce exactly 1 response, use generate stream for model types that generate various number of responses")
	}
	p := in.newPrompt()
	p.AddText(q.TextInput)
	a, err := in.generation(p, w)
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stop)
	v := &tritonEncoder{q: &q.TritonRequest, served: in.r.PathValue("model")}
	if q.Parameters != nil && !q.ExcludeInputInOutput {
		v.echo = string(quoted(nil, q.TextInput))
	}
	v.eventEncoder = eventEncoder{generation: a, frame: sseFrame, appendJSON: v.response}
	a.encoder = v
	return a, nil
}

// tritonEncoder has no end marker: the stream ends when the connection is closed.
type tritonEncoder struct {
	eventEncoder
	q      *wire.TritonRequest
	served string // the model name in the path
	echo   string // the prompt, which the vLLM backend repeats unless disabled
}

func (v *tritonEncoder) response(b []byte, from, to int) []byte {
	begin := from
	if v.q.AccumulateTokens {
		begin = 0
	}
	b = strconv.AppendQuote(append(b, `{"model_name":`...), v.served)
	b = append(b, `,"model_version":"1","sequence_end":false,"sequence_id":0,"sequence_start":false,"text_output":"`...)
	if begin == 0 {
		b = append(b, v.echo...)
	}
	b = append(v.text(b, begin, to), '"')
	if v.fx.noUsage {
		return append(b, '}')
	}
	if v.q.ReturnNumInputTokens {
		b = strconv.AppendInt(append(b, `,"num_input_tokens":`...), int64(v.Tokens), 10)
	}
	if v.q.ReturnNumOutputTokens {
		n := to - from
		if v.isLast(to) {
			n = max(0, n+v.fx.miscount)
		}
		b = strconv.AppendInt(append(b, `,"num_output_tokens":`...), int64(n), 10)
	}
	if v.q.ReturnFinishReason {
		b = append(b, `,"finish_reason":`...)
		if v.isLast(to) {
			b = append(append(append(b, '"'), v.finish...), '"')
		} else {
			b = append(b, "null"...)
		}
	}
	return append(b, '}')
}
