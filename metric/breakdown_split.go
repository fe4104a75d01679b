package metric

import (
	"cmp"
	"slices"
)

// A splitter divides a time into parts.
type splitter struct {
	parts []TimePart
	whole float64
}

// add adds a part. Parts with the same components are merged.
func (s *splitter) add(ms float64, source string, of ...Component) {
	slices.SortFunc(of, func(a, b Component) int { return slices.Index(places, a) - slices.Index(places, b) })
	for i := range s.parts {
		if slices.Equal(s.parts[i].Of, of) {
			s.parts[i].Millis += ms
			return
		}
	}
	s.parts = append(s.parts, TimePart{Of: of, Millis: ms, Source: source})
}

// inside divides a time into the parts reported by the server and a rest. The rest contains the parts
// not reported and the given components.
func (s *splitter) inside(ms float64, t *serverAccount, tells []reportable, rest ...Component) {
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

// A reportable is a time that a server may report.
type reportable struct {
	ms *float64
	of []Component
}

func restOf(source string) string {
	if source == "" {
		return byMarks
	}
	return byMarks + " minus " + source
}

// server divides the time from sent to the last token. The first token arrived after first.
func (s *splitter) server(first, stream float64, t *serverAccount) {
	queue, prefill := reportable{t.queue, []Component{ServerQueue}}, reportable{t.prefill, []Component{Prefill}}
	decode := reportable{t.decode, []Component{Decode}}
	before, after := []reportable{queue, prefill}, []reportable{decode}
	if stream == 0 {
		after = nil // all tokens came together, or none were generated
	}
	whole := slices.Concat(before, after)
	if t.work != nil && (t.prefill == nil || t.decode == nil) {
		whole = []reportable{queue, {t.work, []Component{Prefill, Decode}}}
	}
	known := t.total != nil && !slices.ContainsFunc(whole, func(x reportable) bool { return x.ms == nil })
	switch {
	case t.total != nil && (known || t.toFirst == nil):
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

// crossing subtracts one round trip from the rest that contains the network, because a request and its
// answer have to cross the network.
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

// settle adds negative parts to the largest part. It returns false if the negative time is larger than
// the error of clocks.
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

// split returns the breakdown. It returns false if the server's times cannot belong to these requests.
func (s *spent) split(t *serverAccount, roundTrip float64) (TimeSplit, bool) {
	if t == nil {
		t = &serverAccount{}
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

// unlimited counts the wait for a slot as time of the client.
func (s *spent) unlimited() { s.client, s.queue = s.client+s.queue, 0 }

// where returns nil if no request succeeded.
func (s *Summary) where() *Breakdown {
	all := &s.spent
	if all.requests == 0 {
		return nil
	}
	if s.Config.MaxConcurrency == 0 { // no limit, so no queue
		all.unlimited()
		s.slowest.unlimited()
	}
	w := &Breakdown{}
	answers := all.answered()
	page, note := written(s.Instruments, s.Completed)
	w.Note = note
	if s.buffered() {
		answers, page, w.Note = nil, nil, "streams were buffered on their way, so the server's times are left out"
	}
	roundTrip := 0.0
	if s.Config.RoundTripMillis != nil {
		roundTrip = *s.Config.RoundTripMillis
	}
	for _, t := range []*serverAccount{better(answers, page), answers, nil} {
		var fits bool
		if w.All, fits = all.split(t, roundTrip); fits {
			break
		}
		w.Note = "the server's times do not fit into the client's, so they are left out"
	}
	w.Bottleneck, w.Sentence = s.bottleneck(&w.All)
	if s.slowest.requests > 0 {
		w.slowest(s, answers != nil, roundTrip)
	}
	return w
}

// better returns the more detailed of two serverAccounts. A metrics page knows the front end, and answers
// belong to exactly these requests.
func better(answers, page *serverAccount) *serverAccount {
	if answers == nil || page != nil && page.count() > answers.count() {
		return page
	}
	return answers
}

func (t *serverAccount) count() (n int) {
	for _, f := range []*float64{t.queue, t.prefill, t.decode, t.total} {
		if f != nil {
			n++
		}
	}
	return n
}
