package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
)

// Options configure a coordinator.
type Options struct {
	Access   Access
	Identity *Identity
	Version  string
	Agents   int           // number of agents
	Wait     time.Duration // how long to wait until agents have joined and are ready
	Timeout  time.Duration // an agent without a heartbeat for this long is lost
	OnLoss   string
	Trusts   func(key string) bool // reports whether an agent with this public key may join
	Run      string                // name; empty generates one
	Resume   bool                  // continue this run, which an earlier coordinator started
	Journal  string                // file for the received records of the level; empty keeps none for Resume
	Say      func(line string)
}

// A Coordinator runs the levels of a plan on agents. It implements run.Agents for one run.
type Coordinator struct {
	Options
	control *nats.Conn
	batches chan *nats.Msg // from agents
	journal journal
	sealer  *sealer
	seq     atomic.Uint64
	deposed atomic.Bool // another coordinator continues the run
	cancel  context.CancelFunc

	silent      string     // why no agent can be heard; empty: agents can be heard
	silentSince time.Time  // when the coordinator noticed that
	resumeState levelState // of the level that an earlier coordinator left unfinished; Attempt is empty if there is none

	mu     sync.Mutex
	agents []*member // in the order of their shares
	level  *levelRun // current level
}

var _ run.Agents = (*Coordinator)(nil)

// A member is the coordinator's view of an agent.
type member struct {
	agentInfo
	sending    sync.Mutex // sends one command at a time
	mu         sync.Mutex
	clock      clock
	beat       time.Time         // last heartbeat
	lastHeard  time.Time         // beat, or the end of a time in which no agent could be heard
	lastSeq    uint64            // number of the last heartbeat
	heartbeats map[int]heartbeat // of the level, by share
	ticks      []live.Tick       // of the level, not yet processed
	stopped    atomic.Bool       // the agent has announced its stop
	lost       atomic.Bool       // lost for the run
	led        atomic.Bool       // the last heartbeat was for this coordinator
}

func newMember(h agentInfo) *member {
	now := time.Now()
	return &member{agentInfo: h, beat: now, lastHeard: now, clock: clock{same: h.Boot != "" && h.Boot == bootID()}, heartbeats: map[int]heartbeat{}}
}

// New returns a coordinator. It recruits agents when the first level is due.
func New(o Options) (*Coordinator, error) {
	s, err := newSealer(o.Identity)
	c := &Coordinator{Options: o, sealer: s, cancel: func() {}}
	c.Run = cmp.Or(o.Run, nuid.Next())
	return c, err
}

// Close disconnects, and deletes the journal unless agents may still have records of the level. Agents that are not
// released wait for the next coordinator of the run.
func (c *Coordinator) Close(release bool) error {
	if c.control == nil {
		return nil
	}
	defer c.control.Close()
	defer c.cancel()
	if !c.control.IsConnected() || c.silent != "" || c.deposed.Load() {
		return c.journal.close(false) // without a message, agents leave after coordinatorTimeout
	}
	if release {
		each(c.members(), func(m *member) { _, _ = c.send(context.Background(), m, &command{Kind: cmdRelease}) }) // agents that miss it leave by themselves
	}
	return c.journal.close(c.journal.err == nil)
}

func (c *Coordinator) members() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.agents)
}

// each calls do for all elements concurrently.
func each[T any](all []T, do func(T)) {
	var g sync.WaitGroup
	for _, one := range all {
		g.Go(func() { do(one) })
	}
	g.Wait()
}

// assemble connects to NATS and waits for the planned number of agents.
func (c *Coordinator) assemble(ctx context.Context) (err error) {
	if c.control != nil {
		return nil
	}
	if c.control, err = c.Access.connect(); err != nil {
		return err
	}
	if err := c.claimRun(ctx); err != nil {
		return err
	}
	if c.resumeState, err = c.journal.open(c.Journal); err != nil {
		return err
	}
	if !c.Resume {
		c.resumeState = levelState{}
	}
	if _, err := c.control.Subscribe(heartbeatSubject(c.Run, "*"), c.handleHeartbeat); err != nil {
		return err
	}
	c.batches = make(chan *nats.Msg, maxBatches)
	if _, err := c.control.ChanSubscribe(recordsSubject(c.Run)+".*.*.*", c.batches); err != nil {
		return err
	}
	background, over := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = over
	go c.monitorClocks(background)
	if c.resumeState.Attempt != "" { // agents that died are reported as lost
		_ = c.recruit(ctx, c.Timeout)
	}
	if c.resumeState.Attempt == "" || len(c.members()) == 0 {
		err = c.recruit(ctx, c.Wait)
	}
	each(c.members(), func(m *member) { c.measureClock(ctx, m, initialReadings) })
	return cmp.Or(err, ctx.Err())
}

// claimRun makes this coordinator the leader of the run, or fails if there is another one.
func (c *Coordinator) claimRun(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if other, err := c.control.RequestWithContext(ctx, leaderSubject(c.Run), nil); err == nil {
		return fmt.Errorf("another coordinator leads this run (%q): stop it first", other.Data)
	}
	host, _ := os.Hostname() // empty if unknown
	_, err := c.control.Subscribe(leaderSubject(c.Run), func(m *nats.Msg) {
		_ = m.Respond(fmt.Appendf(nil, "process %d on %s", os.Getpid(), host)) // the other coordinator asks again
	})
	return err
}

// maxBatches is how many batches wait for the coordinator. Agents send other batches again.
const maxBatches = 1000

// discoveryTimeout is how long the coordinator waits for answers to a discovery.
const discoveryTimeout = 200 * time.Millisecond

// recruit waits for agents and assigns the planned number.
func (c *Coordinator) recruit(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	why, said := "", false
	for ; ; pause(ctx, discoveryTimeout) {
		there := c.discover(ctx)
		if now := c.assignAgents(ctx, there); now != "" && (ctx.Err() == nil || why == "") { // an interrupted call has no new reasons
			why = now
		}
		switch err := context.Cause(ctx); {
		case len(c.agents) == c.Agents:
			c.nameAgents()
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("%d of %d agents joined within %v%s: start more (tacho agent --join ...) or lower --agents", len(c.agents), c.Agents, wait, why)
		case err != nil:
			return err
		case !said:
			said = true
			c.Say(fmt.Sprintf("Waiting up to %v for %d agents; %d joined%s.", wait, c.Agents, len(c.agents), why))
		}
	}
}

// discover asks which agents are available.
func (c *Coordinator) discover(ctx context.Context) (there []agentInfo) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	inbox := nats.NewInbox()
	sub, err := c.control.SubscribeSync(inbox)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
		err = c.control.PublishRequest(discoverSubject, inbox, nil)
	}
	for err == nil && (len(there) < c.Agents || len(c.agents) > 0 || c.resumeState.Attempt != "") {
		var m *nats.Msg
		var h agentInfo
		if m, err = sub.NextMsgWithContext(ctx); err == nil && json.Unmarshal(m.Data, &h) == nil && h.ID != "" && !strings.ContainsAny(h.ID, ".*> ") && signedBy(h.Key, m) {
			there = append(there, h)
		}
	}
	slices.SortFunc(there, func(a, b agentInfo) int {
		return cmp.Or(c.resumeState.rank(a.ID)-c.resumeState.rank(b.ID), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return there
}

// assignAgents assigns available agents to this run and returns why it rejected others.
func (c *Coordinator) assignAgents(ctx context.Context, there []agentInfo) string {
	var why []string
	reject := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	for _, h := range there {
		switch {
		case len(c.agents) == c.Agents || slices.ContainsFunc(c.agents, func(m *member) bool { return m.ID == h.ID }):
			continue
		case !c.Trusts(h.Key):
			reject("%s has the key %s, which this coordinator does not trust: --trust-agent %[2]s trusts it", h.Name, h.Key)
			continue
		case h.Run != "" && h.Run != c.Run:
			reject("%s works for another coordinator", h.Name)
			continue
		case h.Version != c.Version:
			reject("%s is tacho %s, and this is %s", h.Name, h.Version, c.Version)
			continue
		}
		m := newMember(h)
		s, err := c.send(ctx, m, &command{Kind: cmdAssign, Nonce: h.Nonce, Attempt: c.resumeState.Attempt})
		switch {
		case err != nil:
			reject("%s does not answer", h.Name)
		case s.Refused != "":
			reject("%s refuses: %s", h.Name, s.Refused)
		default:
			c.mu.Lock()
			c.agents = append(c.agents, m)
			c.mu.Unlock()
		}
	}
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, "; ") + ")"
}

// nameAgents sorts agents by name, so that the same agents always get the same shares. It
// makes the names unique, because records and reports contain them.
func (c *Coordinator) nameAgents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.agents, func(a, b *member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	seen := map[string]bool{}
	for _, m := range c.agents {
		name := m.Name
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s#%d", m.Name, n)
		}
		m.Name = name
		seen[name] = true
	}
}

// send sends a command and returns the agent's answer. An agent refuses commands that arrive after a later one.
func (c *Coordinator) send(ctx context.Context, m *member, o *command) (s status, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m.sending.Lock()
	defer m.sending.Unlock()
	o.Run, o.Seq = c.Run, c.seq.Add(1)
	order, err := c.sealer.seal(&m.agentInfo, o)
	if err != nil {
		return s, err
	}
	answer, err := c.control.RequestMsgWithContext(ctx, order)
	if err == nil && !signedBy(m.Key, answer) {
		err = errors.New("the agent did not sign its answer")
	}
	if err == nil {
		err = json.Unmarshal(answer.Data, &s)
	}
	return s, err
}

// handleHeartbeat stores a heartbeat and answers it.
func (c *Coordinator) handleHeartbeat(msg *nats.Msg) {
	var b heartbeat
	if json.Unmarshal(msg.Data, &b) != nil {
		return
	}
	for _, m := range c.members() {
		if m.ID != b.Agent || !signedBy(m.Key, msg) || !m.add(&b) {
			continue
		}
		if led := m.led.Swap(b.Leader == c.sealer.public); led && b.Leader != c.sealer.public {
			c.deposed.Store(true)
		}
		_ = msg.Respond([]byte(map[bool]string{true: takenOver}[m.lost.Load()])) // the answer to the next heartbeat follows soon
	}
}

// add stores a heartbeat, and reports whether it is new.
func (m *member) add(b *heartbeat) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.Seq <= m.lastSeq {
		return false
	}
	m.lastSeq, m.beat = b.Seq, time.Now()
	m.lastHeard = m.beat
	m.stopped.Store(m.stopped.Load() || b.Stopped)
	if b.Attempt != "" && (b.Share >= 0 && b.Share < maxShares) {
		m.heartbeats[b.Share] = *b
	}
	if m.ticks = append(m.ticks, b.Tick); len(m.ticks) > maxTicks {
		m.ticks = m.ticks[1:]
	}
	return true
}

const (
	maxTicks  = 100    // not yet processed
	maxShares = 100000 // of a level, with taken-over shares
)

// silence returns the time since the agent's last heartbeat.
func (m *member) silence() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.lastHeard)
}

// refused makes an error of an agent's refusal.
func (m *member) refused(s status) error {
	err := fmt.Errorf("agent %s (%s): %s", m.Name, m.Host, cmp.Or(s.Refused, s.Error))
	if s.Usage {
		return &run.UsageError{Err: err}
	}
	return err
}

// reassigns reports whether another agent takes over the rest of a lost share.
func (o *Options) reassigns() bool { return o.OnLoss == plan.Reassign }
