package sim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

// A page is a handler that needs no model or returns a whole answer.
type page func(s *Server, w http.ResponseWriter, r *http.Request)

// pages exist on every emulated server.
var pages = map[string]page{
	"GET /health":                           (*Server).health,
	"GET /ping":                             (*Server).health,
	"GET /health_generate":                  (*Server).health,
	"GET /version":                          (*Server).version,
	"GET /load":                             (*Server).serverLoad,
	"GET /metrics":                          (*Server).metricsPage,
	"GET /prometheus/metrics":               (*Server).metricsPage,
	"GET " + wire.OpenAIModelsPath:          (*Server).models,
	"POST " + wire.OpenAITokenizePath:       (*Server).tokenize,
	"POST " + wire.OpenAIDetokenizePath:     (*Server).detokenize,
	"POST /reset_prefix_cache":              (*Server).resetPrefixCache,
	"GET " + wire.TGIInfoPath:               (*Server).tgiInfo,
	"GET " + wire.SGLangFlushCachePath:      (*Server).flushCache,
	"POST " + wire.SGLangFlushCachePath:     (*Server).flushCache,
	"GET " + wire.SGLangServerInfoPath:      (*Server).serverInfo,
	"GET /get_server_info":                  (*Server).serverInfo,
	"GET " + wire.SGLangModelInfoPath:       (*Server).modelInfo,
	"GET /get_model_info":                   (*Server).modelInfo,
	"GET " + wire.LlamaCppPropsPath:         (*Server).props,
	"GET " + wire.OllamaVersionPath:         (*Server).version,
	"GET " + wire.OllamaTagsPath:            (*Server).tags,
	"GET " + wire.OllamaPsPath:              (*Server).tags,
	"POST " + wire.OllamaShowPath:           (*Server).show,
	"POST " + wire.AnthropicCountTokensPath: (*Server).countTokens,
	"GET /sim/truth":                        (*Server).truthPage,
	"GET /sim/lateness":                     (*Server).lateness,
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // it fails only if the client disconnected
}

// readJSON decodes the body of a request and reports success. If it fails, readJSON
// has already sent the error.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit)).Decode(into); err != nil {
		badRequest(w, "parse the request: "+err.Error())
		return false
	}
	return true
}

func badRequest(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	writeJSON(w, openaiErrorResponse{Error: openaiError{Message: message, Type: "BadRequestError", Code: http.StatusBadRequest}})
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.emulated.name == "llamacpp" {
		writeJSON(w, map[string]string{"status": "ok"})
	}
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]string{"version": s.emulated.version})
}

func (s *Server) serverLoad(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]int64{"server_load": s.counters.inFlight.Load()})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	list := wire.OpenAIModelList{Object: "list"}
	for _, name := range append([]string{s.opt.Model}, s.opt.Adapters...) {
		list.Data = append(list.Data, wire.OpenAIModel{
			ID: name, Object: "model", Created: s.clock.start.Unix(), OwnedBy: cmp.Or(s.emulated.owner, s.emulated.name),
			Root: s.opt.Model, MaxModelLen: s.opt.MaxModelLen,
		})
	}
	writeJSON(w, list)
}

func (s *Server) tgiInfo(w http.ResponseWriter, _ *http.Request) {
	concurrent := s.opt.MaxConcurrent
	if concurrent == 0 {
		concurrent = 1 << 20
	}
	writeJSON(w, wire.TGIInfo{
		ModelID: s.opt.Model, MaxConcurrentRequests: concurrent, MaxBestOf: 1, MaxStopSequences: 4,
		MaxInputTokens: s.opt.MaxModelLen - 1, MaxTotalTokens: s.opt.MaxModelLen, MaxClientBatchSize: 4,
		Router: "text-generation-router", Version: s.emulated.version,
	})
}

func (s *Server) serverInfo(w http.ResponseWriter, _ *http.Request) {
	l := s.model.load()
	writeJSON(w, sglangServerInfo{
		ModelPath: s.opt.Model, ServedModelName: s.opt.Model, ContextLength: s.opt.MaxModelLen,
		MaxRunningRequests: l.maxRunning, Version: s.emulated.version,
		InternalStates: []sglangInternalState{{LastGenThroughput: perSecond(s.counters.generated.Load(), l.busy)}},
	})
}

func (s *Server) modelInfo(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, sglangModelInfo{ModelPath: s.opt.Model, TokenizerPath: s.opt.Model, IsGeneration: true})
}

func (s *Server) props(w http.ResponseWriter, _ *http.Request) {
	p := wire.LlamaCppProps{TotalSlots: max(1, s.model.load().maxRunning), ModelPath: s.opt.Model, ModelAlias: s.opt.Model, BuildInfo: s.emulated.version}
	p.DefaultGenerationSettings.NCtx = s.opt.MaxModelLen
	writeJSON(w, p)
}

func (s *Server) tags(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"models": []any{map[string]any{"name": s.opt.Model, "model": s.opt.Model, "size": 0}}})
}

func (s *Server) show(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{
		"details":    map[string]string{"family": "sim", "format": "none"},
		"model_info": map[string]any{"general.architecture": "sim", "sim.context_length": s.opt.MaxModelLen},
	})
}

// resetPrefixCache fails while requests hold blocks, as in vLLM.
func (s *Server) resetPrefixCache(w http.ResponseWriter, _ *http.Request) {
	l := s.model.load()
	s.model.dropCache()
	writeJSON(w, map[string]bool{"success": l.running == 0})
}

// flushCache fails while requests run, as in SGLang.
func (s *Server) flushCache(w http.ResponseWriter, _ *http.Request) {
	if l := s.model.load(); l.running+l.waiting > 0 {
		http.Error(w, "Flush cache failed: requests are running.", http.StatusBadRequest)
		return
	}
	s.model.dropCache()
	_, _ = w.Write([]byte("Cache flushed.\n")) // it fails only if the client disconnected
}

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	var q wire.AnthropicRequest
	if !readJSON(w, r, &q) {
		return
	}
	var p prompt
	p.addAnthropic(&q)
	writeJSON(w, wire.AnthropicCountTokensResponse{InputTokens: p.Tokens})
}

// lateness names the simulator and reports the delay of writes behind the model, in seconds of model time.
func (s *Server) lateness(w http.ResponseWriter, _ *http.Request) {
	c := s.counters
	writeJSON(w, map[string]any{
		// It marks the results of a client that knows only the address.
		"simulator": "tacho",

		"writes": float64(c.ttft.count() + c.itl.count()), "late_s": s.clock.faster(time.Duration(c.late.Load())).Seconds(),
		"gaps": float64(c.itl.count()), "gap_s": c.itl.total(),
	})
}

func (s *Server) truthPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", ndjsonMime)
	for _, t := range s.truth.all() {
		if _, err := w.Write(append(appendJSON(nil, t), '\n')); err != nil {
			return // the client disconnected
		}
	}
}
