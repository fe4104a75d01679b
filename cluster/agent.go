package cluster

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"

	"tacho/run"
)

// AgentOptions say what an agent is, and what it lets be done.
type AgentOptions struct {
	Access  Access
	Name    string   // for the report
	Version string   // of the program: coordinator and agents have the same
	Trust   []string // public keys of coordinators; none is whoever NATS lets in
	Allow   []string // targets; see allowed
	Spool   string   // directory for records that were not handed over yet
	Most    int64    // bytes of them
	Env     func() run.Env
	Say     func(line string)
	Joined  func() // told when it is there; may be nil
	Once    bool   // it ends when the run that it works for does

	JoinWait time.Duration // for NATS to be there
}

// An agent works for one coordinator at a time.
type agent struct {
	AgentOptions
	about   hello
	control *nats.Conn // for orders, clocks and beats, which must not wait behind records
	data    *nats.Conn
	js      jetstream.JetStream
	guard   guard
	ctx     context.Context
	over    context.CancelFunc

	working sync.WaitGroup // shares that are not handed over yet
	refused string         // why the last order was; only answerOrder has it

	mu      sync.Mutex
	run     string // that it works for; empty is none
	session string // of the coordinator: the key that it seals with
	from    string // its public key
	seq     uint64 // of the last order
	heard   time.Time
	runner  *run.Runner
	opened  *run.Task     // for which that was opened
	inUse   bool          // by a share
	try     string        // at a level, that it works at
	works   map[int]*work // its shares of that, by their numbers
	recalls recalls       // what is done of shares that it is to take over
	parted  time.Time     // when it gave up its coordinator; zero is not
	leaving bool          // it is being stopped, and takes nothing up any more
}

// patience is how long an agent stays with a coordinator that it does not hear.
const patience = 30 * time.Second

// onceWaits is how long an agent that is to end with its run waits for somebody to
// go on with it: as long as Kubernetes may take to start a coordinator on another
// node. What it has finished may be nowhere else.
const onceWaits = 15 * time.Minute

// RunAgent joins NATS and works for coordinators until ctx is done.
func RunAgent(ctx context.Context, o AgentOptions) error {
	a := &agent{AgentOptions: o}
	a.ctx, a.over = context.WithCancel(context.WithoutCancel(ctx)) // what is under way is handed over first
	defer a.over()
	unlock, err := lockSpool(o.Spool)
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.join(ctx); err != nil {
		return err
	}
	defer a.leave(ctx)
	a.drainLeft()
	if o.Joined != nil {
		o.Joined()
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.tick()
		case <-ctx.Done():
			return nil
		case <-a.ctx.Done():
			return nil
		}
	}
}

// join connects, and begins to answer.
func (a *agent) join(ctx context.Context) (err error) {
	if err := a.connect(ctx); err != nil {
		return err
	}
	if a.data, err = a.Access.connect(); err != nil {
		return err
	}
	if a.js, err = jetstream.New(a.data); err != nil {
		return err
	}
	a.guard.trust = a.Trust
	if a.guard.box, err = nkeys.CreateCurveKeys(); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	a.about = hello{ID: nuid.Next(), Name: a.Name, Host: host, CPUs: runtime.NumCPU(), Version: a.Version, Nonce: nuid.Next(), Boot: bootID()}
	if a.about.Box, err = a.guard.box.PublicKey(); err != nil {
		return err
	}
	a.guard.agent = a.about.ID
	for subject, answer := range map[string]func(*nats.Msg){
		rollSubject: a.answerRoll, orderSubject(a.about.ID): a.answerOrder, clockSubject(a.about.ID): answerClock,
	} {
		if _, err := a.control.Subscribe(subject, answer); err != nil {
			return err
		}
	}
	return flush(context.WithoutCancel(ctx), a.control)
}

// flush waits until NATS has taken what was sent, though not for long.
func flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return nc.FlushWithContext(ctx)
}

// connect waits for NATS to be there: whoever starts many machines does not start
// them in order.
func (a *agent) connect(ctx context.Context) (err error) {
	say := sync.OnceFunc(func() {
		a.Say(fmt.Sprintf("No NATS server answers at %s yet: trying for %v.", a.Access.shown(), a.JoinWait))
	})
	for end := time.Now().Add(a.JoinWait); ; pause(ctx, retryPause) {
		if a.control, err = a.Access.connect(); !errors.Is(err, errNobody) || time.Now().After(end) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		say()
	}
}

// leave ends all that is under way. What was not handed over stays in the spool.
func (a *agent) leave(ctx context.Context) {
	a.quit()
	a.over()
	a.sayLeft(ctx)
	a.working.Wait()
	a.mu.Lock()
	a.part()
	a.mu.Unlock()
	a.control.Close()
	a.data.Close()
}

// quitTime is how long an agent that is stopped hands over what it has finished.
const quitTime = 5 * time.Second

// quit ends the shares that are being sent, and waits until what they have finished is
// handed over. It is heard of meanwhile.
func (a *agent) quit() {
	a.mu.Lock()
	a.leaving = true
	works := slices.Collect(maps.Values(a.works))
	a.mu.Unlock()
	for _, w := range works {
		w.quit()
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for end := time.After(quitTime); len(works) > 0 && a.data.IsConnected(); {
		select {
		case <-works[0].done:
			works = works[1:]
		case <-tick.C:
			a.tick()
		case <-end:
			return
		}
	}
}

// sayLeft tells the coordinator that it need not wait: neither for what could not be
// handed over in time, nor for a level that is still to come.
func (a *agent) sayLeft(ctx context.Context) {
	a.mu.Lock()
	run := a.run
	a.mu.Unlock()
	if text, err := json.Marshal(beat{Agent: a.about.ID, Left: true}); err == nil && run != "" && a.control.Publish(beatSubject(run), text) == nil {
		_ = flush(context.WithoutCancel(ctx), a.control) // or its silence tells
	}
}

// answerClock tells the time.
func answerClock(m *nats.Msg) {
	_ = m.Respond(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))) // it is asked again
}

// answerRoll says who is here.
func (a *agent) answerRoll(m *nats.Msg) {
	a.mu.Lock()
	about := a.about
	about.Run = a.run
	a.mu.Unlock()
	text, err := json.Marshal(about)
	if err == nil {
		_ = m.Respond(text) // it is asked again
	}
}

// answerOrder does what the coordinator says, if it may.
func (a *agent) answerOrder(m *nats.Msg) {
	s := a.obey(m.Data)
	if s.Refused != a.refused && !s.Old { // whoever is refused asks again, several times a second; orders that crossed are given again
		if a.refused = s.Refused; s.Refused != "" {
			a.Say("Refused an order: " + s.Refused + ".")
		}
	}
	text, err := json.Marshal(s)
	if err == nil {
		_ = m.Respond(text) // it is asked again
	}
}

// obey checks an order and carries it out.
func (a *agent) obey(message []byte) state {
	o, e, err := a.guard.open(message)
	if err != nil {
		return state{State: idle, Refused: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.admit(o, e); err != nil {
		return state{State: idle, Refused: err.Error(), Old: errors.Is(err, errOld)}
	}
	a.seq, a.heard = o.Seq, time.Now()
	switch o.Kind {
	case ask:
	case take:
		a.turnTo(o)
	case recall:
		a.recalls.add(o)
	case prepare:
		if err := a.prepare(o); err != nil {
			return state{State: failed, Refused: err.Error()}
		}
	case release:
		a.free()
	default:
		w := a.at(o)
		if w == nil && (o.Kind == stop || o.Kind == sendNoMore) {
			break // there is nothing to stop
		}
		if w == nil || w.tell(o) != nil {
			return state{State: idle, Refused: "there is no such level here, or no such order"}
		}
	}
	if w := a.at(o); w != nil {
		return w.state()
	}
	return state{State: idle}
}

// at is the share that an order is about; nil is none.
func (a *agent) at(o *order) *work {
	if a.try != o.Try {
		return nil
	}
	return a.works[o.Share]
}

// busy says whether it has a share that is not sent to its end. One that is being
// handed over keeps it from nothing.
func (a *agent) busy() bool {
	for _, w := range a.works {
		if s := w.state().State; s != ended && s != failed {
			return true
		}
	}
	return false
}

// sending says whether a share is being sent. The coordinator may be back before
// it is over.
func (a *agent) sending() bool {
	for _, w := range a.works {
		if w.state().State == running {
			return true
		}
	}
	return false
}

var (
	errOld     = errors.New("the order is an old one")
	errLeaving = errors.New("it is being stopped")
)

// admit says why an order is not to be carried out.
func (a *agent) admit(o *order, e *envelope) error {
	if !plainName.MatchString(o.Run) || !plainName.MatchString(o.Try) {
		return errors.New("the order names no run")
	}
	if o.Kind == take {
		switch {
		case a.leaving:
			return errLeaving
		case o.Nonce != a.about.Nonce:
			return errors.New("the order was for another time")
		case a.run != "" && (a.run != o.Run || a.from != e.From):
			return errors.New("it works for another run")
		}
		if a.run == "" {
			a.Say("Working for the coordinator " + e.From + ".")
		}
		a.run, a.session, a.from, a.seq, a.about.Nonce, a.parted = o.Run, e.Box, e.From, 0, nuid.Next(), time.Time{}
		return nil
	}
	switch {
	case a.run == "" || a.run != o.Run || a.session != e.Box || a.from != e.From:
		return errors.New("it is of a coordinator that this agent does not work for")
	case o.Seq <= a.seq:
		return errOld
	}
	return nil
}

// plainName is what runs and tries are called: they are a part of subjects and of
// the names of directories.
var plainName = regexp.MustCompile(`^[A-Za-z0-9-]*$`)

// turnTo lets go of what does not belong to the try that a coordinator goes on
// with. What was finished for another run is still handed over to it.
func (a *agent) turnTo(o *order) {
	if a.try == o.Try {
		return
	}
	for _, w := range a.works {
		if w.order.Run == o.Run {
			w.drop()
		}
	}
	a.works, a.try = nil, ""
}

// free ends the work for a coordinator that says that the run is over: nobody
// needs what is left of it.
func (a *agent) free() {
	for _, w := range a.works {
		w.drop()
	}
	a.works, a.try = nil, ""
	if a.Once {
		a.Say("The run is over.")
		a.over()
	} else {
		a.Say("The run is over. Waiting for the next one.")
	}
	a.part()
}

// part lets another coordinator have this agent.
func (a *agent) part() {
	if a.runner != nil {
		a.runner.Close()
		a.runner = nil
	}
	a.run, a.session, a.from, a.seq, a.about.Nonce, a.recalls = "", "", "", 0, nuid.Next(), nil
}

// tick sends a beat, and gives up a coordinator that is gone.
func (a *agent) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.run == "":
		if a.Once && !a.parted.IsZero() && time.Since(a.parted) > onceWaits {
			a.Say("Nobody goes on with the run.")
			a.over()
		}
		return
	case time.Since(a.heard) > patience && !a.sending():
		a.giveUp()
		return
	}
	beats := []beat{{Agent: a.about.ID}}
	for _, w := range a.works {
		beats = append(beats, w.beat(a.about.ID))
	}
	for _, b := range beats {
		if text, err := json.Marshal(b); err == nil {
			_ = a.control.Publish(beatSubject(a.run), text) // the next one follows
		}
	}
}

// giveUp parts from a coordinator that is gone. What was finished for it is handed
// over all the same: it may be started again, and go on.
func (a *agent) giveUp() {
	a.Say("The coordinator is gone. " + map[bool]string{false: "Waiting for the next one.", true: fmt.Sprintf("Waiting %v for the run to go on.", onceWaits)}[a.Once])
	a.dropReady()
	a.part()
	a.parted = time.Now()
}

// drainLeft hands over what a process before this one had finished and left in
// the spool when it was killed. What is old by now is deleted: whoever wanted it
// has given up.
func (a *agent) drainLeft() {
	entries, err := os.ReadDir(a.Spool)
	if err != nil {
		return
	}
	for _, entry := range entries {
		s, err := leftSpool(filepath.Join(a.Spool, entry.Name()))
		if err != nil {
			continue
		}
		if s.age() > keepFor {
			_ = s.remove() // or the next start does
			a.Say(fmt.Sprintf("Deleted records of an earlier run in %s: nobody took them within %v.", s.dir, keepFor))
			continue
		}
		a.working.Go(func() { a.drain(s) })
	}
}

// drainTime is how long hand-over may take before somebody hears of it.
const drainTime = 2 * time.Minute

// drain hands over what a process before this one left, whenever its run goes on.
func (a *agent) drain(s *spool) {
	late := time.AfterFunc(drainTime, func() {
		a.Say(fmt.Sprintf("Records of an earlier run wait in %s: nobody takes them yet. They are handed over when that run goes on (--resume), and deleted when they are older than %v.", s.dir, keepFor))
	})
	defer late.Stop()
	up := &uplink{js: a.js, spool: s}
	if up.run(a.ctx) != nil || up.farewell(a.ctx, farewell{Cut: true}) != nil {
		return // they stay for the next start
	}
	a.Say("Handed over the records that an agent before this one had left in " + s.dir + ".")
	_ = s.remove() // it is handed over; another start would do it again, and change nothing
}
