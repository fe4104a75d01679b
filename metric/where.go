package metric

import (
	"slices"
	"strings"
	"time"

	"tacho"
)

// A Place is somewhere a request spends time.
type Place string

// The places, in the order in which they are shown.
const (
	ClientQueue Place = "client_queue" // until the concurrency limit let it go
	ClientWork  Place = "client"       // until it was written, less Connect
	Connect     Place = "connect"      // until it had a connection
	ServerQueue Place = "server_queue" // until the engine took it up
	Prefill     Place = "prefill"      // until the engine had the first token
	Decode      Place = "decode"       // until the engine had the last
	FrontEnd    Place = "front_end"    // in the server, and not in its engine
	Network     Place = "network"
)

var places = []Place{ClientQueue, ClientWork, Connect, ServerQueue, Prefill, Decode, FrontEnd, Network}

var placeTitles = map[Place]string{
	ClientQueue: "client queue", ClientWork: "client", Connect: "connect", ServerQueue: "server queue",
	Prefill: "prefill", Decode: "decode", FrontEnd: "server's front end", Network: "network",
}

// Who told how long something took.
const (
	byMarks     = "marks"
	byAnswers   = "server's answers"
	byPage      = "metrics page"
	byHandshake = "TCP handshake"
)

// A TimePart is the time that requests spent somewhere, on average. Of several
// places it is the sum: nobody told them apart.
type TimePart struct {
	Of     []Place `json:"of"`
	Millis float64 `json:"ms"`
	Share  float64 `json:"share"`
	Source string  `json:"source"`

	MoreMillis *float64 `json:"more_ms,omitempty"` // of the slowest: than all requests spent there
}

// Key is the name of a part, for programs.
func (p *TimePart) Key() string {
	return joinPlaces(p.Of, "+", func(p Place) string { return string(p) })
}

// Title is the name of a part, for people.
func (p *TimePart) Title() string {
	return joinPlaces(p.Of, " + ", func(p Place) string { return placeTitles[p] })
}

func joinPlaces(list []Place, by string, name func(Place) string) string {
	var names []string
	for _, p := range list {
		names = append(names, name(p))
	}
	return strings.Join(names, by)
}

// A TimeSplit is where some requests spent their time. The parts add up to
// Millis, the mean time from due to the last token.
type TimeSplit struct {
	Requests int        `json:"requests"`
	Millis   float64    `json:"ms"`
	Parts    []TimePart `json:"parts"`
}

// A Where is where the successful requests of a stage spent their time.
type Where struct {
	All     TimeSplit  `json:"all"`
	Slowest *TimeSplit `json:"slowest,omitempty"` // the slowest 1 %; nil of fewer than 100 requests

	Bottleneck string `json:"bottleneck"` // the key of the part that limits
	Sentence   string `json:"sentence"`   // the same for people
	Tail       string `json:"tail,omitempty"`
	Note       string `json:"note,omitempty"` // why what the server tells was left out
}

// spent adds up where requests spent their time, by our marks and by what the
// server said with each answer.
type spent struct {
	requests                              int
	queue, client, connect, first, stream time.Duration
	gaps                                  int // output tokens less the first of each request

	told   int // requests with times of the server's
	server tacho.ServerTimes
}

// whole is the time from due to the last token.
func (s *spent) whole() time.Duration { return s.queue + s.client + s.connect + s.first + s.stream }

// add takes in a successful request.
func (s *spent) add(m *marks) {
	slot := m.slot
	if slot == tacho.Never {
		slot = m.due
	}
	s.requests++
	s.queue += slot - m.due
	s.connect += m.connect
	s.client += m.sent - slot - m.connect
	if m.first == tacho.Never {
		s.first += m.end - m.sent
	} else {
		s.first += m.first - m.sent
		s.stream += m.last - m.first
	}
	s.gaps += max(int(m.output)-1, 0)
	if m.server != nil {
		s.merge(&spent{told: 1, server: *m.server})
	}
}

func (s *spent) merge(o *spent) {
	s.requests, s.gaps, s.told = s.requests+o.requests, s.gaps+o.gaps, s.told+o.told
	s.queue, s.client, s.connect, s.first, s.stream = s.queue+o.queue, s.client+o.client, s.connect+o.connect, s.first+o.first, s.stream+o.stream
	t := o.server
	s.server.Queue += t.Queue
	s.server.TTFT += t.TTFT
	s.server.Prefill += t.Prefill
	s.server.Decode += t.Decode
	s.server.Total += t.Total
}

func (m *marks) latency() time.Duration {
	if m.last == tacho.Never {
		return m.end - m.due
	}
	return m.last - m.due
}

// tailShare of the requests are the slowest.
const tailShare = 100

// spending is where all successful requests spent their time, and the slowest
// of them; those as slow as the last of these are among them, so that order does
// not matter.
func spending(all []marks) (whole, slowest spent) {
	var latencies []time.Duration
	for i := range all {
		if m := &all[i]; m.ok && m.sent != tacho.Never {
			whole.add(m)
			latencies = append(latencies, m.latency())
		}
	}
	if len(latencies) < tailShare {
		return whole, slowest
	}
	slices.Sort(latencies)
	least := latencies[len(latencies)-len(latencies)/tailShare]
	for i := range all {
		if m := &all[i]; m.ok && m.sent != tacho.Never && m.latency() >= least {
			slowest.add(m)
		}
	}
	return whole, slowest
}

// An account is what the server says of its own part, as means in milliseconds; nil
// where it does not say. All count from when it got the request.
type account struct {
	source                       string
	queue, prefill, decode, work *float64 // by its engine; work is prefill and decode together
	toFirst, total               *float64 // by its front end
}

// answered is what the answers of the requests say; nil where they do not all
// say something.
func (s *spent) answered() *account {
	if s.told == 0 || s.told < s.requests {
		return nil
	}
	mean := func(d time.Duration) *float64 {
		if d == 0 {
			return nil
		}
		v := millis(d) / float64(s.requests)
		return &v
	}
	t := s.server
	return &account{source: byAnswers, queue: mean(t.Queue), prefill: mean(t.Prefill), decode: mean(t.Decode), toFirst: mean(t.TTFT), total: mean(t.Total)}
}

// written is what metrics pages say, of several the mean by request; nil where
// no page tells of requests, and a note where it tells of others' than ours.
func written(list []Instruments, ours int) (*account, string) {
	all, n := &account{source: byPage}, 0.0
	for i := range list {
		in := &list[i]
		if in.Timed == nil || *in.Timed == 0 {
			continue
		}
		n += *in.Timed
		for _, f := range []struct {
			to   **float64
			from *float64
		}{
			{&all.queue, in.QueueMillis},
			{&all.prefill, in.PrefillMillis},
			{&all.decode, in.DecodeMillis},
			{&all.work, in.InferenceMillis},
			{&all.toFirst, in.TTFTMillis},
			{&all.total, in.E2ELMillis},
		} {
			switch before := *f.to; {
			case f.from == nil || before == nil && n > *in.Timed: // not every page tells it
				*f.to = nil
			case before == nil:
				v := *f.from
				*f.to = &v
			default:
				v := *before + (*f.from-*before)**in.Timed/n
				*f.to = &v
			}
		}
	}
	if n == 0 {
		return nil, ""
	}
	if off := max(n-float64(ours), float64(ours)-n); off > max(pageTolerance*float64(ours), 1) {
		return nil, "the metrics page counts other requests than ours, so it is left out here: is somebody else using the server?"
	}
	return all, ""
}

const (
	pageTolerance = 0.05 // of the requests: probes may be among those of the page, and the last may not be
	splitError    = 0.02 // of the whole: clocks that are read at other moments
)
