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
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"tacho/live"
	"tacho/plan"
	"tacho/run"
)

// Options say how a coordinator works.
type Options struct {
	Access   Access
	Identity *Identity
	Version  string
	Agents   int           // how many to have
	Wait     time.Duration // for them to join, and to be ready
	Timeout  time.Duration // without a beat after which an agent is lost
	OnLoss   string
	Run      string // its name; empty makes one
	GoOn     bool   // that run was begun before, by a coordinator that is gone
	Say      func(line string)
}

// A Coordinator has agents run the levels of a plan. It is the run.Agents of one
// run.
type Coordinator struct {
	Options
	control *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	sealer  *sealer
	seq     atomic.Uint64
	over    context.CancelFunc

	away      bool      // NATS is not connected
	awaySince time.Time // when that was first seen
	found     *standing // of the level that was under way when the coordinator before died; nil is none

	mu     sync.Mutex
	agents []*member // in the order of their shares
	level  *levelRun // that is under way
}

var _ run.Agents = (*Coordinator)(nil)

// A member is an agent as the coordinator knows it.
type member struct {
	hello
	mu    sync.Mutex
	clock clock
	heard time.Time
	last  map[int]beat // of the level, by share
	ticks []live.Tick  // of the level, that were not looked at yet
	left  bool         // it has said that it was stopped
	gone  bool         // it is lost for the run
}

// New makes a coordinator. Agents are called when the first level is due.
func New(o Options) (*Coordinator, error) {
	c := &Coordinator{Options: o, over: func() {}}
	c.Run = cmp.Or(o.Run, nuid.Next())
	var err error
	if c.sealer, err = newSealer(o.Identity); err != nil {
		return nil, err
	}
	return c, nil
}

// Close lets the agents go.
func (c *Coordinator) Close() error {
	if c.control == nil {
		return nil
	}
	defer c.control.Close()
	defer c.over()
	if c.stream == nil {
		return nil // it never came to anything
	}
	if !c.control.IsConnected() {
		return nil // nothing can be told; agents go by themselves, and NATS deletes the stream after keepFor
	}
	c.each(c.members(), func(m *member) { _, _ = c.tell(context.Background(), m, &order{Kind: release}) }) // whoever does not hear it goes by itself
	err := c.persist(context.Background(), func(ctx context.Context) error {
		if err := c.js.DeleteStream(ctx, streamOf(c.Run)); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("NATS does not delete the stream of the run, and keeps it for up to %v: %w", keepFor, err)
	}
	return nil
}

func (c *Coordinator) members() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.agents)
}

// each does something with all members at once.
func (c *Coordinator) each(all []*member, do func(*member)) {
	var g sync.WaitGroup
	for _, m := range all {
		g.Go(func() { do(m) })
	}
	g.Wait()
}

// gather joins NATS, and waits until there are as many agents as the plan says.
func (c *Coordinator) gather(ctx context.Context) (err error) {
	if c.control != nil {
		return nil
	}
	if c.control, err = c.Access.connect(); err != nil {
		return err
	}
	if c.js, err = jetstream.New(c.control); err != nil {
		return err
	}
	if err := c.lead(ctx); err != nil {
		return err
	}
	if err := c.makeStream(ctx); err != nil {
		return err
	}
	if c.GoOn {
		if err := c.readStanding(ctx); err != nil {
			return err
		}
	}
	if _, err := c.control.Subscribe(beatSubject(c.Run), c.hear); err != nil {
		return err
	}
	background, over := context.WithCancel(context.WithoutCancel(ctx))
	c.over = over
	go c.watch(background) // agents that wait for others give up whom they do not hear
	if err := c.recruitFirst(ctx); err != nil {
		return err
	}
	c.each(c.members(), func(m *member) { c.compare(ctx, m, firstReadings) })
	return nil
}

// recruitFirst waits for agents before the first level. One that goes on waits for
// none that may have died.
func (c *Coordinator) recruitFirst(ctx context.Context) error {
	if c.found == nil {
		return c.recruit(ctx)
	}
	short, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	_ = c.recruit(short) // whoever is missing is lost, and told of so
	return ctx.Err()
}

// lead says that this coordinator leads the run, unless somebody else does.
func (c *Coordinator) lead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if other, err := c.control.RequestWithContext(ctx, leadSubject(c.Run), nil); err == nil {
		return fmt.Errorf("the run goes on already, led by %q: stop that one first", other.Data)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "another machine"
	}
	_, err = c.control.Subscribe(leadSubject(c.Run), func(m *nats.Msg) {
		_ = m.Respond(fmt.Appendf(nil, "process %d on %s", os.Getpid(), host)) // it is asked again
	})
	return err
}

// makeStream makes the stream of the records: on three servers, where NATS has so
// many, so that one of them may die.
func (c *Coordinator) makeStream(ctx context.Context) (err error) {
	for _, replicas := range []int{3, 1} {
		c.stream, err = c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: streamOf(c.Run), Subjects: []string{recordsOf(c.Run) + ".>", standSubject(c.Run)}, Storage: jetstream.FileStorage, Replicas: replicas,
			Description: "records of a run of tacho, until they are kept", AllowDirect: true, MaxAge: keepFor,
		})
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("NATS makes no stream for the records: is JetStream switched on there? %w", err)
}

// rollPause is between two calls of the roll.
const rollPause = 200 * time.Millisecond

// recruit waits for agents and takes as many as the plan says.
func (c *Coordinator) recruit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	said, why := false, ""
	for {
		there := c.callRoll(ctx)
		if now := c.takeAgents(ctx, there); now != "" && (ctx.Err() == nil || why == "") { // a call that was cut short knows nothing new
			why = now
		}
		if len(c.agents) == c.Agents {
			c.named()
			return nil
		}
		if !said && ctx.Err() == nil {
			said = true
			c.Say(fmt.Sprintf("Waiting up to %v for %s; %d are here%s.", c.Wait, plural(c.Agents, "agent"), len(c.agents), why))
		}
		if pause(ctx, rollPause); ctx.Err() != nil {
			if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return fmt.Errorf("%d of %s are here after %v%s: start more (tacho agent --join ...), or ask for fewer with --agents", len(c.agents), plural(c.Agents, "agent"), c.Wait, why)
		}
	}
}

// plural is a number of things.
func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// callRoll asks who is there.
func (c *Coordinator) callRoll(ctx context.Context) (there []hello) {
	inbox := nats.NewInbox()
	sub, err := c.control.SubscribeSync(inbox)
	if err != nil {
		return nil
	}
	defer func() { _ = sub.Unsubscribe() }()
	text, err := json.Marshal(roll{c.Run})
	if err != nil || c.control.PublishRequest(rollSubject, inbox, text) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rollPause)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break
		}
		var h hello
		if json.Unmarshal(m.Data, &h) == nil && h.ID != "" && !strings.ContainsAny(h.ID, ".*> ") {
			there = append(there, h)
		}
		if len(there) >= c.Agents && len(c.agents) == 0 && c.found == nil {
			break
		}
	}
	slices.SortFunc(there, func(a, b hello) int {
		return cmp.Or(c.found.rank(a.ID)-c.found.rank(b.ID), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return there
}

// takeAgents takes those that are free and may be taken, and says why others were
// not.
func (c *Coordinator) takeAgents(ctx context.Context, there []hello) string {
	var why []string
	for _, h := range there {
		if len(c.agents) == c.Agents {
			break
		}
		if slices.ContainsFunc(c.agents, func(m *member) bool { return m.ID == h.ID }) {
			continue
		}
		switch {
		case h.Run != "" && h.Run != c.Run:
			why = append(why, h.Name+" works for another coordinator")
			continue
		case h.Version != c.Version:
			why = append(why, fmt.Sprintf("%s is tacho %s, and this is %s", h.Name, h.Version, c.Version))
			continue
		}
		m := &member{hello: h, heard: time.Now(), clock: clock{same: h.Boot != "" && h.Boot == bootID()}}
		s, err := c.tell(ctx, m, &order{Kind: take, Nonce: h.Nonce, Try: c.found.try()})
		switch {
		case err != nil:
			why = append(why, fmt.Sprintf("%s does not answer", h.Name))
		case s.Refused != "":
			why = append(why, fmt.Sprintf("%s refuses: %s", h.Name, s.Refused))
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

// named has the agents in the order of their names, whoever was heard first, so that
// the same agents get the same shares. Those of one name get different ones: records and
// reports go by it.
func (c *Coordinator) named() {
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

// tell gives an order, and returns what the agent says to it.
func (c *Coordinator) tell(ctx context.Context, m *member, o *order) (s state, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		if s, err = c.tellOnce(ctx, m, o); err != nil || !s.Old {
			return s, err
		}
	}
}

// tellOnce gives an order the next number. One of another goroutine that has a later
// number may still be heard before it.
func (c *Coordinator) tellOnce(ctx context.Context, m *member, o *order) (s state, err error) {
	o.Run, o.Seq = c.Run, c.seq.Add(1)
	text, err := c.sealer.seal(m.ID, m.Box, o)
	if err != nil {
		return s, err
	}
	answer, err := c.control.RequestWithContext(ctx, orderSubject(m.ID), text)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(answer.Data, &s)
}

// hear takes a beat.
func (c *Coordinator) hear(msg *nats.Msg) {
	var b beat
	if json.Unmarshal(msg.Data, &b) != nil {
		return
	}
	for _, m := range c.members() {
		if m.ID == b.Agent {
			m.mu.Lock()
			if m.heard = time.Now(); m.last == nil {
				m.last = map[int]beat{}
			}
			m.left = m.left || b.Left
			if b.Try != "" && (b.Share >= 0 && b.Share < mostShares) {
				m.last[b.Share] = b
			}
			if m.ticks = append(m.ticks, b.Tick); len(m.ticks) > mostTicks {
				m.ticks = m.ticks[1:]
			}
			m.mu.Unlock()
		}
	}
}

const (
	mostTicks  = 100    // that wait to be shown
	mostShares = 100000 // of a level, with those that were taken over
)

// silent is for how long an agent was not heard.
func (m *member) silent() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.heard)
}

// hasLeft says whether the agent was stopped, and so will never be heard again.
func (m *member) hasLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left
}

// refused makes an error of what an agent says against a plan.
func (m *member) refused(s state) error {
	text := cmp.Or(s.Refused, s.Error)
	err := fmt.Errorf("agent %s (%s): %s", m.Name, m.Host, text)
	if s.Usage {
		return &run.UsageError{Err: err}
	}
	return err
}

// Reassigns says whether another agent takes over what is left of a lost one's
// share.
func (o *Options) reassigns() bool { return o.OnLoss == plan.Reassign }
