package cluster

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
}

// An Agent works for one coordinator at a time.
type Agent struct {
	AgentOptions
	about   hello
	control *nats.Conn // for orders, clocks and beats, which must not wait behind records
	data    *nats.Conn
	js      jetstream.JetStream
	guard   guard
	ctx     context.Context
	over    context.CancelFunc

	mu      sync.Mutex
	run     string // that it works for; empty is none
	session string // of the coordinator: the key that it seals with
	from    string // its public key
	seq     uint64 // of the last order
	heard   time.Time
	runner  *run.Runner
	opened  *run.Task     // for which that was opened
	inUse   bool          // by a share
	level   int           // that it works at
	works   map[int]*work // its shares of that level, by their numbers
}

// patience is how long an agent stays with a coordinator that it does not hear.
const patience = 30 * time.Second

// RunAgent joins NATS and works for coordinators until ctx is done.
func RunAgent(ctx context.Context, o AgentOptions) error {
	a := &Agent{AgentOptions: o}
	a.ctx, a.over = context.WithCancel(ctx)
	defer a.over()
	if err := a.join(); err != nil {
		return err
	}
	defer a.leave()
	a.drainLeft() //nolint:contextcheck // it has the agent's
	if o.Joined != nil {
		o.Joined()
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.tick()
		case <-a.ctx.Done():
			return nil
		}
	}
}

// join connects, and begins to answer.
func (a *Agent) join() (err error) {
	if a.control, err = a.Access.connect(nats.RetryOnFailedConnect(false)); err != nil {
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
	return a.control.FlushTimeout(askTimeout)
}

// leave ends all that is under way.
func (a *Agent) leave() {
	a.mu.Lock()
	works := a.works
	a.free()
	a.mu.Unlock()
	for _, w := range works {
		<-w.done
	}
	a.control.Close()
	a.data.Close()
}

// answerClock tells the time.
func answerClock(m *nats.Msg) {
	_ = m.Respond(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))) // it is asked again
}

// answerRoll says who is here.
func (a *Agent) answerRoll(m *nats.Msg) {
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
func (a *Agent) answerOrder(m *nats.Msg) {
	s := a.obey(m.Data)
	if s.Refused != "" {
		a.Say("Refused an order: " + s.Refused + ".")
	}
	text, err := json.Marshal(s)
	if err == nil {
		_ = m.Respond(text) // it is asked again
	}
}

// obey checks an order and carries it out.
func (a *Agent) obey(message []byte) state {
	o, e, err := a.guard.open(message)
	if err != nil {
		return state{State: idle, Refused: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.admit(o, e); err != nil {
		return state{State: idle, Refused: err.Error()}
	}
	a.seq, a.heard = o.Seq, time.Now()
	switch o.Kind {
	case take, ask:
	case prepare:
		if err := a.prepare(o); err != nil {
			return state{State: failed, Refused: err.Error()}
		}
	case release:
		a.free()
	default:
		if w := a.at(o); w == nil || w.tell(o) != nil {
			return state{State: idle, Refused: "there is no such level here, or no such order"}
		}
	}
	if w := a.at(o); w != nil {
		return w.state()
	}
	return state{State: idle}
}

// at is the share that an order is about; nil is none.
func (a *Agent) at(o *order) *work {
	if a.level != o.Level {
		return nil
	}
	return a.works[o.Share]
}

// idle says whether it has nothing to do.
func (a *Agent) idle() bool {
	for _, w := range a.works {
		if !w.idle() {
			return false
		}
	}
	return true
}

// sending says whether a share is being sent. The coordinator may be back before
// it is over.
func (a *Agent) sending() bool {
	for _, w := range a.works {
		if w.state().State == running {
			return true
		}
	}
	return false
}

// admit says why an order is not to be carried out.
func (a *Agent) admit(o *order, e *envelope) error {
	if o.Kind == take {
		switch {
		case o.Nonce != a.about.Nonce:
			return errors.New("the order was for another time")
		case a.run != "" && a.run != o.Run:
			return fmt.Errorf("it works for another run")
		}
		if a.run == "" {
			a.Say("Working for the coordinator " + e.From + ".")
		}
		a.run, a.session, a.from, a.seq = o.Run, e.Box, e.From, 0
		return nil
	}
	switch {
	case a.run == "" || a.run != o.Run || a.session != e.Box || a.from != e.From:
		return errors.New("it is of a coordinator that this agent does not work for")
	case o.Seq <= a.seq:
		return errors.New("the order is an old one")
	}
	return nil
}

// free ends the work for a coordinator.
func (a *Agent) free() {
	for _, w := range a.works {
		w.cancel()
	}
	a.works = nil
	if a.runner != nil {
		a.runner.Close()
		a.runner = nil
	}
	if a.run != "" && a.Once {
		a.over()
	}
	a.run, a.session, a.from, a.seq, a.about.Nonce = "", "", "", 0, nuid.Next()
}

// tick sends a beat, and gives up a coordinator that is gone.
func (a *Agent) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run == "" {
		return
	}
	if time.Since(a.heard) > patience && !a.sending() {
		a.Say("The coordinator is gone.")
		a.free()
		return
	}
	beats := []beat{{Agent: a.about.ID, Level: -1}}
	for _, w := range a.works {
		beats = append(beats, w.beat(a.about.ID))
	}
	for _, b := range beats {
		if text, err := json.Marshal(b); err == nil {
			_ = a.control.Publish(beatSubject(a.run), text) // the next one follows
		}
	}
}

// drainLeft hands over what a process before this one had finished and left in
// the spool when it was killed.
func (a *Agent) drainLeft() {
	entries, err := os.ReadDir(a.Spool)
	if err != nil {
		return
	}
	for _, entry := range entries {
		s, err := leftSpool(filepath.Join(a.Spool, entry.Name()))
		if err != nil {
			continue
		}
		go a.drain(s)
	}
}

// drainTime is how long somebody may take to come back for old records.
const drainTime = 2 * time.Minute

func (a *Agent) drain(s *spool) {
	ctx, cancel := context.WithTimeout(a.ctx, drainTime)
	defer cancel()
	up := &uplink{js: a.js, spool: s}
	err := up.run(ctx)
	if err == nil {
		err = up.farewell(ctx, farewell{Cut: true})
	}
	if err != nil {
		a.Say(fmt.Sprintf("Records of an earlier run stay in %s: nobody takes them: %v.", s.dir, err))
		return
	}
	a.Say("Handed over the records that an agent before this one had left in " + s.dir + ".")
	_ = s.remove() // it is handed over; another start would do it again, and change nothing
}
