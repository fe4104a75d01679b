package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
)

// pair returns a coordinator's sealer and the agent that it seals for.
func pair(t testing.TB) (*sealer, *agent) {
	t.Helper()
	identity := must.Get(NewIdentity())(t)
	s := must.Get(newSealer(identity))(t)
	box := must.Get(nkeys.CreateCurveKeys())(t)
	public := must.Get(box.PublicKey())(t)
	a := &agent{AgentOptions: AgentOptions{Allow: []string{"http://127.0.0.1:8000"}, Spool: t.TempDir(), SpoolLimit: 1 << 20, Say: func(string) {}}}
	a.ctx, a.cancel = t.Context(), func() {}
	a.key = must.Get(NewIdentity())(t)
	a.info = agentInfo{ID: "a1", Key: a.key.Public(), Nonce: "n1", SealKey: public}
	a.unseal, a.Trust = box, []string{identity.Public()}
	return s, a
}

func (s *sealer) mustSeal(t testing.TB, a *agent, o command) *nats.Msg {
	t.Helper()
	return must.Get(s.seal(&a.info, &o))(t)
}

// taken returns an agent that works for a run.
func taken(t testing.TB) (*sealer, *agent) {
	t.Helper()
	s, a := pair(t)
	if got := a.execute(s.mustSeal(t, a, command{Kind: cmdAssign, Run: "r", Nonce: "n1", Seq: 1})); got.Refused != "" {
		t.Fatal(got.Refused)
	}
	return s, a
}

func TestAgentObeysWhomItTrusts(t *testing.T) {
	s, a := taken(t)
	if got := a.execute(s.mustSeal(t, a, command{Kind: cmdStatus, Run: "r", Seq: 2})); got.Refused != "" || got.State != stateIdle {
		t.Errorf("%+v", got)
	}
}

func TestAgentRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		message func(t *testing.T, s *sealer, a *agent) *nats.Msg
		why     string
	}{
		"an unknown coordinator": {func(t *testing.T, _ *sealer, a *agent) *nats.Msg {
			other, _ := pair(t)
			return other.mustSeal(t, a, command{Kind: cmdAssign, Run: "r2", Nonce: "n1", Seq: 1})
		}, "is not trusted here"},
		"a signature of another coordinator": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			other, _ := pair(t)
			m := other.mustSeal(t, a, command{Kind: cmdStatus, Run: "r", Seq: 9})
			m.Header.Set(fromHeader, s.identity.Public())
			return m
		}, "signature of the command is wrong"},
		"an order for another agent": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			m := s.mustSeal(t, &agent{info: agentInfo{ID: "a2", Key: a.info.Key, SealKey: a.info.SealKey}}, command{Kind: cmdStatus, Run: "r", Seq: 9})
			m.Subject = a.info.orderSubject()
			return m
		}, "signature of the command is wrong"},
		"an order sealed for another agent": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			_, other := pair(t)
			return s.mustSeal(t, &agent{info: agentInfo{ID: "a1", Key: a.info.Key, SealKey: other.info.SealKey}}, command{Kind: cmdStatus, Run: "r", Seq: 9})
		}, "encrypted for another agent"},
		"an order that was given before": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			text := s.mustSeal(t, a, command{Kind: cmdStatus, Run: "r", Seq: 2})
			a.execute(text)
			return text
		}, "a later command"},
		"an order to join from before": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			a.execute(s.mustSeal(t, a, command{Kind: cmdRelease, Run: "r", Seq: 2}))
			return s.mustSeal(t, a, command{Kind: cmdAssign, Run: "r", Nonce: "n1", Seq: 3})
		}, "a replay"},
		"another run while it works for one": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			return s.mustSeal(t, a, command{Kind: cmdAssign, Run: "r2", Nonce: a.info.Nonce, Seq: 2})
		}, "works for another run"},
		"a session that did not take it": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			again := must.Get(newSealer(s.identity))(t)
			return again.mustSeal(t, a, command{Kind: cmdStatus, Run: "r", Seq: 9})
		}, "works for another coordinator"},
		"a target outside its list": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			return s.mustSeal(t, a, command{Kind: cmdPrepare, Run: "r", Seq: 2, Parts: 1, Task: &run.Task{Plan: []byte(`{"base_url": ["http://127.0.0.1:8000"]}`), Targets: []string{"http://127.0.0.1:8000", "http://10.0.0.1:80/key"}}})
		}, "does not permit the target http://10.0.0.1:80"},
		"a target of the plan that the task does not name": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			return s.mustSeal(t, a, command{Kind: cmdPrepare, Run: "r", Seq: 2, Parts: 1, Task: &run.Task{Plan: []byte(`{"base_url": ["http://10.0.0.1:80"]}`), Targets: []string{"http://127.0.0.1:8000"}}})
		}, "does not permit the target http://10.0.0.1:80"},
		"an endpoint outside the permitted path": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			return s.mustSeal(t, a, command{Kind: cmdPrepare, Run: "r", Seq: 2, Parts: 1, Task: &run.Task{Plan: []byte(`{"endpoint": "/%2e%2e/admin"}`)}})
		}, "contains .."},
		"a file that it may not read": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			t.Cleanup(atomicfile.Confine())
			return s.mustSeal(t, a, command{Kind: cmdPrepare, Run: "r", Seq: 2, Parts: 1, Task: &run.Task{Plan: []byte(`{"structured_output": "regex:@/etc/passwd"}`)}})
		}, "the plan reads /etc/passwd"},
		"no share": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			return s.mustSeal(t, a, command{Kind: cmdPrepare, Run: "r", Seq: 2, Part: 3, Parts: 2, Task: &run.Task{}})
		}, "no share"},
		"no level": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			return s.mustSeal(t, a, command{Kind: cmdStart, Run: "r", Seq: 2})
		}, "unknown level"},
		"another encryption": {func(t *testing.T, s *sealer, a *agent) *nats.Msg {
			m := s.mustSeal(t, a, command{Kind: cmdStatus, Run: "r", Seq: 9})
			m.Header.Set(sealHeader, a.info.SealKey)
			return m
		}, "signature of the command is wrong"},
		"noise": {func(*testing.T, *sealer, *agent) *nats.Msg { return &nats.Msg{Data: []byte("{")} }, "coordinator without a key is not trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := taken(t)
			if got := a.execute(c.message(t, s, a)); !strings.Contains(got.Refused, c.why) {
				t.Errorf("%+v, want %q", got, c.why)
			}
			if len(a.shares) > 0 {
				t.Error("it set to work")
			}
		})
	}
}

// An agent prints a repeated refusal once.
func TestAgentTellsWhatItRefuses(t *testing.T) {
	s, a := taken(t)
	var said []string
	a.Say = func(line string) { said = append(said, line) }
	first := s.mustSeal(t, a, command{Kind: cmdStatus, Run: "r", Seq: 3})
	noise := &nats.Msg{Data: []byte("{")}
	for _, m := range []*nats.Msg{first, noise, noise, noise} {
		a.answerCommand(m)
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "Refused a command: ") {
		t.Errorf("it says %q", said)
	}
}

// Messages in NATS do not contain the secrets of a plan.
func TestOrdersAreSealed(t *testing.T) {
	s, a := pair(t)
	message := s.mustSeal(t, a, command{Kind: cmdPrepare, Task: &run.Task{APIKey: "sk-canary-12345"}})
	if strings.Contains(fmt.Sprint(message.Header, string(message.Data)), "canary") {
		t.Error("the key is in the message")
	}
	o := must.Get(a.decrypt(message))(t)
	if o.Task.APIKey != "sk-canary-12345" {
		t.Errorf("%q came out", o.Task.APIKey)
	}
}

// FuzzOrders sends arbitrary messages to an agent: unsigned ones, and commands of its own
// coordinator with arbitrary content.
func FuzzOrders(f *testing.F) {
	f.Add([]byte(`{"kind":"prepare","run":"r","seq":5,"n":2,"k":1,"task":{"plan":{},"targets":["http://127.0.0.1:8000"]}}`))
	f.Add([]byte(`{"kind":"begin","run":"r","seq":5,"start":-1}`))
	f.Add([]byte(`{"kind":"recall","run":"r","seq":5,"share":1,"progress":"e30="}`))
	s, a := pair(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := a.execute(&nats.Msg{Data: body}); got.Refused == "" {
			t.Fatalf("nobody's order was obeyed: %+v", got)
		}
		m := s.mustSeal(t, a, command{})
		var err error
		m.Data = must.Get(s.key.Seal(body, a.info.SealKey))(t)
		must.Do(t, s.identity.sign(m))
		o, err := a.decrypt(m)
		if err != nil || o.Kind == cmdPrepare { // a plan is fuzzed by package plan
			return
		}
		a.execute(m)
	})
}

// FuzzRecords sends arbitrary records to a share.
func FuzzRecords(f *testing.F) {
	f.Add("0", "", []byte(`{"stage":0,"session":1,"turn":0,"due_ns":0,"events":{"at_ns":[1,2]}}`+"\n"))
	f.Add("5", "1", []byte(`{}`))
	f.Add("0", "", []byte(`{"Text":"Yes.","Tokens":2}`+"\n"+`{"session":1,"turn":0,"turns":2}`+"\n"))
	f.Fuzz(func(t *testing.T, offset, end string, body []byte) {
		s := &share{member: &member{agentInfo: agentInfo{ID: nuid.Next()}}, keepsProgress: true, partial: map[uint64]*partialSession{}}
		h := map[string][]string{offsetHeader: {offset}}
		if end != "" {
			h[endHeader] = []string{end}
		}
		_ = new(Coordinator).addBatch(s, &nats.Msg{Header: h, Data: body}, &run.Drive{Sink: nothing{}}) // an error is fine; a panic is not
	})
}

// FuzzHeard sends arbitrary heartbeats to a coordinator, and opens arbitrary journals.
func FuzzHeard(f *testing.F) {
	f.Add([]byte(`{"agent":"a1","try":"0-x","share":1,"totals":{"sent":5},"tick":{"at_ns":1}}`))
	f.Add([]byte(`{"agent":"a1","share":-1}`))
	f.Add([]byte(`{"state":{"level":1,"try":"1-x","epoch":5,"shares":[{"k":0,"n":1,"agent":{"id":"a1"},"left":true}]}}` + "\n"))
	f.Add([]byte(`{"share":1,"body":"YWI="}` + "\nab"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &Coordinator{sealer: &sealer{}, agents: []*member{newMember(agentInfo{ID: "a1"})}}
		c.handleHeartbeat(&nats.Msg{Data: body})
		if n := len(c.agents[0].heartbeats); n > 1 {
			t.Errorf("%d shares of one beat", n)
		}
		path := filepath.Join(t.TempDir(), "journal")
		must.Do(t, os.WriteFile(path, body, 0o600))
		var j journal
		_, _ = j.open(path) // an error is fine; a panic is not
		must.Do(t, j.close(true))
	})
}

// An agent with Once waits for a restarted coordinator, up to a limit.
func TestOnceWaitsForTheNextCoordinator(t *testing.T) {
	_, a := taken(t)
	ended := false
	a.Once, a.cancel = true, func() { ended = true }
	a.lastHeard = time.Now().Add(-2 * coordinatorTimeout)
	a.tick()
	if a.run != "" || ended {
		t.Fatalf("it works for %q, ended: %v", a.run, ended)
	}
	a.abandonedAt = time.Now().Add(-onceTimeout / 2)
	if a.tick(); ended {
		t.Error("it did not wait")
	}
	a.abandonedAt = time.Now().Add(-2 * onceTimeout)
	if a.tick(); !ended {
		t.Error("it waits for ever")
	}
}
