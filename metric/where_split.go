package metric

import (
	"cmp"
	"slices"
)

// A splitter makes parts of a time.
type splitter struct {
	parts []TimePart
	whole float64
}

// add takes in a part; parts of the same places are one.
func (s *splitter) add(ms float64, source string, of ...Place) {
	slices.SortFunc(of, func(a, b Place) int { return slices.Index(places, a) - slices.Index(places, b) })
	for i := range s.parts {
		if slices.Equal(s.parts[i].Of, of) {
			s.parts[i].Millis += ms
			return
		}
	}
	s.parts = append(s.parts, TimePart{Of: of, Millis: ms, Source: source})
}

// inside splits a time that the server tells, or that it is somewhere in, into
// the parts it tells and a rest: those it does not tell, and others.
func (s *splitter) inside(ms float64, t *account, tells []tellable, rest ...Place) {
	source := t.source
	for _, x := range tells {
		if x.ms == nil {
			rest = append(rest, x.of...)
			continue
		}
		s.add(*x.ms, t.source, x.of...)
		ms -= *x.ms
	}
	if slices.Contains(rest, Network) {
		source = restOf(source)
	}
	s.add(ms, source, rest...)
}

// A tellable is a time that a server may tell.
type tellable struct {
	ms *float64
	of []Place
}

func restOf(source string) string {
	if source == "" {
		return byMarks
	}
	return byMarks + " less " + source
}

// server splits the time from sent to the last token, of which the first token
// came after first.
func (s *splitter) server(first, stream float64, t *account) {
	queue, prefill := tellable{t.queue, []Place{ServerQueue}}, tellable{t.prefill, []Place{Prefill}}
	decode := tellable{t.decode, []Place{Decode}}
	before, after := []tellable{queue, prefill}, []tellable{decode}
	if stream == 0 {
		after = nil // all came at once, or was read only
	}
	whole := slices.Concat(before, after)
	if t.work != nil && (t.prefill == nil || t.decode == nil) {
		whole = []tellable{queue, {t.work, []Place{Prefill, Decode}}}
	}
	told := t.total != nil && !slices.ContainsFunc(whole, func(x tellable) bool { return x.ms == nil })
	switch {
	case t.total != nil && (told || t.toFirst == nil):
		s.inside(*t.total, t, whole, FrontEnd)
		s.add(first+stream-*t.total, restOf(t.source), FrontEnd, Network)
	case t.total != nil:
		s.inside(*t.toFirst, t, before, FrontEnd)
		s.inside(*t.total-*t.toFirst, t, after, FrontEnd)
		s.add(first+stream-*t.total, restOf(t.source), FrontEnd, Network)
	case t.toFirst != nil:
		s.inside(*t.toFirst, t, before, FrontEnd)
		s.add(first-*t.toFirst, restOf(t.source), FrontEnd, Network)
		s.inside(stream, t, after, FrontEnd, Network)
	default:
		s.inside(first, t, before, FrontEnd, Network)
		if stream > 0 {
			s.inside(stream, t, after, FrontEnd, Network)
		}
	}
}

// crossing takes a round trip out of the rest that it is in: a request has to
// get there, and its answer back.
func (s *splitter) crossing(roundTrip float64) {
	for i := range s.parts {
		p := &s.parts[i]
		if slices.Contains(p.Of, Network) && p.Millis > 0 && roundTrip > 0 {
			taken := min(roundTrip, p.Millis)
			p.Millis -= taken
			s.add(taken, byHandshake, Network)
			return
		}
	}
}

// settle takes what is below nothing from the largest part; false if that is
// more than clocks can be apart.
func (s *splitter) settle() bool {
	slices.SortStableFunc(s.parts, func(a, b TimePart) int {
		return cmp.Compare(slices.Index(places, a.Of[0]), slices.Index(places, b.Of[0]))
	})
	largest, below := 0, 0.0
	for i := range s.parts {
		if s.parts[i].Millis > s.parts[largest].Millis {
			largest = i
		}
		if s.parts[i].Millis < 0 {
			below += s.parts[i].Millis
			s.parts[i].Millis = 0
		}
	}
	s.parts[largest].Millis += below
	for i := range s.parts {
		s.parts[i].Share = s.parts[i].Millis / max(s.whole, 1e-9)
	}
	return -below <= max(splitError*s.whole, 1)
}

// split is where the time went; false if what the server tells cannot be of
// these requests.
func (s *spent) split(t *account, roundTrip float64) (TimeSplit, bool) {
	if t == nil {
		t = &account{}
	}
	n := float64(max(s.requests, 1))
	out := splitter{whole: millis(s.whole()) / n}
	out.add(millis(s.queue)/n, byMarks, ClientQueue)
	out.add(millis(s.client)/n, byMarks, ClientWork)
	out.add(millis(s.connect)/n, byMarks, Connect)
	out.server(millis(s.first)/n, millis(s.stream)/n, t)
	out.crossing(roundTrip)
	fits := out.settle()
	return TimeSplit{Requests: s.requests, Millis: out.whole, Parts: out.parts}, fits
}

// unlimited makes the wait for a limit the client's own.
func (s *spent) unlimited() { s.client, s.queue = s.client+s.queue, 0 }

// where is nil where nothing succeeded.
func (s *Summary) where() *Where {
	all := &s.spent
	if all.requests == 0 {
		return nil
	}
	if s.Config.MaxConcurrency == 0 { // there is nothing to queue for
		all.unlimited()
		s.slowest.unlimited()
	}
	w := &Where{}
	answers := all.answered()
	page, note := written(s.Instruments, s.Completed)
	w.Note = note
	if s.buffered() {
		answers, page, w.Note = nil, nil, "streams were held back on their way, so the server's own times are left out here"
	}
	roundTrip := 0.0
	if s.Config.RoundTripMillis != nil {
		roundTrip = *s.Config.RoundTripMillis
	}
	for _, t := range []*account{better(answers, page), answers, nil} {
		var fits bool
		if w.All, fits = all.split(t, roundTrip); fits {
			break
		}
		w.Note = "the server's own times do not fit into ours, so they are left out here"
	}
	w.Bottleneck, w.Sentence = s.bottleneck(&w.All)
	if s.slowest.requests > 0 {
		w.slowest(s, answers != nil, roundTrip)
	}
	return w
}

// better is what of two tells more: a page of an engine knows its front end,
// and answers are of these very requests.
func better(answers, page *account) *account {
	if answers == nil || page != nil && page.count() > answers.count() {
		return page
	}
	return answers
}

func (t *account) count() (n int) {
	for _, f := range []*float64{t.queue, t.prefill, t.decode, t.total} {
		if f != nil {
			n++
		}
	}
	return n
}
