// Package metric holds the formulas, as data: each quantity is one Metric with
// its name, its unit, its words and its function of a record, and nothing else
// in the program computes it. An Accumulator gathers records and gives a
// Summary; a Verdict says how far the summary can be trusted.
//
// The definitions are those of vLLM's serving benchmark over our own marks: a
// request starts when its first byte is written, and ends with its last token.
package metric

import (
	"time"

	"tacho"
)

// A Unit is what a value counts.
type Unit string

// The units.
const (
	Millis       Unit = "ms"
	TokenCount   Unit = "tok"
	TokensPerSec Unit = "tok/s"
	Count        Unit = "count"
	Share        Unit = "share"
)

// A Metric is the definition of one quantity.
type Metric struct {
	Name  string // stable: in JSON, in CSV, in SLOs
	Title string
	Unit  Unit
	Doc   string // the formula, in words
	Of    func(r *tacho.Record, emit func(float64))

	PerEvent     bool // a request has one value for each of its events
	MoreIsBetter bool // an SLO is a least value, and not a most

	off  func(r *tacho.Record, value int) off          // of a classic metric: how far a value may be off
	gaps func(r *tacho.Record, to []float64) []float64 // what Of emits, appended; nil: there is no value for each gap
}

// The four classic metrics.
var (
	TTFT = &Metric{
		Name: "ttft", Title: "Time to First Token", Unit: Millis,
		Doc: "first token event - sent; successful requests",
		Of:  ofSuccess(atSent, atFirst), off: ttftOff,
	}
	TPOT = &Metric{
		Name: "tpot", Title: "Time per Output Token (excl. 1st token)", Unit: Millis,
		Doc: "(last token event - first token event) / (output tokens - 1); successful requests with more than one output token",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() && r.Output > 1 && len(r.Events) > 0 {
				emit(millis(r.Last()-r.First()) / float64(r.Output-1))
			}
		},
		off: tpotOff,
	}
	ITL = &Metric{
		Name: "itl", Title: "Inter-token Latency", Unit: Millis, PerEvent: true,
		Doc: "gap between successive token events, one value for each gap; successful requests",
		Of: func(r *tacho.Record, emit func(float64)) {
			for _, gap := range gaps(r, nil) {
				emit(gap)
			}
		},
		off: itlOff, gaps: gaps,
	}
	E2EL = &Metric{
		Name: "e2el", Title: "End-to-end Latency", Unit: Millis,
		Doc: "last token event - sent, or the end of an answer that has no tokens, as an embedding; successful requests",
		Of:  ofSuccess(atSent, atLast), off: e2elOff,
	}
)

// gaps appends the gaps between the token events of a success, of which there
// are more than of all else.
func gaps(r *tacho.Record, to []float64) []float64 {
	if !r.OK() || len(r.Events) == 0 {
		return to
	}
	before := r.Events[0].At
	for i := range r.Events[1:] {
		at := r.Events[i+1].At
		to = append(to, millis(at-before))
		before = at
	}
	return to
}

// The same latencies counted from when the plan wanted the request sent, so
// that a request held back by a full client is not a fast one.
var (
	TTFTDue = &Metric{
		Name: "ttft_due", Title: "TTFT from due", Unit: Millis,
		Doc: "first token event - due; successful requests",
		Of:  ofSuccess(atDue, atFirst),
	}
	E2ELDue = &Metric{
		Name: "e2el_due", Title: "E2EL from due", Unit: Millis,
		Doc: "last token event - due, or the end of an answer that has no tokens; successful requests",
		Of:  ofSuccess(atDue, atLast),
	}
)

// TTFTContent is apart from TTFT where a model thinks before it speaks.
var TTFTContent = &Metric{
	Name: "ttft_content", Title: "Time to First Content Token", Unit: Millis,
	Doc: "first token event with content, which is neither reasoning nor a tool call - sent; successful requests that have one",
	Of:  ofSuccess(atSent, atFirstContent),
}

// What the server says of itself. It can be held against what we saw; the
// difference is the network, and whatever stands before the server.
var (
	serverTTFT = &Metric{
		Name: "server_ttft", Title: "Server's TTFT", Unit: Millis,
		Doc: "time to first token by the server's own clock; successful requests of servers that tell it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.TTFT }),
	}
	serverQueue = &Metric{
		Name: "server_queue", Title: "Server's queue", Unit: Millis,
		Doc: "wait before the engine took the request up, by the server's own clock; successful requests of servers that tell it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Queue }),
	}
	serverPrefill = &Metric{
		Name: "server_prefill", Title: "Server's prefill", Unit: Millis,
		Doc: "time to read the prompt, by the server's own clock; successful requests of servers that tell it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Prefill }),
	}
	serverDecode = &Metric{
		Name: "server_decode", Title: "Server's decode", Unit: Millis,
		Doc: "time to generate, by the server's own clock; successful requests of servers that tell it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Decode }),
	}
	serverTotal = &Metric{
		Name: "server_e2el", Title: "Server's E2EL", Unit: Millis,
		Doc: "time of the whole request, by the server's own clock; successful requests of servers that tell it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Total }),
	}
)

// serverService is the work itself, where the server tells it from the wait.
var serverService = &Metric{
	Name: "server_service", Title: "Server's service", Unit: Millis,
	Doc: "prefill + decode, or else time of the whole request - wait in the queue, by the server's own clock; successful requests of servers that tell both",
	Of: func(r *tacho.Record, emit func(float64)) {
		switch t := r.Server; {
		case !r.OK() || t == nil:
		case t.Prefill > 0 && t.Decode > 0:
			emit(millis(t.Prefill + t.Decode))
		case t.Queue > 0 && t.Total > t.Queue:
			emit(millis(t.Total - t.Queue))
		}
	},
}

// ServerSide are the metrics the server measures.
var ServerSide = []*Metric{serverTTFT, serverQueue, serverPrefill, serverDecode, serverService, serverTotal}

// What the client itself did to the requests. All but Wait, which completes the
// latencies of successful requests, count failed requests too: a client that is
// late is late for all of them.
var (
	Lag = &Metric{
		Name: "lag", Title: "Client lag", Unit: Millis,
		Doc: "sent - due; every request of which a byte was sent",
		Of:  ofAny(atDue, atSent),
	}
	Queue = &Metric{
		Name: "queue", Title: "Client queue", Unit: Millis,
		Doc: "slot - due: the wait for the concurrency limit; every request that got a slot",
		Of:  ofAny(atDue, atSlot),
	}
	wait = &Metric{
		Name: "wait", Title: "Wait in the client", Unit: Millis,
		Doc: "sent - due; successful requests",
		Of:  ofSuccess(atDue, atSent),
	}
	SendLag = &Metric{
		Name: "send_lag", Title: "Send lag", Unit: Millis,
		Doc: "sent - slot: what the client added after the limit let the request go; every request of which a byte was sent",
		Of:  ofAny(atSlot, atSent),
	}
	connect = &Metric{
		Name: "connect", Title: "Connect", Unit: Millis,
		Doc: "connection ready - handed to the transport; every request that got a connection",
		Of:  ofAny(atStart, atConn),
	}
	write = &Metric{
		Name: "write", Title: "Write", Unit: Millis,
		Doc: "last byte written - first byte written; every request written in full",
		Of:  ofAny(atSent, atWrote),
	}
	ReadLag = &Metric{
		Name: "read_lag", Title: "Read lag", Unit: Millis, PerEvent: true,
		Doc: "token event in our hands - received by the kernel, one value for each event; requests stamped by the kernel or at the network device",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.Clock != tacho.KernelClock && r.Clock != tacho.WireClock {
				return
			}
			for i := range r.Events {
				emit(millis(time.Duration(r.Events[i].ReadLag)))
			}
		},
	}
)

// What an event of several tokens hides: ITL is the gap between events.
var (
	TokensPerEvent = &Metric{
		Name: "tokens_per_event", Title: "Tokens per Event", Unit: TokenCount,
		Doc: "output tokens / token events; successful requests with tokens",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() && len(r.Events) > 0 && r.Output > 0 {
				emit(float64(r.Output) / float64(len(r.Events)))
			}
		},
	}
	TokenGap = &Metric{
		Name: "token_gap", Title: "Gap by Token", Unit: Millis, PerEvent: true,
		Doc: "gap between successive token events / tokens in the later one, as the wire tells them or else as an event of the request has on average; one value for each gap; successful requests",
		Of: func(r *tacho.Record, emit func(float64)) {
			for _, gap := range tokenGaps(r, nil) {
				emit(gap)
			}
		},
		gaps: tokenGaps,
	}
)

// tokenGaps appends the gaps by token of a success.
func tokenGaps(r *tacho.Record, to []float64) []float64 {
	if !r.OK() {
		return to
	}
	for i := 1; i < len(r.Events); i++ {
		to = append(to, millis(r.Events[i].At-r.Events[i-1].At)/tokensIn(r, i))
	}
	return to
}

// tokensIn is how many tokens event i of r brought: as the wire tells it, or on
// average; never less than one.
func tokensIn(r *tacho.Record, i int) float64 {
	if n := r.Events[i].Tokens; n > 0 {
		return float64(n)
	}
	return max(float64(r.Output)/float64(len(r.Events)), 1)
}

// What else there is to know of a request.
var (
	firstByte = &Metric{
		Name: "first_byte", Title: "Time to First Byte", Unit: Millis,
		Doc: "first byte of the response - sent; successful requests",
		Of:  ofSuccess(atSent, atHead),
	}
	requestTime = &Metric{
		Name: "request_time", Title: "Time per Request", Unit: Millis,
		Doc: "end of the response - sent, usage and end mark included; successful requests",
		Of:  ofSuccess(atSent, atEnd),
	}
	streamRate = &Metric{
		Name: "stream_rate", Title: "Tokens per Second per Request", Unit: TokensPerSec, MoreIsBetter: true,
		Doc: "(output tokens - 1) / (last token event - first token event); successful requests with more than one output token",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() && r.Output > 1 && r.Last() > r.First() {
				emit(float64(r.Output-1) / (r.Last() - r.First()).Seconds())
			}
		},
	}
	inputLen = &Metric{
		Name: "input_tokens", Title: "Input Tokens", Unit: TokenCount,
		Doc: "prompt tokens by the server's count, or by the workload's where the server gives none; successful requests",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() {
				emit(float64(InputTokens(r)))
			}
		},
	}
	outputLen = &Metric{
		Name: "output_tokens", Title: "Output Tokens", Unit: TokenCount,
		Doc: "output tokens by the most trusted count; successful requests",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() {
				emit(float64(r.Output))
			}
		},
	}
)

// The places of metrics in Classic.
const (
	indexTTFT, indexITL, indexE2EL = 0, 2, 3
	classicCount                   = 4
	exactCount                     = 6 // with those from due
)

// All are the metrics, in the order they are shown: first the classic ones.
var All = []*Metric{
	TTFT, TPOT, ITL, E2EL,
	TTFTDue, E2ELDue,
	Lag, Queue, wait, SendLag, connect, write, ReadLag,
	firstByte, requestTime, streamRate, TokensPerEvent, TokenGap, inputLen, outputLen,
	ttst, LongestGap, Stalls, userSpeed, normalized, prefillRate, cachedShare,
	TTFTContent, serverTTFT, serverQueue, serverPrefill, serverDecode, serverService, serverTotal,
}

// Classic are the metrics that every classic report is about.
var Classic = All[:classicCount]

// Named is the metric of that name, or nil.
func Named(name string) *Metric {
	for _, m := range All {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// InputTokens is the length of the prompt: the server's count where it gave
// one, else the workload's.
func InputTokens(r *tacho.Record) int {
	if r.Usage != nil && r.Usage.Prompt > 0 {
		return r.Usage.Prompt
	}
	return r.Input
}

// A mark is one moment of a record, tacho.Never where it did not come.
type mark func(*tacho.Record) time.Duration

func atDue(r *tacho.Record) time.Duration   { return r.Due }
func atSlot(r *tacho.Record) time.Duration  { return r.Slot }
func atStart(r *tacho.Record) time.Duration { return r.Start }
func atConn(r *tacho.Record) time.Duration  { return r.Conn }
func atSent(r *tacho.Record) time.Duration  { return r.Sent }
func atWrote(r *tacho.Record) time.Duration { return r.Wrote }
func atHead(r *tacho.Record) time.Duration  { return r.Head }
func atEnd(r *tacho.Record) time.Duration   { return r.End }
func atFirst(r *tacho.Record) time.Duration { return r.First() }

// atLast is the end of an answer without tokens: only what has none by its
// nature succeeds so.
func atLast(r *tacho.Record) time.Duration {
	if len(r.Events) == 0 {
		return r.End
	}
	return r.Last()
}

func atFirstContent(r *tacho.Record) time.Duration {
	for i := range r.Events {
		if r.Events[i].Kind == tacho.Content {
			return r.Events[i].At
		}
	}
	return tacho.Never
}

// ofAny is the time from one moment to another, where both came.
func ofAny(from, to mark) func(*tacho.Record, func(float64)) {
	return func(r *tacho.Record, emit func(float64)) {
		a, b := from(r), to(r)
		if a != tacho.Never && b != tacho.Never {
			emit(millis(b - a))
		}
	}
}

// ofSuccess is ofAny for successful requests.
func ofSuccess(from, to mark) func(*tacho.Record, func(float64)) {
	of := ofAny(from, to)
	return func(r *tacho.Record, emit func(float64)) {
		if r.OK() {
			of(r, emit)
		}
	}
}

// ofServer is a time that the server gave.
func ofServer(part func(*tacho.ServerTimes) time.Duration) func(*tacho.Record, func(float64)) {
	return func(r *tacho.Record, emit func(float64)) {
		if r.OK() && r.Server != nil && part(r.Server) > 0 {
			emit(millis(part(r.Server)))
		}
	}
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }
