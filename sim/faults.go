package sim

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A FaultKind is one kind of fault that can be injected.
type FaultKind struct {
	Name  string
	Args  string // arguments with defaults, for the help text
	About string

	scope scope
	apply func(fx *effects, args args) error
}

// scope is the target of a fault.
type scope int

const (
	perRequest scope = iota // one answer
	perServer               // the model, for all requests
	perAccept               // a connection before it is accepted
)

// FaultKinds are all supported faults.
var FaultKinds = []FaultKind{
	refusalKind("429", http.StatusTooManyRequests),
	refusalKind("500", http.StatusInternalServerError),
	refusalKind("503", http.StatusServiceUnavailable),
	{
		Name: "queue-full", About: "refuse the request like a full server",
		apply: func(fx *effects, _ args) error { fx.overload = true; return nil },
	},
	{
		Name: "reset", Args: ":TOKENS=0", About: "reset the connection after TOKENS tokens, or before the header if 0",
		apply: func(fx *effects, a args) (err error) { fx.resetAt, err = a.count(0, 0); return err },
	},
	{
		Name: "truncate", Args: ":TOKENS=1", About: "end the stream after TOKENS tokens, cleanly but without an end marker",
		apply: func(fx *effects, a args) (err error) { fx.cutAt, err = a.count(0, 1); return err },
	},
	{
		Name: "stall", Args: ":TOKENS=1:TIME=forever", About: "send nothing for TIME after TOKENS tokens",
		apply: func(fx *effects, a args) (err error) {
			if fx.stallAt, err = a.count(0, 1); err != nil {
				return err
			}
			fx.stall, err = a.duration(1, 0)
			return err
		},
	},
	{
		Name: "error", Args: ":TOKENS=1", About: "send an error inside the stream after TOKENS tokens, then the end marker if the protocol has one",
		apply: func(fx *effects, a args) (err error) { fx.errorAt, err = a.count(0, 1); return err },
	},
	{
		Name: "malformed", Args: ":TOKENS=1", About: "send an event with invalid JSON after TOKENS tokens",
		apply: func(fx *effects, a args) (err error) { fx.garbleAt, err = a.count(0, 1); return err },
	},
	{
		Name: "huge", Args: ":TOKENS=1:BYTES=4194304", About: "make the event after TOKENS tokens longer by BYTES",
		apply: func(fx *effects, a args) (err error) {
			if fx.hugeAt, err = a.count(0, 1); err != nil {
				return err
			}
			fx.huge, err = a.count(1, 4<<20)
			return err
		},
	},
	{
		Name: "no-usage", About: "omit the server's token counts",
		apply: func(fx *effects, _ args) error { fx.noUsage = true; return nil },
	},
	{
		Name: "wrong-usage", Args: ":OFF=7", About: "add OFF to the server's count of generated tokens",
		apply: func(fx *effects, a args) (err error) { fx.miscount, err = a.integer(0, 7); return err },
	},
	{
		Name: "early-role", About: "send the role of a chat answer before the model runs",
		apply: func(fx *effects, _ args) error { fx.earlyRole = true; return nil },
	},
	{
		Name: "merge", Args: ":EVENTS=4", About: "send EVENTS events in one write",
		apply: func(fx *effects, a args) (err error) { fx.merge, err = a.count(0, 4); return err },
	},
	{
		Name: "trickle", About: "send one byte per write",
		apply: func(fx *effects, _ args) error { fx.trickle = true; return nil },
	},
	{
		Name: "gzip", About: "compress the answer even if the client does not accept gzip",
		apply: func(fx *effects, _ args) error { fx.gzip = true; return nil },
	},
	{
		Name: "reasoning", Args: ":TOKENS=2", About: "send the first TOKENS tokens of a streamed chat answer as reasoning",
		apply: func(fx *effects, a args) (err error) { fx.reasoning, err = a.count(0, 2); return err },
	},
	{
		Name: "hostile", Args: ":KIND=all", About: "answer with hostile text: html, control, utf8 or all",
		apply: func(fx *effects, a args) (err error) { fx.hostile, err = hostileTokens(a.word(0, "all")); return err },
	},
	{
		Name: "swap", Args: ":ABOVE=0", About: "send the answer to another request, if more than ABOVE requests are in flight",
		apply: func(fx *effects, a args) (err error) { fx.swapAbove, err = a.count(0, 0); return err },
	},
	{
		Name: "wrong-digit", Args: ":ABOVE=0", About: "continue with wrong digits, as with lost KV blocks, above ABOVE requests; for sums and JSON",
		apply: func(fx *effects, a args) (err error) { fx.digitAbove, err = a.count(0, 0); return err },
	},
	{
		Name: "half-answer", Args: ":ABOVE=0", About: "end sums, JSON and tool calls in their middle, with finish reason stop, above ABOVE requests",
		apply: func(fx *effects, a args) (err error) { fx.cutTextAbove, err = a.count(0, 0); return err },
	},
	{
		Name: "wrong-type", Args: ":ABOVE=0", About: "give the first value of JSON and tool calls another type, above ABOVE requests",
		apply: func(fx *effects, a args) (err error) { fx.schemaAbove, err = a.count(0, 0); return err },
	},
	{
		Name: "reword", Args: ":ABOVE=0", About: "answer sums in other words with the same result, above ABOVE requests",
		apply: func(fx *effects, a args) (err error) { fx.rewordAbove, err = a.count(0, 0); return err },
	},
	{
		Name: "pause", Args: ":TIME=1.3s", About: "stop the whole model for TIME", scope: perServer,
		apply: func(fx *effects, a args) (err error) {
			fx.pause, err = a.duration(0, 1300*time.Millisecond)
			return err
		},
	},
	{
		Name: "refuse", About: "refuse connections (by schedule only)", scope: perAccept,
		apply: func(fx *effects, _ args) error { fx.refuse = true; return nil },
	},
	{
		Name: "slow-accept", Args: ":TIME=100ms", About: "accept each connection after TIME (not by header)", scope: perAccept,
		apply: func(fx *effects, a args) (err error) {
			fx.slowAccept, err = a.duration(0, 100*time.Millisecond)
			return err
		},
	},
}

func refusalKind(name string, status int) FaultKind {
	return FaultKind{
		Name: name, About: "refuse the request with status " + name + ", " + http.StatusText(status),
		apply: func(fx *effects, _ args) error { fx.status = status; return nil },
	}
}

// effects are the effects of the faults on one request. Positions are numbers of
// tokens written before the effect; never means no effect.
type effects struct {
	names string // of the faults, for the truth log

	status   int // status of the error response
	overload bool

	resetAt, cutAt, stallAt, errorAt, garbleAt, hugeAt int

	stall     time.Duration // 0: forever
	huge      int           // bytes
	noUsage   bool
	miscount  int
	earlyRole bool
	merge     int // events per write
	trickle   bool
	gzip      bool
	reasoning int      // tokens
	hostile   []string // token texts, escaped for a JSON string
	pause     time.Duration

	swapAbove, digitAbove, cutTextAbove, schemaAbove, rewordAbove int // requests in flight

	refuse     bool
	slowAccept time.Duration
}

const never = -1

func noEffects() effects {
	return effects{
		resetAt: never, cutAt: never, stallAt: never, errorAt: never, garbleAt: never, hugeAt: never, merge: 1,
		swapAbove: never, digitAbove: never, cutTextAbove: never, schemaAbove: never, rewordAbove: never,
	}
}

// args are the arguments of a fault, by position.
type args []string

func (a args) word(i int, otherwise string) string {
	if i < len(a) && a[i] != "" {
		return a[i]
	}
	return otherwise
}

func (a args) integer(i, otherwise int) (int, error) {
	w := a.word(i, "")
	if w == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(w)
	if err != nil || n > 1<<30 || n < -1<<30 {
		return 0, fmt.Errorf("%q is not a valid number: write it as in truncate:4 or truncate:4=3%%", w)
	}
	return n, nil
}

func (a args) count(i, otherwise int) (int, error) {
	n, err := a.integer(i, otherwise)
	if err == nil && n < 0 {
		return 0, fmt.Errorf("%d must not be negative", n)
	}
	return n, err
}

func (a args) duration(i int, otherwise time.Duration) (time.Duration, error) {
	w := a.word(i, "")
	if w == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(w)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write it as 1.5s or 200ms", w)
	}
	if d < 0 {
		return 0, errors.New("a duration must not be negative")
	}
	return d, nil
}
