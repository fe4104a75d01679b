package sim

import (
	"net/http"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

// lmdeployGenerate shares its path with other dialects, see generate.
var lmdeployGenerate = &dialect{
	mime:        sseMime,
	read:        readLMDeploy,
	errorBody:   openAIErrorBody,
	streamError: openAIStreamError,
}

func readLMDeploy(in *incoming) (*generation, error) {
	var q wire.LMDeployRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.Prompt)
	p.AddIDs(q.InputIDs)
	if q.MaxTokens == 0 {
		q.MaxTokens = 128 // the protocol's default
	}
	a, err := in.generation(p, params{limit: q.MaxTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stops{strings: q.Stop, ids: q.StopTokenIDs, include: q.IncludeStop})
	a.encoder = &eventEncoder{generation: a, frame: sseFrame, appendJSON: a.lmdeployJSON, after: doneEvent}
	return a, nil
}

// lmdeployJSON appends an event with the new text and cumulative counts.
func (a *generation) lmdeployJSON(b []byte, from, to int) []byte {
	b = a.text(append(b, `{"text":"`...), from, to)
	b = a.ids(append(b, `","output_ids":[`...), from, to)
	m := lmdeployMetaInfo{PromptTokens: a.Tokens, CompletionTokens: a.counted(to)}
	if a.isLast(to) {
		m.FinishReason = &lmdeployFinishReason{Type: a.finish}
	}
	b = append(b, `],"meta_info":`...)
	if a.fx.noUsage {
		return append(appendJSON(append(b, `{"finish_reason":`...), m.FinishReason), "}}"...)
	}
	return append(appendJSON(b, m), '}')
}

// lmdeployPages exist only on this server.
var lmdeployPages = map[string]page{
	"GET /openapi.json": openAPI(wire.LMDeploySchema),
	"POST " + wire.LMDeployEncodePath: func(_ *Server, w http.ResponseWriter, r *http.Request) {
		var q wire.LMDeployEncodeRequest
		if readJSON(w, r, &q) {
			ids := words.Encode(q.Input)
			writeJSON(w, wire.LMDeployEncodeResponse{InputIDs: ids, Length: len(ids)})
		}
	},
}

// openAPI returns a page with a server's description of its generate endpoint,
// whose body has the named schema. The order of members follows FastAPI.
func openAPI(schema string) page {
	doc := `{"openapi":"3.1.0","info":{"title":"FastAPI","version":"0.1.0"},"paths":{"/generate":{"post":{"summary":"Generate",` +
		`"operationId":"generate_generate_post","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/` + schema +
		`"}}},"required":true}}}},"components":{"schemas":{"` + schema + `":{"type":"object"}}}}`
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(doc)) // it fails only if the client disconnected
	}
}
