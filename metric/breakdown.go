package metric

import (
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
)

// A Component is a component of a request's latency.
type Component string

// The components, in display order.
const (
	ClientQueue Component = "client_queue" // until the concurrency limit admitted the request
	ClientWork  Component = "client"       // until the request was written, without Connect
	Connect     Component = "connect"      // until a connection was ready
	ServerQueue Component = "server_queue" // until the engine started the request
	Prefill     Component = "prefill"      // until the engine had the first token
	Decode      Component = "decode"       // until the engine had the last token
	FrontEnd    Component = "front_end"    // in the server, outside its engine
	Network     Component = "network"
)

var places = []Component{ClientQueue, ClientWork, Connect, ServerQueue, Prefill, Decode, FrontEnd, Network}

var placeTitles = map[Component]string{
	ClientQueue: "client queue", ClientWork: "client", Connect: "connect", ServerQueue: "server queue",
	Prefill: "prefill", Decode: "decode", FrontEnd: "server's front end", Network: "network",
}

// Sources of a duration.
const (
	byMarks     = "client times"
	byAnswers   = "server's answers"
	byPage      = "metrics page"
	byHandshake = "TCP handshake"
)

// A TimePart is the mean time spent in a component. If it lists several components, they cannot be
// separated and it is their sum.
type TimePart struct {
	Of     []Component `json:"of"`
	Millis float64     `json:"ms"`
	Share  float64     `json:"share"`
	Source string      `json:"source"`

	MoreMillis *float64 `json:"more_ms,omitempty"` // slowest requests only: difference to all requests
}

// Key returns the name of a part for programs.
func (p *TimePart) Key() string {
	return joinPlaces(p.Of, "+", func(p Component) string { return string(p) })
}

// Title returns the name of a part for people.
func (p *TimePart) Title() string {
	return joinPlaces(p.Of, " + ", func(p Component) string { return placeTitles[p] })
}

func joinPlaces(list []Component, by string, name func(Component) string) string {
	var names []string
	for _, p := range list {
		names = append(names, name(p))
	}
	return strings.Join(names, by)
}

// A TimeSplit is the latency breakdown of some requests. The parts add up to Millis, the mean time from
// due to the last token.
type TimeSplit struct {
	Requests int        `json:"requests"`
	Millis   float64    `json:"ms"`
	Parts    []TimePart `json:"parts"`
}

// A Breakdown is the latency breakdown of the successful requests of a stage.
type Breakdown struct {
	All     TimeSplit  `json:"all"`
	Slowest *TimeSplit `json:"slowest,omitempty"` // the slowest 1 %; nil if there are fewer than 100 requests

	Bottleneck string `json:"bottleneck"` // key of the part that limits
	Sentence   string `json:"sentence"`   // the bottleneck in a sentence
	Tail       string `json:"tail,omitempty"`
	Note       string `json:"note,omitempty"` // why the server's times were left out
}

// spent sums the components of requests, from our timestamps and from the times the server reports with
// each answer.
type spent struct {
	requests                              int
	queue, client, connect, first, stream time.Duration
	gaps                                  int // output tokens without the first of each request

	reported int // requests with times from the server
	server   tacho.ServerTimes
}

// whole returns the time from due to the last token.
func (s *spent) whole() time.Duration { return s.queue + s.client + s.connect + s.first + s.stream }

// add adds a successful request.
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
		s.merge(&spent{reported: 1, server: *m.server})
	}
}

func (s *spent) merge(o *spent) {
	s.requests, s.gaps, s.reported = s.requests+o.requests, s.gaps+o.gaps, s.reported+o.reported
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

// The slowest 1/tailShare of the requests form the tail.
const tailShare = 100

// spending sums the components of all successful requests and of the slowest. Requests as slow as the
// last one of the tail are included, so that order does not matter.
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

// An serverAccount holds the times reported by the server, as means in milliseconds. A time is nil if the
// server does not report it. All times start when the server received the request.
type serverAccount struct {
	source                       string
	queue, prefill, decode, work *float64 // by its engine; work is prefill and decode together
	toFirst, total               *float64 // by its front end
}

// answered returns the times from the answers, or nil if not all answers contain times.
func (s *spent) answered() *serverAccount {
	if s.reported == 0 || s.reported < s.requests {
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
	return &serverAccount{source: byAnswers, queue: mean(t.Queue), prefill: mean(t.Prefill), decode: mean(t.Decode), toFirst: mean(t.TTFT), total: mean(t.Total)}
}

// written returns the times from the metrics pages, weighted by requests if there are several pages. It
// returns nil if no page has times, and a note if a page counts other requests than ours.
func written(list []Instruments, ours int) (*serverAccount, string) {
	all, n := &serverAccount{source: byPage}, 0.0
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
			case f.from == nil || before == nil && n > *in.Timed: // not every page reports it
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
		return nil, "The metrics page counts other requests than ours, so its times are left out: check whether other clients use the server."
	}
	return all, ""
}

const (
	pageTolerance = 0.05 // share of requests: a page may include probes and miss the last requests
	splitError    = 0.02 // share of the total: clocks are read at different times
)
