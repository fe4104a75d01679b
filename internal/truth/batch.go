package truth

import (
	"time"

	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/sim/step"
)

// A Batch is an engine with continuous batching: a step gives each running request
// a token and takes longer with more requests. Prompts are prefilled in a separate
// step, during which no request decodes.
type Batch struct {
	Slots   int
	Step    time.Duration
	PerSeq  time.Duration // added to a step for each running request
	Prefill time.Duration // for each prompt of Usual tokens
	Usual   int
}

// Servers returns a constructor of engines, one for each level.
func (b Batch) Servers() func(seed uint64) predict.Server {
	return func(uint64) predict.Server { return &batch{Batch: b} }
}

// most is the maximum throughput in requests/s for these lengths.
func (b Batch) most(input, output float64) float64 {
	steps := output * (b.Step.Seconds()/float64(b.Slots) + b.PerSeq.Seconds())
	return 1 / (b.Prefill.Seconds()*input/float64(b.Usual) + steps)
}

type batch struct {
	agenda
	Batch
	waiting, running []*job
	stepping         bool
}

// Add implements predict.Server.
func (s *batch) Add(now time.Duration, r *step.Request) error {
	s.now = max(s.now, now)
	s.waiting = append(s.waiting, s.accept(now, r))
	if !s.stepping {
		s.step()
	}
	return nil
}

// step admits waiting requests if they fit, and gives a token to each running request.
func (s *batch) step() {
	took := s.Step
	for len(s.waiting) > 0 && len(s.running) < s.Slots {
		j := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.running = append(s.running, j)
		took += s.Prefill * time.Duration(j.Prompt) / time.Duration(s.Usual)
	}
	s.stepping = len(s.running) > 0
	if !s.stepping {
		return
	}
	end := s.now + took + s.PerSeq*time.Duration(len(s.running))
	s.at(end, func(deliver func(*step.Emission)) {
		left := s.running[:0]
		for _, j := range s.running {
			j.tokens = append(j.tokens, end)
			if len(j.tokens) >= max(j.MaxNew, 1) {
				s.finish(j, deliver)
			} else {
				left = append(left, j)
			}
		}
		s.running = left
		s.step()
	})
}
