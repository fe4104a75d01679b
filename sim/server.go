// Package sim is an inference server without a GPU. It answers the protocols of
// package wire with the timing of a model, and logs its events, so a client's
// measurements can be checked against the log.
//
// The tokenizer is simple: a token is one word with the white space before it. A
// prompt has as many tokens as words, or as token ids. Every token of an answer is
// a space and a word, and /tokenize agrees. A second of audio is 100 tokens, and a
// picture or a video in a chat is 256.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/sim/step"
)

// Options configure the emulated server and its timing. The zero value is a server
// that answers immediately.
type Options struct {
	Profile *step.Profile // an engine with batching; nil: the fixed model of TTFT and ITL
	TTFT    time.Duration // fixed model: from the arrival of a request to its first token
	ITL     time.Duration // fixed model: from one token to the next

	Engine        string   // the emulated server, one of Engines; the profile's, or vllm, if empty
	Model         string   // model name; the profile's, or "sim", if empty
	Adapters      []string // names of LoRA adapters, which are also served as models
	MaxModelLen   int      // maximum prompt and answer together, in tokens; the profile's, or 131072, if 0
	ToolParser    bool     // parse tool calls, like vLLM with --enable-auto-tool-choice
	MaxConcurrent int      // refuse requests above this concurrency; 0: no limit
	Speedup       float64  // speed-up factor; 0 means 1
	Seed          uint64   // of all random numbers
	APIKey        string   // required of POST requests, as a bearer token or x-api-key; empty: no key
	Precise       bool     // the engine uses the kernel's timers: finer than the runtime's, but without fake time

	Faults []string // faults to inject: NAME[:ARG...][=RATE%][@START[+LENGTH][/PERIOD]], with a name of FaultKinds

	TruthLog    io.Writer // receives one line of JSON for each finished request; may be nil
	ForgetTruth bool      // keep no truth in memory
}

// A Server is the simulated inference server. It is an http.Handler. The caller
// owns the listener and calls Close when done.
type Server struct {
	opt           Options
	emulated      *emulatedServer
	mux           *http.ServeMux
	clock         *clock
	model         model
	blockTokens   int // tokens in a KV block, if the model caches prefixes
	defaultOutput int // maximum answer length if neither request nor profile sets one
	faults        *faultPlan
	truth         truthLog
	counters      *counters
	last          lastAnswer
	serial        atomic.Uint64 // number for requests without an id

	open    context.Context // until Close
	close   context.CancelFunc
	workers sync.WaitGroup
}

// New returns a server with the given options. It runs until Close.
func New(opt Options) (*Server, error) {
	if err := opt.complete(); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	faults, err := newFaultPlan(opt.Faults, opt.Seed)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	s := &Server{
		opt:           opt,
		emulated:      emulatedServerOf(opt.Engine),
		mux:           http.NewServeMux(),
		clock:         newClock(opt.Speedup),
		defaultOutput: 128,
		faults:        faults,
		truth:         truthLog{w: opt.TruthLog, forget: opt.ForgetTruth, limit: keepLimit},
		counters:      newCounters(opt.Speedup),
	}
	s.open, s.close = context.WithCancel(context.Background())
	if err := s.startModel(); err != nil {
		s.close()
		return nil, fmt.Errorf("simulate: %w", err)
	}
	s.startPauses()
	for _, d := range dialects {
		for _, p := range d.paths {
			s.mux.HandleFunc("POST "+p, s.generate(d))
		}
	}
	all := maps.Clone(pages)
	maps.Copy(all, s.emulated.pages)
	for pattern, page := range all {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { page(s, w, r) })
	}
	return s, nil
}

// complete sets defaults and validates the options.
func (o *Options) complete() error {
	if o.Speedup == 0 {
		o.Speedup = 1
	}
	if !(o.Speedup > 0) || math.IsInf(o.Speedup, 0) {
		return fmt.Errorf("speed-up factor %v: give a positive number", o.Speedup)
	}
	if o.TTFT < 0 || o.ITL < 0 {
		return fmt.Errorf("TTFT %v and ITL %v must not be negative", o.TTFT, o.ITL)
	}
	if o.MaxModelLen < 0 || o.MaxConcurrent < 0 {
		return fmt.Errorf("MaxModelLen %d and MaxConcurrent %d must not be negative", o.MaxModelLen, o.MaxConcurrent)
	}
	var p step.Profile
	if o.Profile != nil {
		p = *o.Profile
	}
	o.Faults = slices.Concat(p.Faults, o.Faults)
	o.Engine = cmp.Or(o.Engine, p.Engine, "vllm")
	o.Model = cmp.Or(o.Model, p.Model, "sim")
	o.MaxModelLen = cmp.Or(o.MaxModelLen, p.ContextTokens, 131072)
	if !slices.Contains(Engines(), o.Engine) {
		return spelling.Unknown("engine", o.Engine, Engines())
	}
	return nil
}

func (s *Server) startModel() error {
	if s.opt.Profile == nil {
		s.model = &fixedModel{clock: s.clock, ttft: s.opt.TTFT, itl: s.opt.ITL}
		return nil
	}
	m, err := newBatchModel(s.clock, *s.opt.Profile, s.opt.Seed, s.opt.Precise)
	if err != nil {
		return err
	}
	if s.opt.Profile.KV.PrefixCache {
		s.blockTokens = s.opt.Profile.KV.BlockTokens
	}
	s.model, s.defaultOutput = m, s.opt.Profile.Output.Max
	s.workers.Go(func() { m.drive(s.open) })
	return nil
}

// startPauses schedules the pause faults.
func (s *Server) startPauses() {
	for i := range s.faults.faults {
		f := &s.faults.faults[i]
		if f.kind.scope != perServer {
			continue
		}
		s.schedule(f, func() error {
			fx := noEffects()
			_ = f.kind.apply(&fx, f.args) // no error: it was applied once when it was parsed
			s.clock.stop(fx.pause)
			return nil
		})
	}
}

// schedule calls do whenever the fault begins, until do fails or the server is
// closed.
func (s *Server) schedule(f *fault, do func() error) {
	s.workers.Go(func() {
		at, again := f.next(0)
		for again && stall(s.open, max(1, at-s.sinceStart(time.Now()))) == nil && do() == nil {
			at, again = f.next(at + 1)
		}
	})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if clock, ok := r.Context().Value(connKey{}).(requestClock); ok {
		// The client cannot see the end of the response, and send another request,
		// before the handler has returned.
		defer clock.nextRequest()
	}
	if s.opt.APIKey != "" && r.Method == http.MethodPost && !s.hasKey(r) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"invalid API key","type":"authentication_error","code":401}}`) // the client may have disconnected
		return
	}
	s.mux.ServeHTTP(w, r)
}

// hasKey reports whether a request has the API key.
func (s *Server) hasKey(r *http.Request) bool {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return bearer == s.opt.APIKey || r.Header.Get("X-Api-Key") == s.opt.APIKey
}

// Close ends all unfinished answers. It returns the error of the truth log.
func (s *Server) Close() error {
	s.close()
	s.workers.Wait()
	return s.truth.failed()
}

// Truth returns the log of the finished requests in the order of their end. After
// tens of millions of tokens the oldest are dropped.
func (s *Server) Truth() []Truth { return s.truth.all() }

// Engine is the name of the emulated server.
func (s *Server) Engine() string { return s.emulated.name }

// sinceStart converts a wall-clock time to an offset from the start.
func (s *Server) sinceStart(t time.Time) time.Duration { return t.Sub(s.clock.start) }

// full reports whether the current request, which is already counted, exceeds
// MaxConcurrent.
func (s *Server) full() bool {
	return s.opt.MaxConcurrent > 0 && s.counters.inFlight.Load() > int64(s.opt.MaxConcurrent)
}
