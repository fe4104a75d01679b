package workload

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"

	"github.com/tacho-bench/tacho"
)

// Survey describes the contents of a workload, counted without sending it.
type Survey struct {
	Sessions, Requests int
	Input, Output      []int           // tokens of each request; quoted answers are not counted
	Turns              []int           // turns of each session
	Labels             map[string]int  // requests by KEY=VALUE
	Shared, Units      int             // Units is the number of units (tokens or words) in all prompts, Shared the number that repeat the beginning of an earlier prompt
	AudioS             float64         // total seconds of audio
	Samples            []tacho.Session // the first sessions
	Forms              map[string]int  // requests by form of input
	Block              int             // units per block
	seen               map[uint64]bool // hashes of prompt prefixes in complete blocks
	seed               maphash.Seed
}

// NewSurvey surveys the first limit sessions of a workload, all if limit is 0. It
// compares prompts in blocks of units, like a prefix cache: token ids if known, otherwise
// words. It calls each for every session.
func NewSurvey(w tacho.Source, limit, samples, block int, each func(*tacho.Session) error) (*Survey, error) {
	if block < 1 {
		return nil, fmt.Errorf("blocks of %d tokens: must be at least 1", block)
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

// compare counts the units that repeat the beginning of an earlier prompt.
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
			if m.Answer > 0 { // the same answer is the same text
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

// blockHasher hashes one prompt.
type blockHasher struct {
	survey *Survey
	hash   maphash.Hash // hash of all units so far
	units  int
	parted bool // set at the first difference from all earlier prompts
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
