package metric

import (
	"fmt"
	"slices"
)

// waitShare of the time has to be spent waiting somewhere, for that to be the
// limit and not the work of the engine.
const waitShare = 0.25

// bottleneck names the part that limits, and says so in a sentence. Time that a
// request waits comes before work, however long that takes: it is what more of
// something would save. Prefill and decode are work; what nobody told apart may
// be either.
func (s *Summary) bottleneck(split *TimeSplit) (key, sentence string) {
	client := TimePart{Of: []Place{ClientQueue, ClientWork, Connect}}
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
	case client.Share >= waitShare && client.Share >= max(wait.Share, undivided):
		return "client", s.clientWords(split, &client)
	case wait.Share >= waitShare && wait.Share >= undivided:
		return wait.Key(), s.waitWords(split, &wait)
	case largest.Of == nil:
		return "", ""
	}
	return largest.Key(), s.workWords(&largest)
}

// waits says whether none of a part is work of the engine.
func waits(p *TimePart) bool {
	return !slices.ContainsFunc(p.Of, func(at Place) bool { return at == Prefill || at == Decode })
}

// of is the time of a part that is told apart, 0 where it is not.
func (t *TimeSplit) of(at Place) float64 {
	for _, p := range t.Parts {
		if len(p.Of) == 1 && p.Of[0] == at {
			return p.Millis
		}
	}
	return 0
}

func amount(p *TimePart) string { return fmt.Sprintf("%s (%.0f %%)", duration(p.Millis), 100*p.Share) }

// duration is a time with as many digits as people read.
func duration(millis float64) string {
	if millis >= 1000 {
		return fmt.Sprintf("%.3g s", millis/1000)
	}
	return fmt.Sprintf("%.1f ms", millis)
}

func (s *Summary) clientWords(split *TimeSplit, p *TimePart) string {
	if split.of(ClientQueue) >= p.Millis/2 {
		return fmt.Sprintf("The client is the limit: requests wait %s for one of the %d places of --max-concurrency; once sent they take %s.",
			amount(p), s.Config.MaxConcurrency, duration(split.Millis-p.Millis))
	}
	return fmt.Sprintf("The client is the limit: %s pass in it after a request is due and before it is written.", amount(p))
}

func (s *Summary) waitWords(split *TimeSplit, p *TimePart) string {
	switch {
	case p.Key() == string(FrontEnd):
		text := fmt.Sprintf("The server's front end is the limit, not its engine: of %s a request spends %s in it.", duration(split.Millis), amount(p))
		if theirs, ours := s.pace(split); theirs > 0 {
			text += fmt.Sprintf(" The engine makes a token every %s, and one arrives every %s.", duration(theirs), duration(ours))
		}
		return text
	case p.Key() == string(ServerQueue):
		text := fmt.Sprintf("The server's queue is the limit: requests wait %s until the engine takes them up.", amount(p))
		switch prefill, decode := split.of(Prefill), split.of(Decode); {
		case prefill > decode:
			text += fmt.Sprintf(" From then on most is prefill (%s).", duration(prefill))
		case decode > 0:
			text += fmt.Sprintf(" From then on most is decode (%s).", duration(decode))
		}
		return text
	case p.Key() == string(Network):
		return fmt.Sprintf("The network is the limit: %s are one round trip to the server and back.", amount(p))
	case slices.Contains(p.Of, ServerQueue):
		return fmt.Sprintf("Most of the waiting, %s, is %s: nobody tells which.", amount(p), p.Title())
	}
	return fmt.Sprintf("The way to the engine and back is the limit: %s pass in the network, in something between, or in the server's front end; nobody tells which.", amount(p))
}

func (s *Summary) workWords(p *TimePart) string {
	if len(p.Of) > 1 {
		return fmt.Sprintf("The largest part, %s, is %s: the server does not say which.", amount(p), p.Title())
	}
	text := fmt.Sprintf("%s is the largest part: %s", map[Place]string{Prefill: "Prefill", Decode: "Decode"}[p.Of[0]], amount(p))
	if p.Of[0] == Decode && s.spent.gaps > 0 {
		text += fmt.Sprintf(", %s a token", duration(p.Millis*float64(s.spent.requests)/float64(s.spent.gaps)))
	}
	return text + "."
}

// pace is the time between tokens as the engine makes them and as they arrive; 0
// where the engine does not tell.
func (s *Summary) pace(split *TimeSplit) (theirs, ours float64) {
	if decode := split.of(Decode); decode > 0 && s.spent.gaps > 0 {
		gaps := float64(s.spent.gaps)
		return decode * float64(s.spent.requests) / gaps, millis(s.spent.stream) / gaps
	}
	return 0, 0
}

// slowest says where the slowest requests spent more time than all. A metrics
// page does not know which these are, so they are split by marks and answers.
func (w *Where) slowest(s *Summary, answers bool, roundTrip float64) {
	var theirs, ours *account
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
		w.Tail = fmt.Sprintf("The slowest 1 %% take %.1f ms longer than the mean, most of all in %s (%+.1f ms).", longer, most.Title(), *most.MoreMillis)
	}
}
