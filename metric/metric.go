// Package metric defines all formulas as data. Each quantity is one Metric with a name, a unit, a
// description and a function of a record, and no other package computes it. An Accumulator collects
// records and returns a Summary. A Verdict says how far the summary can be trusted.
//
// The definitions follow vLLM's serving benchmark, applied to our own timestamps: a request starts when
// its first byte is written and ends with its last token.
package metric

import (
	"time"

	"github.com/tacho-bench/tacho"
)

// A Unit is the unit of a value.
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
	Name  string // stable: used in JSON, CSV and SLOs
	Title string
	Unit  Unit
	Doc   string // the formula in words
	Of    func(r *tacho.Record, emit func(float64))

	PerEvent     bool // a request has one value for each event
	MoreIsBetter bool // an SLO is a minimum, not a maximum

	off  func(r *tacho.Record, value int) off          // classic metrics only: how far a value may be off
	gaps func(r *tacho.Record, to []float64) []float64 // appends the values that Of emits; nil if there is no value for each gap
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
			for _, gap := range gaps(r, make([]float64, 0, len(r.Events))) {
				emit(gap)
			}
		},
		off: itlOff, gaps: gaps,
	}
	E2EL = &Metric{
		Name: "e2el", Title: "End-to-end Latency", Unit: Millis,
		Doc: "last token event - sent, or end of an answer without tokens (such as an embedding) - sent; successful requests",
		Of:  ofSuccess(atSent, atLast), off: e2elOff,
	}
)

// gaps appends the gaps between the token events of a successful request. No other metric has as many
// values.
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

// Latencies from the due time include the time a request waited in an overloaded client.
var (
	TTFTDue = &Metric{
		Name: "ttft_due", Title: "TTFT from due", Unit: Millis,
		Doc: "first token event - due; successful requests",
		Of:  ofSuccess(atDue, atFirst),
	}
	E2ELDue = &Metric{
		Name: "e2el_due", Title: "E2EL from due", Unit: Millis,
		Doc: "last token event - due, or end of an answer without tokens - due; successful requests",
		Of:  ofSuccess(atDue, atLast),
	}
)

// TTFTContent differs from TTFT if a model reasons before it answers.
var TTFTContent = &Metric{
	Name: "ttft_content", Title: "Time to First Content Token", Unit: Millis,
	Doc: "first token event with content (not reasoning, not a tool call) - sent; successful requests with such an event",
	Of:  ofSuccess(atSent, atFirstContent),
}

// Times reported by the server. The difference to our own measurements is the network and any proxy.
var (
	serverTTFT = &Metric{
		Name: "server_ttft", Title: "Server's TTFT", Unit: Millis,
		Doc: "time to first token, measured by the server; successful requests, if the server reports it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.TTFT }),
	}
	serverQueue = &Metric{
		Name: "server_queue", Title: "Server's queue", Unit: Millis,
		Doc: "wait in the server's queue, measured by the server; successful requests, if the server reports it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Queue }),
	}
	serverPrefill = &Metric{
		Name: "server_prefill", Title: "Server's prefill", Unit: Millis,
		Doc: "time to process the prompt, measured by the server; successful requests, if the server reports it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Prefill }),
	}
	serverDecode = &Metric{
		Name: "server_decode", Title: "Server's decode", Unit: Millis,
		Doc: "time to generate the tokens, measured by the server; successful requests, if the server reports it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Decode }),
	}
	serverTotal = &Metric{
		Name: "server_e2el", Title: "Server's E2EL", Unit: Millis,
		Doc: "total time of the request, measured by the server; successful requests, if the server reports it",
		Of:  ofServer(func(t *tacho.ServerTimes) time.Duration { return t.Total }),
	}
)

// serverService is the service time without the wait, if the server reports both.
var serverService = &Metric{
	Name: "server_service", Title: "Server's service", Unit: Millis,
	Doc: "prefill + decode, otherwise total time - wait in the queue, measured by the server; successful requests, if the server reports these times",
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

// ServerSide are the metrics measured by the server.
var ServerSide = []*Metric{serverTTFT, serverQueue, serverPrefill, serverDecode, serverService, serverTotal}

// Delays inside the client. All but wait, which completes the latencies of successful requests, include
// failed requests, because a late client is late for all requests.
var (
	Lag = &Metric{
		Name: "lag", Title: "Client lag", Unit: Millis,
		Doc: "sent - due; all requests with at least one byte sent",
		Of:  ofAny(atDue, atSent),
	}
	Queue = &Metric{
		Name: "queue", Title: "Client queue", Unit: Millis,
		Doc: "slot - due: the wait for the concurrency limit; all requests that got a slot",
		Of:  ofAny(atDue, atSlot),
	}
	wait = &Metric{
		Name: "wait", Title: "Wait in the client", Unit: Millis,
		Doc: "sent - due; successful requests",
		Of:  ofSuccess(atDue, atSent),
	}
	SendLag = &Metric{
		Name: "send_lag", Title: "Send lag", Unit: Millis,
		Doc: "sent - slot: delay added by the client after the limit admitted the request; all requests with at least one byte sent",
		Of:  ofAny(atSlot, atSent),
	}
	connect = &Metric{
		Name: "connect", Title: "Connect", Unit: Millis,
		Doc: "connection ready - passed to the transport; all requests that got a connection",
		Of:  ofAny(atStart, atConn),
	}
	write = &Metric{
		Name: "write", Title: "Write", Unit: Millis,
		Doc: "last byte written - first byte written; all requests written completely",
		Of:  ofAny(atSent, atWrote),
	}
	ReadLag = &Metric{
		Name: "read_lag", Title: "Read lag", Unit: Millis, PerEvent: true,
		Doc: "token event read by the client - received by the kernel, one value for each event; requests with kernel or wire timestamps",
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

// ITL is the gap between events. These metrics show if an event contains several tokens.
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
		Name: "token_gap", Title: "Gap per Token", Unit: Millis, PerEvent: true,
		Doc: "gap between successive token events / tokens in the later event, one value for each gap; the mean of the request if the protocol does not say how many tokens an event has; successful requests",
		Of: func(r *tacho.Record, emit func(float64)) {
			for _, gap := range tokenGaps(r, nil) {
				emit(gap)
			}
		},
		gaps: tokenGaps,
	}
)

// tokenGaps appends the gaps per token of a successful request.
func tokenGaps(r *tacho.Record, to []float64) []float64 {
	if !r.OK() {
		return to
	}
	for i := 1; i < len(r.Events); i++ {
		to = append(to, millis(r.Events[i].At-r.Events[i-1].At)/tokensIn(r, i))
	}
	return to
}

// tokensIn returns the number of tokens in event i of r, or the mean of the request if the protocol
// does not say. The result is at least 1.
func tokensIn(r *tacho.Record, i int) float64 {
	if n := r.Events[i].Tokens; n > 0 {
		return float64(n)
	}
	return max(float64(r.Output)/float64(len(r.Events)), 1)
}

// Further metrics of a request.
var (
	firstByte = &Metric{
		Name: "first_byte", Title: "Time to First Byte", Unit: Millis,
		Doc: "first byte of the response - sent; successful requests",
		Of:  ofSuccess(atSent, atHead),
	}
	requestTime = &Metric{
		Name: "request_time", Title: "Time per Request", Unit: Millis,
		Doc: "end of the response - sent, including usage and end mark; successful requests",
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
		Doc: "prompt tokens counted by the server, otherwise by the workload; successful requests",
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

// Indices of metrics in Classic.
const (
	indexTTFT, indexTPOT, indexITL, indexE2EL = 0, 1, 2, 3
	classicCount                              = 4
	exactCount                                = 6 // including the metrics from due
)

// All are all metrics in display order, the classic ones first.
var All = []*Metric{
	TTFT, TPOT, ITL, E2EL,
	TTFTDue, E2ELDue,
	Lag, Queue, wait, SendLag, connect, write, ReadLag,
	firstByte, requestTime, streamRate, TokensPerEvent, TokenGap, inputLen, outputLen,
	ttst, LongestGap, Stalls, userSpeed, normalized, prefillRate, cachedShare,
	TTFTContent, serverTTFT, serverQueue, serverPrefill, serverDecode, serverService, serverTotal,
}

// Classic are the metrics in every classic report.
var Classic = All[:classicCount]

// Named returns the metric with the given name, or nil.
func Named(name string) *Metric {
	for _, m := range All {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// InputTokens returns the length of the prompt as counted by the server, or by the workload if the
// server reports no count.
func InputTokens(r *tacho.Record) int {
	if r.Usage != nil && r.Usage.Prompt > 0 {
		return r.Usage.Prompt
	}
	return r.Input
}

// A mark returns one timestamp of a record, or tacho.Never.
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

// atLast returns the end of an answer without tokens. Only answers of requests that generate no tokens
// succeed without tokens.
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

// ofAny returns the time between two timestamps if both exist.
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

// ofServer returns a time reported by the server.
func ofServer(part func(*tacho.ServerTimes) time.Duration) func(*tacho.Record, func(float64)) {
	return func(r *tacho.Record, emit func(float64)) {
		if r.OK() && r.Server != nil && part(r.Server) > 0 {
			emit(millis(part(r.Server)))
		}
	}
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }
