// Package sim is an inference server without a GPU: it answers the protocols
// of package wire, takes as long as its model says, and keeps a log of what it
// did and when, against which a client's measurements can be checked.
//
// Its tokenizer is as simple as one can be: a token is one word with the white
// space before it. Prompts are counted by that rule (a prompt of token ids by
// its length), every token of an answer is a space and a word, and /tokenize
// agrees. A second of sound is 100 tokens, and a picture or a video in a chat is
// 256.
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
	"sync"
	"sync/atomic"
	"time"

	"tacho/internal/spelling"
	"tacho/sim/step"
)

// Options say what the server poses as and how fast it is. The zero value is a
// server that answers at once.
type Options struct {
	Profile *step.Profile // an engine that batches; nil is the fixed model of TTFT and ITL
	TTFT    time.Duration // fixed model: from the arrival of a request to its first token
	ITL     time.Duration // fixed model: from one token to the next

	Engine        string   // the server it poses as, one of Engines; the profile's, or vllm, if empty
	Model         string   // name of the model served; the profile's, or "sim", if empty
	Adapters      []string // names of adapters of the model, which are served, too
	MaxModelLen   int      // longest prompt and answer together, in tokens; the profile's, or 131072, if 0
	ToolParser    bool     // it understands tool calls, like vLLM with --enable-auto-tool-choice
	MaxConcurrent int      // more requests than this at once are refused; 0 is no limit
	Speedup       float64  // how much faster than the real thing it runs; 0 is 1
	Seed          uint64   // of all that is random
	Precise       bool     // the engine sleeps by the system's timers: finer than the runtime's, but blind to fake time

	Faults []string // what shall go wrong: NAME[:ARG...][=RATE%][@START[+LENGTH][/PERIOD]], with a name of FaultKinds

	TruthLog    io.Writer // gets one line of JSON for each finished request; may be nil
	ForgetTruth bool      // keep no truth in memory
}

// A Server is the simulated inference server. It is an http.Handler; the
// caller owns the listener, and calls Close when done.
type Server struct {
	opt           Options
	pose          *pose
	mux           *http.ServeMux
	clock         *clock
	model         model
	blockTokens   int // tokens in a KV block, if the model keeps prefixes
	defaultOutput int // longest answer if nobody gave a length
	faults        *faultPlan
	truth         truthLog
	counters      *counters
	serial        atomic.Uint64 // names requests that have no name

	open    context.Context // until Close
	close   context.CancelFunc
	workers sync.WaitGroup
}

// New returns a server with the given options. It works until Close.
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
		pose:          poseOf(opt.Engine),
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
	maps.Copy(all, s.pose.pages)
	for pattern, page := range all {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { page(s, w, r) })
	}
	return s, nil
}

// complete fills in the defaults and checks the options.
func (o *Options) complete() error {
	if o.Speedup == 0 {
		o.Speedup = 1
	}
	if !(o.Speedup > 0) || math.IsInf(o.Speedup, 0) {
		return fmt.Errorf("a speedup of %v: give a positive number", o.Speedup)
	}
	if o.TTFT < 0 || o.ITL < 0 {
		return fmt.Errorf("TTFT %v and ITL %v must not be negative", o.TTFT, o.ITL)
	}
	if o.MaxModelLen < 0 || o.MaxConcurrent < 0 {
		return fmt.Errorf("a model length of %d tokens for %d requests at once: neither may be negative", o.MaxModelLen, o.MaxConcurrent)
	}
	var p step.Profile
	if o.Profile != nil {
		p = *o.Profile
	}
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
		s.model = &fixed{clock: s.clock, ttft: s.opt.TTFT, itl: s.opt.ITL}
		return nil
	}
	m, err := newBatched(s.clock, *s.opt.Profile, s.opt.Seed, s.opt.Precise)
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

// startPauses stops the clock when the plan of faults says so.
func (s *Server) startPauses() {
	for i := range s.faults.faults {
		f := &s.faults.faults[i]
		if f.kind.scope != perServer {
			continue
		}
		s.schedule(f, func() error {
			fx := noEffects()
			_ = f.kind.apply(&fx, f.args) // it was applied once when it was parsed
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
		// The client cannot know the end of the response, and send another
		// request, before the handler has returned.
		defer clock.nextRequest()
	}
	s.mux.ServeHTTP(w, r)
}

// Close ends the answers that are still being written. Its error is that of the
// truth log.
func (s *Server) Close() error {
	s.close()
	s.workers.Wait()
	return s.truth.failed()
}

// Truth returns what happened to the requests that are over, in the order in
// which they ended. After some tens of millions of tokens it has forgotten the
// oldest.
func (s *Server) Truth() []Truth { return s.truth.all() }

// Engine is the name of the server it poses as.
func (s *Server) Engine() string { return s.pose.name }

// sinceStart is by the wall clock.
func (s *Server) sinceStart(t time.Time) time.Duration { return t.Sub(s.clock.start) }

// full says whether there is no room for the request that asks. It has already
// been counted.
func (s *Server) full() bool {
	return s.opt.MaxConcurrent > 0 && s.counters.inFlight.Load() > int64(s.opt.MaxConcurrent)
}
