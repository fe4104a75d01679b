package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nuid"

	"tacho/live"
	"tacho/metric"
	"tacho/run"
)

// A levelRun is a level under way.
type levelRun struct {
	task   *run.Task
	try    string // its name
	shares []*share
	in     *intake
	known  []metric.Reason
	epoch  time.Time
	taken  chan takeover
	begun  bool   // by a coordinator before this one
	behind uint64 // the last message that was there when this one took it up
	stale  bool   // the standing that is kept is not this
}

// Prepare implements run.Agents.
func (c *Coordinator) Prepare(ctx context.Context, t *run.Task) error {
	under, err := c.UnderWay(ctx, t.Index)
	if err != nil {
		return err
	}
	if under {
		return c.pickUp(ctx, t)
	}
	for {
		if err := c.prepare(ctx, t); !errors.Is(err, errGone) || ctx.Err() != nil {
			return err
		}
	}
}

// prepare has the agents that are there make a level ready. One that turns out to be
// gone is marked so, and the error is errGone: the next try does without it.
func (c *Coordinator) prepare(ctx context.Context, t *run.Task) error {
	l := &levelRun{task: t, try: fmt.Sprintf("%d-%s", t.Index, nuid.Next()), taken: make(chan takeover, mostTakeovers)}
	members, err := c.present(ctx, l)
	if err != nil {
		return err
	}
	n := t.Shares(len(members))
	for k, m := range members[:n] {
		c.newShare(l, k, n, m)
	}
	if err := c.persist(ctx, func(ctx context.Context) error { return c.stream.Purge(ctx) }); err != nil { // all of it is kept elsewhere by now
		return fmt.Errorf("NATS does not make room for the level's records: %w", err)
	}
	if l.in, err = c.openIntake(ctx, l.try); err != nil {
		return err
	}
	c.level = l
	if err := c.readyAll(ctx, l); err != nil {
		l.in.close()
		c.stopAll(context.WithoutCancel(ctx), l)
		return err
	}
	return nil
}

// present are the agents that are there. Where some were lost, others may take
// their place; without them the level has fewer.
func (c *Coordinator) present(ctx context.Context, l *levelRun) ([]*member, error) {
	c.mu.Lock()
	before := len(c.agents)
	c.agents = slices.DeleteFunc(c.agents, func(m *member) bool { return m.gone || m.hasLeft() })
	left := len(c.agents)
	c.mu.Unlock()
	if left < before || left < c.Agents {
		short, cancel := context.WithTimeout(ctx, c.Timeout)
		err := c.recruit(short)
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all := c.members()
		if len(all) == 0 {
			return nil, err
		}
		if err != nil {
			l.known = append(l.known, metric.Reason{
				Code: "fewer-agents", Severity: metric.Degraded,
				Text: fmt.Sprintf("only %d of %d agents were left for this level: each had more to send: start others in place of those that were lost", len(all), c.Agents),
			})
		}
		c.each(all, func(m *member) { c.compare(ctx, m, firstReadings) })
	}
	return c.members(), nil
}

// readyAll has all agents make their shares ready.
func (c *Coordinator) readyAll(ctx context.Context, l *levelRun) error {
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	failed := make([]error, len(l.shares))
	var g sync.WaitGroup
	for i, s := range l.shares {
		g.Go(func() {
			failed[i] = c.ready(ctx, s, s.prepare(l))
			if failed[i] != nil {
				cancel() // nobody needs to go on
			}
		})
	}
	g.Wait()
	var all []error
	for i, err := range failed {
		if errors.Is(err, errGone) {
			l.shares[i].by.gone = true
			c.Say(fmt.Sprintf("The level begins without an agent: %v.", err))
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			all = append(all, err)
		}
	}
	if len(all) == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(all...)
}

// errGone says that an agent died or was stopped before its share was ready.
var errGone = errors.New("is gone")

// ready has one agent make its share ready, and waits until it is.
func (c *Coordinator) ready(ctx context.Context, s *share, o *order) error {
	wait := time.Millisecond
	for {
		now, err := c.tell(ctx, s.by, o)
		switch {
		case err == nil && (now.Refused != "" || now.State == failed):
			return s.by.refused(now)
		case err == nil && now.State == ready:
			return nil
		case s.by.hasLeft():
			return fmt.Errorf("agent %s (%s) %w: it was stopped", s.by.Name, s.by.Host, errGone)
		case err != nil && !c.control.IsConnected():
			c.excuse()
		case err != nil && s.by.silent() > c.Timeout:
			return fmt.Errorf("agent %s (%s) %w: nothing was heard of it for %v", s.by.Name, s.by.Host, errGone, c.Timeout)
		case err == nil && o.Kind == prepare:
			o = &order{Kind: ask, Try: o.Try, Share: o.Share}
		}
		if pause(ctx, wait); ctx.Err() != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("agent %s was not ready for the level after %v: raise --agent-wait, or see what holds it up", s.by.Name, c.Wait)
		}
		wait = min(2*wait, 100*time.Millisecond)
	}
}

// lead is how long before the start agents are told, at least.
const lead = 200 * time.Millisecond

// Drive implements run.Agents.
func (c *Coordinator) Drive(ctx context.Context, d *run.Drive) ([]metric.Agent, []metric.Reason, error) {
	l := c.level
	defer l.in.close()
	if l.begun {
		c.goOn(ctx, l)
	} else {
		c.start(ctx, l)
	}
	d.Live.Client = l.fares
	d.Begin(l.epoch)
	err := c.follow(ctx, l, d)
	var agents []metric.Agent
	for _, s := range l.shares {
		agents = append(agents, s.agent())
		l.known = append(l.known, s.reasons()...)
	}
	return agents, once(l.known), err
}

// start has all begin at one instant.
func (c *Coordinator) start(ctx context.Context, l *levelRun) {
	ahead := lead
	for _, s := range l.shares {
		c.compare(ctx, s.by, moreReadings)
		_, bound := s.by.offset()
		ahead = max(ahead, lead+10*bound)
	}
	l.epoch = time.Now().Add(ahead)
	for _, s := range l.shares {
		s.offset, _ = s.by.offset()
	}
	for _, s := range l.shares {
		go c.startOne(ctx, l, s)
	}
	c.keepStanding(ctx, l)
}

// startOne has a share begin when the level does, or did.
func (c *Coordinator) startOne(ctx context.Context, l *levelRun, s *share) {
	now, heard := c.insist(ctx, s.by, order{Kind: begin, Try: l.try, Share: s.id, Start: l.epoch.Add(s.offset).UnixNano()})
	s.absent.Store(heard && now.Refused != "")
}

// insist gives an order until it is heard, or the agent is lost or stopped.
func (c *Coordinator) insist(ctx context.Context, m *member, o order) (now state, heard bool) {
	for ctx.Err() == nil && m.silent() < c.Timeout && !m.hasLeft() {
		again := o
		if now, err := c.tell(ctx, m, &again); err == nil {
			return now, true
		}
		pause(ctx, 50*time.Millisecond)
	}
	return now, false
}

func (c *Coordinator) stopAll(ctx context.Context, l *levelRun) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var g sync.WaitGroup
	for _, s := range l.shares {
		g.Go(func() { c.insist(ctx, s.by, order{Kind: stop, Try: l.try, Share: s.id}) })
	}
	g.Wait()
}

// follow takes records in until all shares are whole, or what is missing is lost.
func (c *Coordinator) follow(ctx context.Context, l *levelRun, d *run.Drive) error {
	tick := time.NewTicker(beatEvery / 2)
	defer tick.Stop()
	halt, enough := ctx.Done(), d.Enough
	stopping, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	defer l.count(d)
	var leave <-chan time.Time
	var failed error
	for !l.over() {
		select {
		case m := <-l.in.messages:
			if err := l.take(m, d); err != nil && failed == nil {
				failed = err
				go c.stopAll(stopping, l)
			}
			l.in.took(m)
		case <-tick.C:
			if err := c.inspect(ctx, l, d); err != nil {
				return err
			}
		case t := <-l.taken:
			c.takenOver(ctx, l, t)
		case <-enough:
			enough = nil
			for _, s := range l.shares {
				go c.insist(ctx, s.by, order{Kind: sendNoMore, Try: l.try, Share: s.id})
			}
		case <-halt:
			halt, leave = nil, c.graceWithoutNATS()
			go c.stopAll(stopping, l)
		case <-leave:
			if !c.control.IsConnected() {
				return ctx.Err()
			}
		}
	}
	return cmp.Or(failed, ctx.Err())
}

// inspect is what is done now and then while a level runs.
func (c *Coordinator) inspect(ctx context.Context, l *levelRun, d *run.Drive) error {
	l.count(d)
	c.tellFull(l)
	if err := c.seeNATS(ctx); err != nil {
		return err
	}
	c.findLost(ctx, l)
	c.look(ctx, l)
	if l.stale {
		c.keepStanding(ctx, l)
	}
	return nil
}

// graceWithoutNATS is when a stopped run ends without its agents, because NATS is away;
// nil if NATS is there.
func (c *Coordinator) graceWithoutNATS() <-chan time.Time {
	if c.control.IsConnected() {
		return nil
	}
	c.Say(fmt.Sprintf("NATS is away, so the agents cannot be told to stop: tacho ends in %v. Their records stay in their spools, and --resume gets them later.", stopGrace))
	return time.After(stopGrace)
}

const (
	// natsLimit is how long a level waits for NATS. Kubernetes moves a pod from a dead
	// node after 5 minutes, and starting NATS there takes less than that again.
	natsLimit = 10 * time.Minute
	// stopGrace is how long a stopped run waits for NATS to come back, so that a
	// connection that broke a moment ago does not leave agents sending.
	stopGrace = 2 * time.Second
)

// seeNATS tells when NATS is away, and when it is back. The error says that it was away
// for natsLimit. A run that was stopped does not wait for it.
func (c *Coordinator) seeNATS(ctx context.Context) error {
	away := !c.control.IsConnected()
	if away != c.away {
		c.away, c.awaySince = away, time.Now()
		c.Say(map[bool]string{true: "NATS is away: the agents go on, and their records wait for it.", false: "NATS is here again."}[away])
	}
	if away && time.Since(c.awaySince) >= natsLimit {
		return fmt.Errorf("NATS could not be reached for %v: agents keep their records for %v, so start NATS again, and go on with tacho bench --resume", natsLimit, keepFor)
	}
	if away && ctx.Err() == nil {
		c.excuse()
	}
	return nil
}

// excuse does not count it against agents that they were not heard so far.
func (c *Coordinator) excuse() {
	for _, m := range c.members() {
		m.mu.Lock()
		m.heard = time.Now()
		m.mu.Unlock()
	}
}

// over says whether nothing more is to come.
func (l *levelRun) over() bool {
	return l.in.done >= l.behind && !slices.ContainsFunc(l.shares, func(s *share) bool { return s.lost == "" && (!s.ended || s.died()) })
}

// take takes a message in.
func (l *levelRun) take(m incoming, d *run.Drive) error {
	_, text, _ := cutLast(m.subject)
	k, err := strconv.Atoi(text)
	if err != nil || k < 0 || k >= len(l.shares) {
		return fmt.Errorf("records of a share that nobody has: %s", m.subject)
	}
	return l.shares[k].take(m.header, m.body, d.Sink)
}

func cutLast(subject string) (before, last string, ok bool) {
	i := strings.LastIndexByte(subject, '.')
	if i < 0 {
		return "", subject, false
	}
	return subject[:i], subject[i+1:], true
}

// count adds up what the agents are at.
func (l *levelRun) count(d *run.Drive) {
	var sum live.Totals
	for _, s := range l.shares {
		s.by.mu.Lock()
		b, ticks := s.by.last[s.id], s.by.ticks
		s.by.ticks = nil
		s.by.mu.Unlock()
		for _, t := range ticks {
			d.Live.Saw(t)
		}
		if b.Try == l.try {
			sum = sum.Plus(b.Totals)
		}
	}
	to := &d.Live.Counts
	to.Started.Store(sum.Sent)
	to.Finished.Store(sum.Finished)
	to.Failed.Store(sum.Failed)
	to.Tokens.Store(sum.Tokens)
	to.Sessions.Store(sum.Sessions)
}

// tellFull says once of each agent that its spool is full.
func (c *Coordinator) tellFull(l *levelRun) {
	for _, s := range l.shares {
		s.by.mu.Lock()
		b := s.by.last[s.id]
		s.by.mu.Unlock()
		if b.Full != "" && b.Try == l.try && !s.toldFull {
			s.toldFull = true
			c.Say(fmt.Sprintf("Agent %s keeps records in memory: %s. It goes on, up to %d MiB of them.", s.by.Name, b.Full, memoryBytes>>20))
		}
	}
}

// fares is how the agents fare while a level runs.
func (l *levelRun) fares() *metric.Client {
	var all []metric.Agent
	for _, s := range l.shares {
		s.by.mu.Lock()
		all = append(all, metric.Agent{Client: s.by.last[s.id].Tick.Client})
		s.by.mu.Unlock()
	}
	return metric.WorstClient(all)
}

// findLost gives up agents that were not heard for too long. What they had handed
// over before is taken in first.
func (c *Coordinator) findLost(ctx context.Context, l *levelRun) {
	for _, s := range l.shares {
		died := s.died()
		switch {
		case s.lost != "" || !died && (s.ended || s.by.silent() < c.Timeout && !s.absent.Load() && !s.by.hasLeft()):
			continue
		case died && s.last.Left:
			s.lost = "it was stopped"
		case died:
			s.lost = "its process died, and the next one handed over what it had finished"
		case c.waiting(ctx, l, s):
			continue
		case s.by.hasLeft():
			s.lost = "it was stopped, and had no time to hand over all that it had finished"
		case s.absent.Load():
			s.lost = "it gave the share up while nobody led the run"
		default:
			s.lost = fmt.Sprintf("nothing was heard of it for %v", c.Timeout)
		}
		s.by.gone, l.stale = true, true
		c.Say(fmt.Sprintf("Agent %s (%s) is lost: %s.", s.by.Name, s.by.Host, s.lost))
		if c.reassigns() && ctx.Err() == nil {
			c.takeOver(ctx, l, s)
		}
	}
}

// waiting says whether there may be records of a share that were not taken in yet.
// Where NATS does not say, nobody can be blamed for being silent.
func (c *Coordinator) waiting(ctx context.Context, l *levelRun, s *share) bool {
	last, err := c.lastOf(ctx, recordSubject(c.Run, l.try, s.id))
	if err != nil && ctx.Err() == nil {
		c.excuse()
		return true
	}
	return last > l.in.done
}

// reasons are what a reader should know of the share.
func (s *share) reasons() (out []metric.Reason) {
	who := fmt.Sprintf("agent %s (share %d of %d)", s.by.Name, s.k+1, s.n)
	degraded := func(code, text string) {
		out = append(out, metric.Reason{Code: code, Severity: metric.Degraded, Text: text})
	}
	switch {
	case s.lost != "" && s.taker != "":
		degraded("agent-lost", fmt.Sprintf("%s was lost: %s; %d requests of its share had finished, and agent %s took over the rest: what was due meanwhile was sent late", who, s.lost, s.requests, s.taker))
	case s.lost != "":
		advice := "measure again, or use --on-loss reassign"
		if s.heeds { // that was used, and nobody was left
			advice = "measure again, with more agents"
		}
		degraded("agent-lost", fmt.Sprintf("%s was lost: %s; %d requests of its share had finished, and the rest is missing: %s", who, s.lost, s.requests, advice))
	}
	if s.last.Error != "" {
		degraded("agent-failed", fmt.Sprintf("%s ended early: %s: what is left of its share is missing", who, s.last.Error))
	}
	if s.last.Lost > 0 {
		degraded("agent-spool", fmt.Sprintf("%s had no room for %d records: give it more with --spool-limit, or a faster way to NATS", who, s.last.Lost))
	}
	if s.last.Full != "" && s.last.Lost == 0 {
		out = append(out, metric.Reason{Code: "agent-spool-full", Severity: metric.Note, Text: fmt.Sprintf("%s had records wait in memory, for %s: all of them are here", who, s.last.Full)})
	}
	return append(out, s.last.Known...)
}

// once leaves out what several agents say alike.
func once(all []metric.Reason) (out []metric.Reason) {
	for _, r := range all {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}
