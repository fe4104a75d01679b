package workload

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"

	"tacho"
)

// A Survey is what a workload holds, counted without sending it.
type Survey struct {
	Sessions, Requests int
	Input, Output      []int           // tokens of each request; answers that it will quote are not counted
	Turns              []int           // of each session
	Labels             map[string]int  // requests by KEY=VALUE
	Shared, Units      int             // of the units that all prompts are made of, those that begin a prompt as they began an earlier one
	AudioS             float64         // seconds of sound in all of them
	Samples            []tacho.Session // the first ones
	Forms              map[string]int  // requests by what they are sent as
	Block              int             // units that are shared together
	seen               map[uint64]bool // beginnings of prompts, by whole blocks
	seed               maphash.Seed
}

// Look surveys the first sessions of a workload, all of them if limit is 0.
// Prompts are compared in blocks of so many units, as a prefix cache does:
// token ids where they are known, else words. It calls each for every session.
func Look(w tacho.Source, limit, samples, block int, each func(*tacho.Session) error) (*Survey, error) {
	if block < 1 {
		return nil, fmt.Errorf("blocks of %d tokens: at least 1 is needed", block)
	}
	s := &Survey{Labels: map[string]int{}, Forms: map[string]int{}, Block: block, seen: map[uint64]bool{}, seed: maphash.MakeSeed()}
	for i := uint64(0); limit == 0 || i < uint64(limit); i++ {
		one, err := w.Session(i)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return s, err
		}
		if len(s.Samples) < samples {
			s.Samples = append(s.Samples, one)
		}
		s.add(&one)
		if err := each(&one); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *Survey) add(one *tacho.Session) {
	s.Sessions++
	s.Turns = append(s.Turns, len(one.Turns))
	for t := range one.Turns {
		q := &one.Turns[t].Request
		s.Requests++
		s.Input, s.Output = append(s.Input, q.InputTokens), append(s.Output, q.MaxTokens)
		for _, l := range q.Labels {
			s.Labels[l.Key+"="+l.Value]++
		}
		s.compare(q)
	}
}

// compare counts how far the prompt begins like an earlier one.
func (s *Survey) compare(q *tacho.Request) {
	h := &blockHasher{survey: s}
	h.hash.SetSeed(s.seed)
	switch {
	case q.Input.IDs != nil:
		s.Forms["token ids"]++
		for _, id := range q.Input.IDs {
			h.add(string([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}))
		}
	case q.Input.Messages != nil:
		s.Forms["messages"]++
		s.AudioS += q.AudioS
		for _, m := range q.Input.Messages {
			if m.Answer > 0 { // the same answer is the same text, whatever it is
				h.add(fmt.Sprintf("\x00%d.%d", q.Session, m.Answer))
				continue
			}
			h.addText(m.Content)
		}
	case q.Input.Audio != nil:
		s.Forms["audio"]++
		s.AudioS += q.AudioS
	default:
		s.Forms["text"]++
		h.addText(q.Input.Text)
	}
}

// A blockHasher goes through one prompt.
type blockHasher struct {
	survey *Survey
	hash   maphash.Hash // of all units so far
	units  int
	parted bool // it is no longer like an earlier one
}

func (h *blockHasher) addText(text string) {
	for word := range strings.FieldsSeq(text) {
		h.add(word)
	}
}

func (h *blockHasher) add(unit string) {
	_, _ = h.hash.WriteString(unit) // never fails
	_ = h.hash.WriteByte(0)         // never fails
	h.units++
	h.survey.Units++
	if h.units%h.survey.Block != 0 {
		return
	}
	key := h.hash.Sum64()
	if h.survey.seen[key] && !h.parted {
		h.survey.Shared += h.survey.Block
	} else {
		h.parted = true
	}
	h.survey.seen[key] = true
}
