// Package cluster runs one plan on many machines over NATS. A coordinator assigns each agent a share of a level. All
// shares follow one schedule and start at the same instant. Agents send their records in batches until the coordinator
// acknowledges them, and the coordinator stores them like the records of one machine.
//
// The coordinator implements run.Agents (coordinator.go, drive.go, takeover.go). It keeps the received records of the
// level in a journal (journal.go, levelstate.go). An agent executes commands (agent.go, localshare.go) and sends its
// records from a spool on disk (spool.go, uplink.go). Messages are signed (trust.go). Clock offsets are measured
// throughout the run (clock.go).
package cluster

import (
	"fmt"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
)

// NATS subjects. The coordinator sends commands and queries, and agents answer them. Agents publish heartbeats and
// batches of records.

const discoverSubject = "tacho.roll" // asks which agents are available

func (h *agentInfo) subject() string          { return "tacho.agent." + h.Key + "." + h.ID }
func (h *agentInfo) orderSubject() string     { return h.subject() + ".order" }
func (h *agentInfo) clockSubject() string     { return h.subject() + ".clock" }
func heartbeatSubject(run, key string) string { return "tacho.run." + run + ".beat." + key }
func leaderSubject(run string) string         { return "tacho.run." + run + ".lead" } // asks which coordinator leads the run
func recordsSubject(run string) string        { return "tacho.run." + run + ".records" }
func inboxPrefix(key string) string           { return "_INBOX_" + key }

// recordSubject contains the agent's key, so that permissions can restrict an agent to its own subjects.
func recordSubject(run, try, key string, share int) string {
	return fmt.Sprintf("%s.%s.%s.%d", recordsSubject(run), try, key, share)
}

// Headers of batches. The records of a share are one stream of bytes, one line per record. Batches may split lines. The
// offset identifies a batch that arrives twice.
const (
	offsetHeader = "Tacho-Offset" // offset of the first byte in the stream
	endHeader    = "Tacho-End"    // marks the end of the stream; the body is a finalMessage
	leaderHeader = "Tacho-Leader" // the coordinator that may acknowledge the batch; empty: any of the run
)

// An agentInfo describes an agent.
type agentInfo struct {
	ID      string `json:"id"`  // of the process
	Key     string `json:"key"` // the agent's public key; it signs all messages
	Name    string `json:"name"`
	Host    string `json:"host"`
	CPUs    int    `json:"cpus"`
	Version string `json:"version"`
	SealKey string `json:"box"`            // the public key that commands are encrypted for
	Nonce   string `json:"nonce"`          // required in the next cmdAssign, which prevents replays
	Boot    string `json:"boot,omitempty"` // boot id of the machine; agents with the same boot id share a clock
	Run     string `json:"run,omitempty"`  // the current run
}

// The kinds of command.
const (
	cmdAssign      = "take"    // join a run
	cmdProgress    = "recall"  // finished work of a share to take over, before cmdPrepare
	cmdPrepare     = "prepare" // prepare a share of a level
	cmdStatus      = "ask"     // report the status of a share
	cmdStart       = "begin"   // start the share at an instant
	cmdStopSending = "enough"  // send no more requests; requests in flight may finish
	cmdStop        = "stop"    // end the level now
	cmdRelease     = "release" // leave the run
)

// A command is sent by the coordinator to one agent.
type command struct {
	Kind        string    `json:"kind"`
	Run         string    `json:"run"`
	Seq         uint64    `json:"seq"`             // increases with every command
	Nonce       string    `json:"nonce,omitempty"` // of cmdAssign
	Attempt     string    `json:"try,omitempty"`   // identifies the level and the attempt; in cmdAssign, the attempt that continues
	Task        *run.Task `json:"task,omitempty"`  // of cmdPrepare
	Share       int       `json:"share,omitempty"` // number of the share's record stream
	Part        int       `json:"k,omitempty"`     // of cmdPrepare: index of the part of the level
	Parts       int       `json:"n,omitempty"`     // of cmdPrepare: number of parts
	KeepAnswers bool      `json:"heed,omitempty"`  // of cmdPrepare: also return answers that later turns may quote

	Lease time.Duration `json:"lease,omitempty"` // of cmdPrepare: send nothing without contact for this long; 0: no other agent takes over
	Start int64         `json:"start,omitempty"` // of cmdStart: nanoseconds since 1970 by the agent's clock

	Offset   int    `json:"offset,omitempty"`   // of cmdProgress: bytes before this piece; of cmdPrepare: bytes of all pieces
	Progress []byte `json:"progress,omitempty"` // of cmdProgress: a piece of a shareProgress

	from, sealKey string // the coordinator's public keys, from the headers
}

// The states of an agent's share.
const (
	stateIdle      = "idle"
	statePreparing = "preparing"
	stateReady     = "ready"
	stateRunning   = "running"
	stateEnded     = "ended"
	stateFailed    = "failed"
)

// A status is an agent's answer to a command.
type status struct {
	State   string `json:"state"`
	Error   string `json:"error,omitempty"`   // why the share failed
	Refused string `json:"refused,omitempty"` // why the agent refused the command
	Usage   bool   `json:"usage,omitempty"`   // the error is a mistake in the plan
	Free    bool   `json:"free,omitempty"`    // the agent refused because it left the run
}

// A heartbeat reports the progress of a share, several times a second.
type heartbeat struct {
	Agent   string      `json:"agent"`
	Leader  string      `json:"leader"`        // the coordinator that the agent works for
	Seq     uint64      `json:"seq"`           // increases with every heartbeat
	Attempt string      `json:"try,omitempty"` // empty: no level is running
	Share   int         `json:"share"`
	Totals  live.Totals `json:"totals"`         // since the level began
	Tick    live.Tick   `json:"tick"`           // since the last heartbeat
	Stopped bool        `json:"left,omitempty"` // the agent was stopped and delivers no more records
}

// takenOver is the coordinator's answer to the heartbeat of an agent whose shares other agents took over; the answer to
// others is empty.
const takenOver = "lost"

// A finalMessage ends the record stream of a share.
type finalMessage struct {
	Client     *metric.Client  `json:"client,omitempty"`
	Reasons    []metric.Reason `json:"known,omitempty"`
	Error      string          `json:"error,omitempty"`    // why the share ended early
	Ended      string          `json:"ended,omitempty"`    // why the agent did not complete the share
	Orphaned   bool            `json:"orphaned,omitempty"` // it can continue, because only its coordinator was silent
	SpoolError string          `json:"full,omitempty"`     // why records waited in memory
	Lost       int             `json:"lost,omitempty"`     // records dropped because disk and memory were full
	MaxPending int64           `json:"waiting,omitempty"`  // maximum number of undelivered bytes
	Sent       int64           `json:"sent,omitempty"`     // requests sent, with those whose records are not in the stream
	Paused     time.Duration   `json:"paused,omitempty"`   // how long it sent nothing because it did not hear the coordinator
}

const (
	heartbeatInterval = 250 * time.Millisecond
	requestTimeout    = 2 * time.Second
	retention         = 24 * time.Hour // of undelivered records in the spool of an agent
)
