package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
)

// A levelRun is a level in progress.
type levelRun struct {
	task      *run.Task
	attempt   string // name of the attempt
	shares    []*share
	reasons   []metric.Reason
	epoch     time.Time
	takeovers chan func()   // results of takeovers
	resumed   bool          // an earlier coordinator started the level
	lease     time.Duration // how long an agent sends without contact; 0 means any time
}

func newLevelRun(t *run.Task, attempt string) *levelRun {
	return &levelRun{task: t, attempt: attempt, takeovers: make(chan func(), 1000)}
}

// Prepare implements run.Agents.
func (c *Coordinator) Prepare(ctx context.Context, t *run.Task) error {
	under, err := c.UnderWay(ctx, t.Index)
	if err != nil {
		return err
	}
	if under {
		c.resumeLevel(t)
		return nil
	}
	for {
		if err := c.prepare(ctx, t); !errors.Is(err, errAgentLost) || ctx.Err() != nil {
			return err
		}
	}
}

// prepare prepares a level on the available agents. If an agent is lost meanwhile, prepare
// marks it and returns errAgentLost, and the next attempt excludes it.
func (c *Coordinator) prepare(ctx context.Context, t *run.Task) error {
	l := newLevelRun(t, fmt.Sprintf("%d-%s", t.Index, nuid.Next()))
	members, err := c.availableAgents(ctx, l)
	if err != nil {
		return err
	}
	n := t.Shares(len(members))
	l.lease = c.lease(n)
	for k, m := range members[:n] {
		c.newShare(l, k, n, m)
	}
	if err := c.journal.clear(); err != nil { // earlier levels are stored elsewhere
		return err
	}
	c.level = l
	if err := c.prepareAll(ctx, l); err != nil {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
		defer cancel()
		c.tellAll(short, l, l.shares, cmdStop)
		return err
	}
	return nil
}

// availableAgents returns the agents that are still alive. New agents may replace lost ones; without replacements the
// level has fewer agents.
func (c *Coordinator) availableAgents(ctx context.Context, l *levelRun) ([]*member, error) {
	c.mu.Lock()
	c.agents = slices.DeleteFunc(c.agents, func(m *member) bool { return m.lost.Load() || m.stopped.Load() })
	left := len(c.agents)
	c.mu.Unlock()
	if left >= c.Agents {
		return c.members(), nil
	}
	err := c.recruit(ctx, c.Timeout)
	all := c.members()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(all) == 0:
		return nil, err
	case err != nil:
		l.degraded("fewer-agents", "only %d of %d agents were left for this level, so each sent more: start replacements for the lost agents", len(all), c.Agents)
	}
	each(all, func(m *member) { c.measureClock(ctx, m, initialReadings) })
	return all, nil
}

// degraded adds a reason for the verdict.
func (l *levelRun) degraded(code, format string, args ...any) {
	l.reasons = append(l.reasons, metric.Reason{Code: code, Severity: metric.Degraded, Text: fmt.Sprintf(format, args...)})
}

// prepareAll prepares the shares of all agents.
func (c *Coordinator) prepareAll(ctx context.Context, l *levelRun) error {
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	failed := make([]error, len(l.shares)) // by id
	each(l.shares, func(s *share) {
		if failed[s.id] = c.awaitReady(ctx, s, s.prepareCommand(l)); failed[s.id] != nil {
			cancel() // one failure fails the level
		}
	})
	canceled := ctx.Err()
	for i, err := range failed {
		if errors.Is(err, errAgentLost) {
			l.shares[i].member.lost.Store(true)
			c.Say(fmt.Sprintf("The level starts without an agent: %v.", err))
		}
		if errors.Is(err, context.Canceled) {
			failed[i] = nil
		}
	}
	return cmp.Or(errors.Join(failed...), canceled)
}

// errAgentLost means that an agent died or stopped before its share was ready.
var errAgentLost = errors.New("was lost")

// awaitReady prepares the share of one agent and waits until it is ready.
func (c *Coordinator) awaitReady(ctx context.Context, s *share, o *command) error {
	lost := func(why string) error {
		return fmt.Errorf("agent %s (%s) %w: %s", s.member.Name, s.member.Host, errAgentLost, why)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		now, answered := c.sendUntilAnswered(ctx, s.member, *o)
		switch err := ctx.Err(); {
		case answered && now.Free:
			return lost("it left the run because it did not hear this coordinator")
		case answered && (now.Refused != "" || now.State == stateFailed):
			return s.member.refused(now)
		case answered && now.State == stateReady:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("agent %s was not ready for the level after %v: raise --agent-wait, or check the agent's log", s.member.Name, c.Wait)
		case err != nil:
			return err
		case s.member.stopped.Load():
			return lost("it was stopped")
		case !answered:
			return lost(fmt.Sprintf("no message for %v", c.Timeout))
		}
		o = &command{Kind: cmdStatus, Attempt: o.Attempt, Share: o.Share}
		pause(ctx, wait)
	}
}

// startDelay is the minimum time between the start command and the start.
const startDelay = 200 * time.Millisecond

// Drive implements run.Agents.
func (c *Coordinator) Drive(ctx context.Context, d *run.Drive) ([]metric.Agent, []metric.Reason, error) {
	l := c.level
	d.Live.Client = l.clientState
	var err error
	if l.resumed {
		d.Begin(l.epoch)
		err = c.resumeShares(ctx, l, d)
	} else {
		c.startAll(ctx, l)
		d.Begin(l.epoch)
	}
	if err == nil {
		err = c.collect(ctx, l, d)
	}
	var agents []metric.Agent
	for _, s := range l.shares {
		agents = append(agents, s.report(l))
		l.explain(s)
	}
	return agents, l.reasons, err
}

// startAll starts all shares at the same instant.
func (c *Coordinator) startAll(ctx context.Context, l *levelRun) {
	ahead := startDelay
	for _, s := range l.shares {
		c.measureClock(ctx, s.member, moreReadings)
		_, bound := s.member.offset()
		ahead = max(ahead, startDelay+10*bound)
	}
	l.epoch = time.Now().Add(ahead)
	for _, s := range l.shares {
		s.Offset, _ = s.member.offset()
		go c.startShare(ctx, l, s)
	}
	c.saveLevelState(l)
}

// startShare starts a share at the epoch of the level, which may be in the past.
func (c *Coordinator) startShare(ctx context.Context, l *levelRun, s *share) {
	now, answered := c.sendUntilAnswered(ctx, s.member, command{Kind: cmdStart, Attempt: l.attempt, Share: s.id, Start: l.epoch.Add(s.Offset).UnixNano()})
	s.rejected.Store(answered && now.Refused != "")
}

// sendUntilAnswered repeats a command until the agent answers, or is lost or stopped. No agent is lost while none can be
// heard.
func (c *Coordinator) sendUntilAnswered(ctx context.Context, m *member, o command) (now status, answered bool) {
	for ctx.Err() == nil && m.silence() < c.Timeout && !m.stopped.Load() {
		again := o
		if now, err := c.send(ctx, m, &again); err == nil {
			return now, true
		}
		if c.whySilent() != "" {
			c.resetSilence()
		}
		pause(ctx, 50*time.Millisecond)
	}
	return now, false
}

// tellAll sends a command for all shares.
func (c *Coordinator) tellAll(ctx context.Context, l *levelRun, all []*share, kind string) {
	each(all, func(s *share) {
		c.sendUntilAnswered(ctx, s.member, command{Kind: kind, Attempt: l.attempt, Share: s.id})
	})
}

// collect receives records until every share is complete or lost.
func (c *Coordinator) collect(ctx context.Context, l *levelRun, d *run.Drive) error {
	tick := time.NewTicker(heartbeatInterval / 2)
	defer tick.Stop()
	halt, enough := ctx.Done(), d.Enough
	stopping, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	defer l.updateCounts(d)
	var leave <-chan time.Time
	var failed error
	for !l.finished() {
		select {
		case m := <-c.batches:
			if err := c.handleBatch(l, m, d); err != nil && failed == nil {
				failed = err
				go c.tellAll(stopping, l, slices.Clone(l.shares), cmdStop)
			}
		case <-tick.C:
			if err := c.check(ctx, l, d); err != nil {
				return err
			}
		case finish := <-l.takeovers:
			finish()
		case <-enough:
			enough = nil
			go c.tellAll(ctx, l, slices.Clone(l.shares), cmdStopSending)
		case <-halt:
			if halt = nil; c.silent != "" {
				c.Say(fmt.Sprintf("Agents cannot be stopped, because %s: tacho exits in %v. They keep their records; --resume collects them later.", c.silent, stopGrace))
				leave = time.After(stopGrace)
			}
			go c.tellAll(stopping, l, slices.Clone(l.shares), cmdStop)
		case <-leave:
			if c.silent != "" {
				return ctx.Err()
			}
		}
	}
	c.setSilent("") // all shares are complete or lost
	return cmp.Or(failed, ctx.Err())
}

// check runs the periodic checks of a level.
func (c *Coordinator) check(ctx context.Context, l *levelRun, d *run.Drive) error {
	l.updateCounts(d)
	if err := c.checkSilence(ctx.Err() != nil); err != nil {
		return err
	}
	c.findLost(ctx, l)
	if c.deposed.Load() {
		return errors.New("another coordinator continues this run")
	}
	return c.journal.err
}

const (
	// natsLimit is how long a level waits for NATS, or for agents if none is heard. Kubernetes moves a pod from a dead
	// node after 5 minutes, and NATS needs less than another 5 minutes to start there.
	natsLimit = 10 * time.Minute
	// stopGrace is how long a stopped run waits for NATS to reconnect. A short disconnection then does not leave agents
	// sending.
	stopGrace = 2 * time.Second
)

// whySilent returns why no agent can be heard, or "". If all agents are silent at once, the network or this machine is
// the cause, and not the agents.
func (c *Coordinator) whySilent() string {
	if !c.control.IsConnected() {
		return "NATS is disconnected"
	}
	why := ""
	for _, m := range c.members() {
		m.mu.Lock()
		silence := time.Since(m.beat)
		m.mu.Unlock()
		switch {
		case m.lost.Load() || m.stopped.Load():
		case silence < c.Timeout/2:
			return ""
		default:
			why = "no agent is heard"
		}
	}
	return why
}

// checkSilence reports when no agent can be heard, and when one is heard again. It returns an error after natsLimit. A
// stopped run does not wait.
func (c *Coordinator) checkSilence(stopped bool) error {
	why := c.whySilent()
	c.setSilent(why)
	switch {
	case why == "" || stopped:
	case time.Since(c.silentSince) < natsLimit:
		c.resetSilence()
	default:
		return fmt.Errorf("%s after %v: check the network, then run tacho bench --resume (agents keep their records for %v)", why, natsLimit, retention)
	}
	return nil
}

func (c *Coordinator) setSilent(why string) {
	switch {
	case why == "" && c.silent != "":
		c.Say("Agents are heard again.")
	case why != "" && c.silent == "":
		c.silentSince = time.Now()
		c.Say(fmt.Sprintf("Waiting up to %v, because %s. Agents keep their records.", natsLimit, why))
	}
	c.silent = why
}

// resetSilence restarts the timeout of all agents after a time in which none could be heard.
func (c *Coordinator) resetSilence() {
	for _, m := range c.members() {
		m.mu.Lock()
		m.lastHeard = time.Now()
		m.mu.Unlock()
	}
}

// finished reports whether all records have been received.
func (l *levelRun) finished() bool {
	return !slices.ContainsFunc(l.shares, func(s *share) bool { return s.Lost == "" && (!s.ended || s.final.Ended != "") })
}

// handleBatch adds a batch to its share and acknowledges it. A batch that arrives again is acknowledged again.
func (c *Coordinator) handleBatch(l *levelRun, m *nats.Msg, d *run.Drive) error {
	if leader := m.Header.Get(leaderHeader); leader != "" && leader != c.sealer.public {
		return nil
	}
	part := strings.Split(strings.TrimPrefix(m.Subject, recordsSubject(c.Run)+"."), ".") // attempt, key and share
	answer := ack{Unwanted: true}
	if part[0] == l.attempt {
		i := slices.IndexFunc(l.shares, func(s *share) bool { return part[1] == s.member.Key && part[2] == strconv.Itoa(s.id) })
		if i < 0 {
			return nil // not from an agent of this level
		}
		s := l.shares[i]
		if !signedBy(s.member.Key, m) {
			c.Say(fmt.Sprintf("Ignored records of share %d that agent %s did not sign: check who else can publish to this NATS server.", s.Part+1, s.member.Name))
			return nil
		}
		if err := c.addBatch(s, m, d); err != nil {
			return err
		}
		answer = ack{Received: s.received, Unwanted: s.next != nil}
	}
	text, err := json.Marshal(answer)
	if err == nil {
		_ = m.Respond(text) // the agent sends the batch again
	}
	return err
}

// addBatch adds the new bytes of a batch to the journal and to its share. If another agent took over, only the number of
// sent requests in the final message counts.
func (c *Coordinator) addBatch(s *share, m *nats.Msg, d *run.Drive) error {
	offset, err := strconv.ParseInt(m.Header.Get(offsetHeader), 10, 64)
	if err != nil || offset < 0 {
		return fmt.Errorf("agent %s: a batch has no offset", s.member.Name)
	}
	end, body := m.Header.Get(endHeader) != "", m.Data
	if !end {
		body = body[min(max(s.received-offset, 0), int64(len(body))):]
	}
	switch {
	case s.ended || s.next != nil && !end:
		return nil
	case s.next != nil:
	case offset > s.received || !end && len(body) == 0:
		return nil
	default:
		if err := c.journal.add(entry{Share: s.id, End: end, Body: body}); err != nil {
			return err
		}
	}
	return s.add(end, body, d.Sink)
}

// updateCounts adds up the progress of all agents.
func (l *levelRun) updateCounts(d *run.Drive) {
	var sum live.Totals
	for _, s := range l.shares {
		s.member.mu.Lock()
		b, ticks := s.member.heartbeats[s.id], s.member.ticks
		s.member.ticks = nil
		s.member.mu.Unlock()
		for _, t := range ticks {
			d.Live.AddLatencies(t)
		}
		if b.Attempt == l.attempt {
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

// clientState returns the worst client state of all agents.
func (l *levelRun) clientState() *metric.Client {
	var all []metric.Agent
	for _, s := range l.shares {
		s.member.mu.Lock()
		all = append(all, metric.Agent{Client: s.member.heartbeats[s.id].Tick.Client})
		s.member.mu.Unlock()
	}
	return metric.WorstClient(all)
}

// findLost marks agents as lost if they were silent for too long.
func (c *Coordinator) findLost(ctx context.Context, l *levelRun) {
	for _, s := range l.shares {
		why := ""
		switch {
		case s.Lost != "":
		case s.ended:
			why = s.final.Ended
		case s.member.stopped.Load():
			why = "it was stopped before it handed over all records"
		case s.rejected.Load():
			why = "it gave up its share without a coordinator"
		case s.member.silence() >= c.Timeout:
			why, s.Silent = fmt.Sprintf("no message for %v", c.Timeout), true
		}
		if why == "" {
			continue
		}
		s.lose(l, why)
		if !s.final.Orphaned {
			s.member.lost.Store(true)
		}
		c.saveLevelState(l)
		c.Say(fmt.Sprintf("Agent %s (%s) is lost: %s.", s.member.Name, s.member.Host, why))
		if c.reassigns() && ctx.Err() == nil {
			c.takeOver(ctx, l, s)
		}
	}
}

// explain adds what the verdict must say about a share.
func (l *levelRun) explain(s *share) {
	who := fmt.Sprintf("agent %s (share %d of %d)", s.member.Name, s.Part+1, s.Parts)
	taker := s.taker()
	switch {
	case s.Lost != "" && taker != "":
		l.degraded("agent-lost", "%s was lost (%s) and agent %s took over after %d requests: measure again", who, s.Lost, taker, s.requests)
		if n, most := s.extra(l); n > 0 {
			l.degraded("extra-load", "%s and agent %s both sent %s%d requests, so the server had this load more than the report has: measure again",
				who, taker, map[bool]string{true: "up to "}[most], n)
		}
	case s.Lost != "" && s.keepsProgress: // no agent was left
		l.degraded("agent-lost", "%s was lost (%s) after %d requests: measure again with more agents", who, s.Lost, s.requests)
	case s.Lost != "":
		l.degraded("agent-lost", "%s was lost (%s) after %d requests%s: use --on-loss reassign", who, s.Lost, s.requests,
			map[bool]string{true: ", and may have sent the others"}[s.Silent && l.lease == 0])
	}
	f := &s.final
	if f.Error != "" {
		l.degraded("agent-failed", "%s failed (%s), so the rest of its share is missing: fix the error and measure again", who, f.Error)
	}
	if f.Paused > 0 {
		l.degraded("agent-paused", "%s did not hear the coordinator and sent nothing for %s, and then the requests of this time: check the network and measure again",
			who, metric.Duration(1e3*f.Paused.Seconds()))
	}
	if f.Lost > 0 {
		l.degraded("agent-spool", "%s lost %d records because its spool was full: raise --spool-limit, or use a faster connection to NATS", who, f.Lost)
	} else if f.SpoolError != "" {
		l.reasons = append(l.reasons, metric.Reason{Code: "agent-spool-full", Severity: metric.Note, Text: fmt.Sprintf(
			"%s kept records in memory (%s), and none were lost: free disk space on its machine", who, f.SpoolError)})
	}
	for _, r := range f.Reasons { // agents may report the same reason
		if !slices.ContainsFunc(l.reasons, func(o metric.Reason) bool { return o.Code == r.Code && o.Severity == r.Severity && o.Text == r.Text }) {
			l.reasons = append(l.reasons, r)
		}
	}
}
