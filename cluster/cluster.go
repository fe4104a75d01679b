// Package cluster lets many machines run one plan, over NATS. A coordinator
// hands a level to its agents; each of them sends its share of the one schedule
// from the same instant on, and its records come back through JetStream, so that
// they are kept as if one machine had sent them all.
//
// The coordinator is the run.Agents of a run (coordinator.go, drive.go,
// intake.go). An agent answers it (agent.go, work.go) and hands over its records
// from a spool on disk (spool.go, uplink.go). Orders are signed and sealed
// (trust.go); clocks are compared all along (clock.go).
package cluster

import (
	"fmt"
	"time"

	"tacho/live"
	"tacho/metric"
	"tacho/run"
	"tacho/session"
)

// The subjects. Orders and questions go from the coordinator to an agent and are
// answered; beats come from the agents; records go through JetStream.
const (
	rollSubject = "tacho.roll" // who is there?
)

func orderSubject(agent string) string { return "tacho.agent." + agent + ".order" }
func clockSubject(agent string) string { return "tacho.agent." + agent + ".clock" }
func beatSubject(run string) string    { return "tacho.run." + run + ".beat" }
func leadSubject(run string) string    { return "tacho.run." + run + ".lead" }     // who leads the run?
func standSubject(run string) string   { return "tacho.run." + run + ".standing" } // how the level stands, for whoever leads next
func streamOf(run string) string       { return "tacho-" + run }
func recordsOf(run string) string      { return "tacho.run." + run + ".records" }
func triesOf(run, try string) string   { return recordsOf(run) + "." + try + ".*" }

func recordSubject(run, try string, share int) string {
	return fmt.Sprintf("%s.%s.%d", recordsOf(run), try, share)
}

// keepFor is how long records wait for somebody to take them: in the stream of a
// run that nobody leads any more, and in the spool of an agent.
const keepFor = 24 * time.Hour

// Headers of messages that carry records. A level's share is one stream of bytes,
// a line for each record, cut anywhere.
const (
	offsetHeader = "Tacho-Offset" // of its first byte in that stream
	endHeader    = "Tacho-End"    // the stream ends here; the body is a farewell
)

// A roll asks which agents are there.
type roll struct {
	Run string `json:"run"`
}

// A hello is what an agent says of itself.
type hello struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Host    string `json:"host"`
	CPUs    int    `json:"cpus"`
	Version string `json:"version"`
	Box     string `json:"box"`            // the key that orders are sealed for
	Nonce   string `json:"nonce"`          // the next order to join has to name it, so that none can be sent twice
	Boot    string `json:"boot,omitempty"` // of the machine it runs on: the same is the same clock
	Run     string `json:"run,omitempty"`  // that it works for
}

// The kinds of order.
const (
	take       = "take"    // work for a run
	recall     = "recall"  // learn what is done of a share that is to be taken over; in pieces, before prepare
	prepare    = "prepare" // make a share of a level ready
	ask        = "ask"     // how far it is
	begin      = "begin"   // start at an instant
	sendNoMore = "enough"  // send no more; what is in flight may finish
	stop       = "stop"    // end the level now
	release    = "release" // be free again
)

// An order is what a coordinator tells an agent.
type order struct {
	Kind  string    `json:"kind"`
	Run   string    `json:"run"`
	Seq   uint64    `json:"seq"`             // each is above those before it
	Nonce string    `json:"nonce,omitempty"` // of take
	Try   string    `json:"try,omitempty"`   // the level, and which try at it; of take: the one that goes on
	Task  *run.Task `json:"task,omitempty"`  // of prepare
	Share int       `json:"share,omitempty"` // the number of its stream of records
	K     int       `json:"k,omitempty"`     // of prepare: the part of the level that it is
	N     int       `json:"n,omitempty"`     // of so many
	Heed  bool      `json:"heed,omitempty"`  // likewise: answers that a later turn may quote are handed over, too
	Start int64     `json:"start,omitempty"` // of begin: nanoseconds since 1970, by the agent's clock

	Skip  []uint64        `json:"skip,omitempty"`  // of recall: sessions that are done, or have begun
	Begun []session.Begun `json:"begun,omitempty"` // likewise: how far those are that have begun
	Now   time.Duration   `json:"now,omitempty"`   // likewise: since the start of the level
}

// The states of an agent's share.
const (
	idle      = "idle"
	preparing = "preparing"
	ready     = "ready"
	running   = "running"
	ended     = "ended"
	failed    = "failed"
)

// A state is an agent's answer to an order.
type state struct {
	State   string `json:"state"`
	Error   string `json:"error,omitempty"`   // why it failed
	Refused string `json:"refused,omitempty"` // why the order was not taken
	Old     bool   `json:"old,omitempty"`     // that is because a later one was taken before
	Usage   bool   `json:"usage,omitempty"`   // the plan is to blame
}

// A beat says how far an agent is. One comes several times a second.
type beat struct {
	Agent   string      `json:"agent"`
	Try     string      `json:"try,omitempty"` // empty is none
	Share   int         `json:"share"`
	Totals  live.Totals `json:"totals"`         // since the level began
	Tick    live.Tick   `json:"tick"`           // since the last beat
	Waiting int64       `json:"waiting"`        // bytes of records that were not handed over yet
	Full    string      `json:"full,omitempty"` // why records wait in memory
	Left    bool        `json:"left,omitempty"` // the agent was stopped: this is the last of it, and nothing is handed over any more
}

// A farewell is the last that an agent says of a level.
type farewell struct {
	Client  *metric.Client  `json:"client,omitempty"`
	Known   []metric.Reason `json:"known,omitempty"`
	Error   string          `json:"error,omitempty"`   // that ended it early
	Cut     bool            `json:"cut,omitempty"`     // the agent died, and another process hands over what it had finished
	Left    bool            `json:"left,omitempty"`    // the agent was stopped before the share was sent to its end
	Full    string          `json:"full,omitempty"`    // why records had to wait in memory
	Lost    int             `json:"lost,omitempty"`    // records for which there was no room there either
	Waiting int64           `json:"waiting,omitempty"` // bytes that waited to be handed over, at most
}

const (
	beatEvery  = 250 * time.Millisecond
	askTimeout = 2 * time.Second
)
