package metric

import (
	"fmt"
	"slices"
)

// waitShare is the share of time spent waiting above which the wait is the bottleneck instead of the
// engine's work.
const waitShare = 0.25

// bottleneck returns the key of the limiting part and a sentence about it. Waiting has priority over
// work, even if the work takes longer, because more resources would save the wait. Prefill and decode
// are work. Parts that cannot be separated may be either.
func (s *Summary) bottleneck(split *TimeSplit) (key, sentence string) {
	client := TimePart{Of: []Component{ClientQueue, ClientWork, Connect}}
	var wait, largest TimePart
	for _, p := range split.Parts {
		switch {
		case slices.Contains(client.Of, p.Of[0]):
			client.Millis, client.Share = client.Millis+p.Millis, client.Share+p.Share
			continue
		case waits(&p) && p.Share > wait.Share:
			wait = p
		}
		if p.Share > largest.Share {
			largest = p
		}
	}
	undivided := 0.0
	for _, p := range split.Parts {
		if len(p.Of) > 1 && !waits(&p) {
			undivided = max(undivided, p.Share)
		}
	}
	switch {
	case s.Completed == 1 && waits(&largest): // one slow answer shows no limit
		return "", ""
	case s.Completed == 1:
	case client.Share >= waitShare && client.Share >= max(wait.Share, undivided):
		return "client", s.clientWords(split, &client)
	case wait.Share >= waitShare && wait.Share >= undivided:
		return wait.Key(), s.waitWords(split, &wait)
	}
	if largest.Of == nil {
		return "", ""
	}
	return largest.Key(), s.workWords(&largest)
}

// waits reports whether a part contains no work of the engine.
func waits(p *TimePart) bool {
	return !slices.ContainsFunc(p.Of, func(at Component) bool { return at == Prefill || at == Decode })
}

// of returns the time of a component, or 0 if the component cannot be separated.
func (t *TimeSplit) of(at Component) float64 {
	for _, p := range t.Parts {
		if len(p.Of) == 1 && p.Of[0] == at {
			return p.Millis
		}
	}
	return 0
}

func amount(p *TimePart) string { return fmt.Sprintf("%s (%s)", Duration(p.Millis), Percent(p.Share)) }

func (s *Summary) clientWords(split *TimeSplit, p *TimePart) string {
	if split.of(ClientQueue) >= p.Millis/2 {
		return fmt.Sprintf("The client is the limit: requests wait %s for one of %d slots (--max-concurrency) and take %s after that.",
			amount(p), s.Config.MaxConcurrency, Duration(split.Millis-p.Millis))
	}
	return fmt.Sprintf("The client is the limit: requests spend %s in it between due time and write.", amount(p))
}

func (s *Summary) waitWords(split *TimeSplit, p *TimePart) string {
	switch {
	case p.Key() == string(FrontEnd):
		text := fmt.Sprintf("The server's front end (HTTP and tokenizer) is the limit, not its engine: requests spend %s of %s in it.", amount(p), Duration(split.Millis))
		if theirs, ours := s.pace(split); theirs > 0 {
			text += fmt.Sprintf(" The engine makes a token every %s, but tokens arrive every %s.", Duration(theirs), Duration(ours))
		}
		return text
	case p.Key() == string(ServerQueue):
		text := fmt.Sprintf("The server's queue is the limit: requests wait %s before the engine starts them.", amount(p))
		switch prefill, decode := split.of(Prefill), split.of(Decode); {
		case prefill > decode:
			text += fmt.Sprintf(" After that, most time is prefill (%s).", Duration(prefill))
		case decode > 0:
			text += fmt.Sprintf(" After that, most time is decode (%s).", Duration(decode))
		}
		return text
	case p.Key() == string(Network):
		return fmt.Sprintf("The network is the limit: the round trip to the server takes %s.", amount(p))
	case slices.Contains(p.Of, ServerQueue):
		return fmt.Sprintf("Most of the waiting, %s, is %s, which cannot be separated.", amount(p), p.Title())
	}
	return fmt.Sprintf("The path to the engine and back is the limit: requests spend %s in the network, a proxy or the server's front end, which cannot be separated.", amount(p))
}

func (s *Summary) workWords(p *TimePart) string {
	if len(p.Of) > 1 {
		return fmt.Sprintf("The largest part, %s, is %s, which the server does not separate.", amount(p), p.Title())
	}
	text := fmt.Sprintf("%s is the largest part: %s", map[Component]string{Prefill: "Prefill", Decode: "Decode"}[p.Of[0]], amount(p))
	if p.Of[0] == Decode && s.spent.gaps > 0 {
		text += fmt.Sprintf(", %s per token", Duration(p.Millis*float64(s.spent.requests)/float64(s.spent.gaps)))
	}
	return text + "."
}

// pace returns the time between tokens in the engine and on arrival, or 0 if the engine does not report
// it.
func (s *Summary) pace(split *TimeSplit) (theirs, ours float64) {
	if decode := split.of(Decode); decode > 0 && s.spent.gaps > 0 {
		gaps := float64(s.spent.gaps)
		return decode * float64(s.spent.requests) / gaps, millis(s.spent.stream) / gaps
	}
	return 0, 0
}

// slowest finds the parts in which the slowest requests spent more time than all requests. A metrics
// page does not identify the slowest requests, so only timestamps and answers are used.
func (w *Breakdown) slowest(s *Summary, answers bool, roundTrip float64) {
	var theirs, ours *serverAccount
	if answers {
		theirs, ours = s.slowest.answered(), s.spent.answered()
	}
	tail, fits := s.slowest.split(theirs, roundTrip)
	all, also := s.spent.split(ours, roundTrip)
	if !fits || !also {
		tail, _ = s.slowest.split(nil, roundTrip)
		all, _ = s.spent.split(nil, roundTrip)
	}
	var most *TimePart
	for i := range tail.Parts {
		p := &tail.Parts[i]
		more := p.Millis
		for _, q := range all.Parts {
			if slices.Equal(p.Of, q.Of) {
				more -= q.Millis
			}
		}
		if p.MoreMillis = &more; most == nil || more > *most.MoreMillis {
			most = p
		}
	}
	w.Slowest = &tail
	if longer := tail.Millis - all.Millis; longer > 0 {
		w.Tail = fmt.Sprintf("The slowest 1 %% take %s longer than the mean, mostly in %s (+%s).", Duration(longer), most.Title(), Duration(*most.MoreMillis))
	}
}
