package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"

	"github.com/tacho-bench/tacho/internal/run"
)

// AgentOptions configure an agent and limit what it may do.
type AgentOptions struct {
	Access     Access
	Name       string   // shown in the report
	Version    string   // of the program; coordinator and agents must have the same version
	Trust      []string // public keys of coordinators; empty accepts every coordinator on an authenticated NATS server
	Allow      []string // permitted targets; see checkAddress
	Spool      string   // directory for the agent's key and undelivered records
	SpoolLimit int64    // maximum bytes on disk
	Env        func() run.Env
	Say        func(line string)
	Joined     func(key string) // called with the agent's public key after joining; may be nil
	Once       bool             // exit when the run ends

	JoinWait      time.Duration // how long to wait for NATS
	OrphanTimeout time.Duration // how long to send the load of a silent coordinator; 0 means DefaultOrphanTimeout
}

// An agent works for one coordinator at a time.
type agent struct {
	AgentOptions
	info       agentInfo
	control    *nats.Conn // for commands, clocks and heartbeats, which must not queue behind records
	data       *nats.Conn
	ctx        context.Context
	cancel     context.CancelFunc
	key        *Identity     // signs all messages of this agent
	unseal     nkeys.KeyPair // decrypts commands
	heartbeats atomic.Uint64 // number of heartbeats sent
	inbox      string        // prefix for answers to heartbeats
	contact    contact

	active      sync.WaitGroup // shares with undelivered records
	lastRefusal string         // reason of the last refusal; used by answerCommand only

	mu sync.Mutex
	assignment
	abandonedAt time.Time // when the agent lost its coordinator; zero: not lost
	stopping    bool      // the agent is stopping and accepts no work
	lastHeard   time.Time
	attempt     string              // current attempt at a level
	shares      map[int]*localShare // of the current attempt, by number
}

// An assignment is an agent's work for a coordinator.
type assignment struct {
	run         string         // empty: none
	sealKey     string         // key that the coordinator encrypts with
	coordinator string         // public key of the coordinator
	seq         uint64         // of the last command
	runner      *run.Runner    // of the previous level; nil if a share is using it
	runnerTask  *run.Task      // task that runner was opened for
	progress    map[int][]byte // finished work of shares to take over
}

// coordinatorTimeout is how long an agent without load waits for a silent coordinator.
const coordinatorTimeout = 30 * time.Second

// DefaultOrphanTimeout is how long an agent sends the load of a silent coordinator, which may restart, or be connected
// to NATS again. After this time without NATS a coordinator ends, too.
const DefaultOrphanTimeout = natsLimit

// MinOrphanTimeout is the shortest OrphanTimeout.
const MinOrphanTimeout = coordinatorTimeout / 2

// onceTimeout is how long an agent with Once waits for a restarted coordinator. Kubernetes may need this long to start a
// pod on another node, and the agent may have the only copy of finished records.
const onceTimeout = 15 * time.Minute

// RunAgent joins NATS and works for coordinators until ctx is done.
func RunAgent(ctx context.Context, o AgentOptions) error {
	a := &agent{AgentOptions: o}
	a.OrphanTimeout = cmp.Or(o.OrphanTimeout, DefaultOrphanTimeout)
	a.ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx)) // deliver finished records first
	defer a.cancel()
	unlock, err := lockSpool(o.Spool)
	if err != nil {
		return err
	}
	defer unlock()
	if a.key, err = StoredIdentity(filepath.Join(o.Spool, "agent.nk")); err != nil {
		return err
	}
	a.Access.Identity = a.key
	if err := a.join(ctx); err != nil {
		return err
	}
	defer a.shutdown(ctx)
	a.drainOldSpools()
	if o.Joined != nil {
		o.Joined(a.info.Key)
	}
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	stop, end := ctx.Done(), make(<-chan time.Time)
	for stop != nil || a.data.IsConnected() && !a.isDelivered() {
		select {
		case <-tick.C:
			a.tick()
		case <-stop:
			stop, end = nil, time.After(stopTimeout)
			a.stopShares()
		case <-end:
			return nil
		case <-a.ctx.Done():
			return nil
		}
	}
	return nil
}

// join connects to NATS and subscribes to the agent's subjects.
func (a *agent) join(ctx context.Context) (err error) {
	a.contact.epoch = time.Now()
	a.Access.Dial = a.contact.watch(a.Access.Dial)
	if err := a.connect(ctx); err != nil {
		return err
	}
	a.inbox = a.control.NewInbox()
	if a.data, err = a.Access.connect(); err != nil {
		return err
	}
	if a.unseal, err = nkeys.CreateCurveKeys(); err != nil {
		return err
	}
	host, _ := os.Hostname() // empty if unknown
	a.info = agentInfo{ID: nuid.Next(), Key: a.key.Public(), Name: a.Name, Host: host, CPUs: runtime.NumCPU(), Version: a.Version, Nonce: nuid.Next(), Boot: bootID()}
	if a.info.SealKey, err = a.unseal.PublicKey(); err != nil {
		return err
	}
	for subject, answer := range map[string]func(*nats.Msg){
		discoverSubject: a.answerDiscovery, a.info.orderSubject(): a.answerCommand, a.inbox + ".*": a.handleLease,
		a.info.clockSubject(): func(m *nats.Msg) { _ = m.Respond(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))) }, // the coordinator asks again
	} {
		if _, err := a.control.Subscribe(subject, answer); err != nil {
			return err
		}
	}
	return flush(ctx, a.control)
}

// flush waits until NATS has received all messages, at most requestTimeout.
func flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	return nc.FlushWithContext(ctx)
}

// connect waits until NATS answers, because machines of a cluster start in any order.
func (a *agent) connect(ctx context.Context) (err error) {
	say := sync.OnceFunc(func() {
		a.Say(fmt.Sprintf("No NATS server answers at %s yet. Trying for up to %v.", a.Access.redacted(), a.JoinWait))
	})
	for end := time.Now().Add(a.JoinWait); ; pause(ctx, retryPause) {
		if a.control, err = a.Access.connect(); !errors.Is(err, errNoServer) || time.Now().After(end) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		say()
	}
}

// shutdown ends all shares. Undelivered records stay in the spool.
func (a *agent) shutdown(ctx context.Context) {
	a.stopShares()
	a.cancel()
	a.mu.Lock()
	if a.run != "" && a.publishHeartbeat(heartbeat{Stopped: true}) == nil { // the coordinator need not wait for more
		_ = flush(ctx, a.control) // without this message the coordinator notices the silence
	}
	a.mu.Unlock()
	a.active.Wait()
	a.mu.Lock()
	a.detach()
	a.mu.Unlock()
	a.control.Close()
	a.data.Close()
}

// stopTimeout bounds how long a stopping agent delivers finished records.
const stopTimeout = 5 * time.Second

// stopShares ends the running shares. Their finished records are still delivered.
func (a *agent) stopShares() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping = true
	for _, w := range a.shares {
		w.stopEarly()
	}
}

// isDelivered reports whether all shares have ended and are delivered.
func (a *agent) isDelivered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.shares {
		if !w.done.Load() {
			return false
		}
	}
	return true
}

// answerDiscovery returns the description of this agent. The coordinator asks again if the answer does not arrive.
func (a *agent) answerDiscovery(m *nats.Msg) {
	a.mu.Lock()
	about := a.info
	about.Run = a.run
	a.mu.Unlock()
	_ = a.key.send(a.control, m.Reply, "", about)
}

// answerCommand executes a command and answers with the status.
func (a *agent) answerCommand(m *nats.Msg) {
	s := a.execute(m)
	if s.Refused != a.lastRefusal { // print repeated refusals once
		if a.lastRefusal = s.Refused; s.Refused != "" {
			a.Say("Refused a command: " + s.Refused + ".")
		}
	}
	_ = a.key.send(a.control, m.Reply, "", s)
}

// execute checks a command and executes it.
func (a *agent) execute(m *nats.Msg) status {
	o, err := a.decrypt(m)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		err = a.admit(o)
	}
	if err != nil {
		return status{State: stateIdle, Refused: err.Error(), Free: a.run == ""}
	}
	a.seq, a.lastHeard = o.Seq, time.Now()
	switch o.Kind {
	case cmdAssign:
		if a.attempt != o.Attempt { // shares of other runs continue to deliver their records
			a.discard(func(w *localShare) bool { return w.command.Run == o.Run })
			a.shares, a.attempt = nil, ""
		}
	case cmdProgress:
		err = a.addProgress(o)
	case cmdPrepare:
		err = a.prepare(o)
	case cmdRelease: // no records of the run are needed any more
		a.discard(func(*localShare) bool { return true })
		a.attempt = ""
		a.Say("The run has ended." + map[bool]string{false: " Waiting for the next one."}[a.Once])
		if a.Once {
			a.cancel()
		}
		a.detach()
	}
	w := a.shareOf(o)
	switch {
	case err == nil && w == nil && o.Kind == cmdStart:
		err = errors.New("unknown level")
	case w == nil:
	case o.Kind == cmdStart:
		select {
		case w.startAt <- monotonic(o.Start):
		default: // a repeated command
		}
	case o.Kind == cmdStopSending:
		w.finish()
	case o.Kind == cmdStop:
		w.stop()
	}
	switch {
	case err != nil:
		return status{State: stateIdle, Refused: err.Error()}
	case w == nil:
		return status{State: stateIdle}
	}
	return *w.state.Load()
}

// leader identifies the current coordinator, or is empty.
func (a *agent) leader() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sealKey
}

// shareOf returns the share that a command names, or nil.
func (a *agent) shareOf(o *command) *localShare {
	if a.attempt != o.Attempt {
		return nil
	}
	return a.shares[o.Share]
}

// has reports whether a share is in one of the states.
func (a *agent) has(states ...string) bool {
	for _, w := range a.shares {
		if slices.Contains(states, w.state.Load().State) {
			return true
		}
	}
	return false
}

var errStopping = errors.New("the agent is stopping")

// admit returns an error if the agent must not execute a command.
func (a *agent) admit(o *command) error {
	switch {
	case !plainName.MatchString(o.Run) || !plainName.MatchString(o.Attempt):
		return errors.New("the command names no run")
	case o.Kind == cmdAssign && a.stopping:
		return errStopping
	case o.Kind == cmdAssign && o.Nonce != a.info.Nonce:
		return errors.New("the command is a replay of an earlier one")
	case o.Kind == cmdAssign && a.run != "" && (a.run != o.Run || a.coordinator != o.from):
		return errors.New("it works for another run")
	case o.Kind == cmdAssign:
		if a.run == "" {
			a.Say("Working for the coordinator " + o.from + ".")
		}
		a.run, a.sealKey, a.coordinator, a.info.Nonce, a.abandonedAt = o.Run, o.sealKey, o.from, nuid.Next(), time.Time{}
	case a.run == "" || a.run != o.Run || a.sealKey != o.sealKey || a.coordinator != o.from:
		return errors.New("this agent works for another coordinator")
	case o.Seq <= a.seq:
		return errors.New("a later command was executed before")
	}
	return nil
}

// plainName matches the names of runs and attempts, which are parts of subjects and of directory names.
var plainName = regexp.MustCompile(`^[A-Za-z0-9-]*$`)

// discard ends shares whose records are not needed any more.
func (a *agent) discard(unneeded func(w *localShare) bool) {
	for id, w := range a.shares {
		if unneeded(w) {
			w.discarded.Store(true)
			w.cancel()
			delete(a.shares, id)
		}
	}
}

func (w *localShare) isUnstarted() bool {
	s := w.state.Load().State
	return s == statePreparing || s == stateReady
}

// detach makes the agent available to other coordinators.
func (a *agent) detach() {
	if a.runner != nil {
		a.runner.Close()
	}
	a.assignment, a.info.Nonce = assignment{}, nuid.Next()
}

// tick sends heartbeats and abandons a silent coordinator.
func (a *agent) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	silence := time.Since(a.lastHeard)
	switch {
	case a.run == "":
		if a.Once && !a.abandonedAt.IsZero() && time.Since(a.abandonedAt) > onceTimeout {
			a.Say("No coordinator continued the run.")
			a.cancel()
		}
		return
	case silence > coordinatorTimeout && !a.has(stateRunning): // the coordinator may restart, so finished records are still delivered
		a.Say("The coordinator does not answer. " + map[bool]string{false: "Waiting for the next one.", true: fmt.Sprintf("Waiting %v for it to restart.", onceTimeout)}[a.Once])
		a.discard((*localShare).isUnstarted)
		a.detach()
		a.abandonedAt = time.Now()
		return
	}
	_ = a.publishHeartbeat(heartbeat{}) // the next heartbeat follows soon
	for _, w := range a.shares {
		// No coordinator can stop an orphan any more. A coordinator that continues the run assigns the rest of the share
		// again.
		if silence > a.OrphanTimeout && w.state.Load().State == stateRunning && w.orphaned.CompareAndSwap(false, true) {
			a.Say(fmt.Sprintf("No coordinator was heard for %v: the load stops. Finished records are kept for %v.", a.OrphanTimeout, retention))
			w.stopEarly()
		}
		_ = a.publishHeartbeat(w.heartbeat())
	}
}

// publishHeartbeat numbers, signs and sends a heartbeat. The caller holds a.mu.
func (a *agent) publishHeartbeat(b heartbeat) error {
	b.Agent, b.Leader, b.Seq = a.info.ID, a.sealKey, a.heartbeats.Add(1)
	return a.key.send(a.control, heartbeatSubject(a.run, a.info.Key), fmt.Sprint(a.inbox, ".", a.contact.now()), b)
}

// drainOldSpools delivers finished records that an earlier process left in the spool when it was killed. Records older
// than the retention time are deleted.
func (a *agent) drainOldSpools() {
	entries, _ := os.ReadDir(a.Spool) // the next start tries again
	for _, entry := range entries {
		s, err := openSpool(filepath.Join(a.Spool, entry.Name()))
		if err != nil {
			continue
		}
		if time.Since(s.changed) > retention {
			_ = s.remove() // the next start tries again
			a.Say(fmt.Sprintf("Deleted records of an earlier run in %s: no coordinator collected them within %v.", s.dir, retention))
			continue
		}
		a.Say(fmt.Sprintf("Records of an earlier run are stored in %s. Resume that run (--resume) to collect them; they are deleted after %v.", s.dir, retention))
		a.active.Go(func() { a.drain(s) })
	}
}

// drain delivers the records of an earlier process as soon as their run continues.
func (a *agent) drain(s *spool) {
	up := &uplink{nats: a.data, spool: s, key: a.key, leader: func() string { return "" }}
	err := up.run(a.ctx)
	if err == nil {
		err = up.sendFinal(a.ctx, finalMessage{Ended: "its process died"})
	}
	if err == nil {
		a.Say("Delivered the records that an earlier agent left in " + s.dir + ".")
	}
	if err == nil || errors.Is(err, errUnwanted) {
		_ = s.remove() // a second delivery would change nothing
	}
}
