package sim

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A FaultKind is one thing that can go wrong on purpose.
type FaultKind struct {
	Name  string
	Args  string // its arguments with their defaults, for people
	About string

	scope scope
	apply func(fx *effects, args args) error
}

// scope is what a fault happens to.
type scope int

const (
	perRequest scope = iota // one answer
	perServer               // the model, for all
	perAccept               // a connection before it is one
)

// FaultKinds are all the faults there are.
var FaultKinds = []FaultKind{
	refusalKind("429", http.StatusTooManyRequests),
	refusalKind("500", http.StatusInternalServerError),
	refusalKind("503", http.StatusServiceUnavailable),
	{
		Name: "queue-full", About: "refuses the request as the server does when it is full",
		apply: func(fx *effects, _ args) error { fx.overload = true; return nil },
	},
	{
		Name: "reset", Args: ":TOKENS=0", About: "breaks the connection after so many tokens, or before the head",
		apply: func(fx *effects, a args) (err error) { fx.resetAt, err = a.count(0, 0); return err },
	},
	{
		Name: "truncate", Args: ":TOKENS=1", About: "ends the stream after so many tokens, in good order but without an end mark",
		apply: func(fx *effects, a args) (err error) { fx.cutAt, err = a.count(0, 1); return err },
	},
	{
		Name: "stall", Args: ":TOKENS=1:TIME=forever", About: "sends nothing for a while after so many tokens",
		apply: func(fx *effects, a args) (err error) {
			if fx.stallAt, err = a.count(0, 1); err != nil {
				return err
			}
			fx.stall, err = a.duration(1, 0)
			return err
		},
	},
	{
		Name: "error", Args: ":TOKENS=1", About: "sends an error inside the stream after so many tokens, and then the end mark if the protocol has one",
		apply: func(fx *effects, a args) (err error) { fx.errorAt, err = a.count(0, 1); return err },
	},
	{
		Name: "malformed", Args: ":TOKENS=1", About: "sends an event that is no JSON after so many tokens",
		apply: func(fx *effects, a args) (err error) { fx.garbleAt, err = a.count(0, 1); return err },
	},
	{
		Name: "huge", Args: ":TOKENS=1:BYTES=4194304", About: "makes the event after so many tokens that much longer",
		apply: func(fx *effects, a args) (err error) {
			if fx.hugeAt, err = a.count(0, 1); err != nil {
				return err
			}
			fx.huge, err = a.count(1, 4<<20)
			return err
		},
	},
	{
		Name: "no-usage", About: "leaves out the server's token counts",
		apply: func(fx *effects, _ args) error { fx.noUsage = true; return nil },
	},
	{
		Name: "wrong-usage", Args: ":OFF=7", About: "adds so much to the server's count of generated tokens",
		apply: func(fx *effects, a args) (err error) { fx.miscount, err = a.integer(0, 7); return err },
	},
	{
		Name: "early-role", About: "sends the role of a chat answer before the model has run",
		apply: func(fx *effects, _ args) error { fx.earlyRole = true; return nil },
	},
	{
		Name: "merge", Args: ":EVENTS=4", About: "holds events back and sends so many together",
		apply: func(fx *effects, a args) (err error) { fx.merge, err = a.count(0, 4); return err },
	},
	{
		Name: "trickle", About: "sends one byte at a time",
		apply: func(fx *effects, _ args) error { fx.trickle = true; return nil },
	},
	{
		Name: "gzip", About: "compresses the answer whether or not the client can read that",
		apply: func(fx *effects, _ args) error { fx.gzip = true; return nil },
	},
	{
		Name: "reasoning", Args: ":TOKENS=2", About: "tells the first tokens of a streamed chat answer as reasoning",
		apply: func(fx *effects, a args) (err error) { fx.reasoning, err = a.count(0, 2); return err },
	},
	{
		Name: "hostile", Args: ":KIND=all", About: "answers with hostile text: html, control, utf8 or all",
		apply: func(fx *effects, a args) (err error) { fx.hostile, err = hostileTokens(a.word(0, "all")); return err },
	},
	{
		Name: "pause", Args: ":TIME=1.3s", About: "stops the whole model for a while", scope: perServer,
		apply: func(fx *effects, a args) (err error) {
			fx.pause, err = a.duration(0, 1300*time.Millisecond)
			return err
		},
	},
	{
		Name: "refuse", About: "listens to nobody: connections are refused (by schedule only)", scope: perAccept,
		apply: func(fx *effects, _ args) error { fx.refuse = true; return nil },
	},
	{
		Name: "slow-accept", Args: ":TIME=100ms", About: "takes its time to accept each connection (not by header)", scope: perAccept,
		apply: func(fx *effects, a args) (err error) {
			fx.slowAccept, err = a.duration(0, 100*time.Millisecond)
			return err
		},
	},
}

func refusalKind(name string, status int) FaultKind {
	return FaultKind{
		Name: name, About: "refuses the request with status " + name + ", " + http.StatusText(status),
		apply: func(fx *effects, _ args) error { fx.status = status; return nil },
	}
}

// effects are what the faults do to one request. Positions are tokens written
// before, and never is none.
type effects struct {
	names string // of the faults, for the truth

	status   int // refuse with it
	overload bool

	resetAt, cutAt, stallAt, errorAt, garbleAt, hugeAt int

	stall      time.Duration // 0 is forever
	huge       int           // bytes
	noUsage    bool
	miscount   int
	earlyRole  bool
	merge      int // events in a write
	trickle    bool
	gzip       bool
	reasoning  int      // tokens
	hostile    []string // token texts, ready for a JSON string
	pause      time.Duration
	refuse     bool
	slowAccept time.Duration
}

const never = -1

func noEffects() effects {
	return effects{resetAt: never, cutAt: never, stallAt: never, errorAt: never, garbleAt: never, hugeAt: never, merge: 1}
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
		return 0, fmt.Errorf("%q is not a number that fits here: write it alone, as in truncate:4 and truncate:4=3%%", w)
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
		return 0, fmt.Errorf("%q is no time: write it as 1.5s or 200ms", w)
	}
	if d < 0 {
		return 0, errors.New("a time must not be negative")
	}
	return d, nil
}
