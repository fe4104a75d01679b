package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"

	"tacho"
	"tacho/run"
)

// pair is a coordinator's sealer and the agent that its orders are for.
func pair(t testing.TB) (*sealer, *agent) {
	t.Helper()
	identity, err := NewIdentity()
	must(t, err)
	s, err := newSealer(identity)
	must(t, err)
	box, err := nkeys.CreateCurveKeys()
	must(t, err)
	public, err := box.PublicKey()
	must(t, err)
	a := &agent{AgentOptions: AgentOptions{Allow: []string{"http://127.0.0.1:8000"}, Spool: t.TempDir(), Most: 1 << 20, Say: func(string) {}}}
	a.ctx, a.over = t.Context(), func() {}
	a.about = hello{ID: "a1", Nonce: "n1", Box: public}
	a.guard = guard{agent: "a1", box: box, trust: []string{identity.Public()}}
	return s, a
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *sealer) mustSeal(t testing.TB, a *agent, o order) []byte {
	t.Helper()
	text, err := s.seal(a.about.ID, a.about.Box, &o)
	must(t, err)
	return text
}

// taken is an agent that works for a run.
func taken(t testing.TB) (*sealer, *agent) {
	t.Helper()
	s, a := pair(t)
	if got := a.obey(s.mustSeal(t, a, order{Kind: take, Run: "r", Nonce: "n1", Seq: 1})); got.Refused != "" {
		t.Fatal(got.Refused)
	}
	return s, a
}

func TestAgentObeysWhomItTrusts(t *testing.T) {
	s, a := taken(t)
	if got := a.obey(s.mustSeal(t, a, order{Kind: ask, Run: "r", Seq: 2})); got.Refused != "" || got.State != idle {
		t.Errorf("%+v", got)
	}
}

func TestAgentRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		message func(t *testing.T, s *sealer, a *agent) []byte
		why     string
	}{
		"an unknown coordinator": {func(t *testing.T, _ *sealer, a *agent) []byte {
			other, _ := pair(t)
			return other.mustSeal(t, a, order{Kind: take, Run: "r2", Nonce: "n1", Seq: 1})
		}, "is not trusted here"},
		"a signature of somebody else": {func(t *testing.T, s *sealer, a *agent) []byte {
			other, _ := pair(t)
			var e envelope
			must(t, json.Unmarshal(other.mustSeal(t, a, order{Kind: ask, Run: "r", Seq: 9}), &e))
			e.From = s.identity.Public()
			text, err := json.Marshal(e)
			must(t, err)
			return text
		}, "signature is wrong"},
		"an order for another agent": {func(t *testing.T, s *sealer, a *agent) []byte {
			text, err := s.seal("a2", a.about.Box, &order{Kind: ask, Run: "r", Seq: 9})
			must(t, err)
			return text
		}, "signature is wrong"},
		"an order sealed for another agent": {func(t *testing.T, s *sealer, a *agent) []byte {
			_, other := pair(t)
			text, err := s.seal("a1", other.about.Box, &order{Kind: ask, Run: "r", Seq: 9})
			must(t, err)
			return text
		}, "sealed for somebody else"},
		"an order that was given before": {func(t *testing.T, s *sealer, a *agent) []byte {
			text := s.mustSeal(t, a, order{Kind: ask, Run: "r", Seq: 2})
			a.obey(text)
			return text
		}, "an old one"},
		"an order to join from before": {func(t *testing.T, s *sealer, a *agent) []byte {
			a.obey(s.mustSeal(t, a, order{Kind: release, Run: "r", Seq: 2}))
			return s.mustSeal(t, a, order{Kind: take, Run: "r", Nonce: "n1", Seq: 3})
		}, "for another time"},
		"another run while it works for one": {func(t *testing.T, s *sealer, a *agent) []byte {
			return s.mustSeal(t, a, order{Kind: take, Run: "r2", Nonce: a.about.Nonce, Seq: 2})
		}, "works for another run"},
		"a session that did not take it": {func(t *testing.T, s *sealer, a *agent) []byte {
			again, err := newSealer(s.identity)
			must(t, err)
			return again.mustSeal(t, a, order{Kind: ask, Run: "r", Seq: 9})
		}, "does not work for"},
		"a target outside its list": {func(t *testing.T, s *sealer, a *agent) []byte {
			return s.mustSeal(t, a, order{Kind: prepare, Run: "r", Seq: 2, N: 1, Task: &run.Task{Targets: []string{"http://127.0.0.1:8000", "http://10.0.0.1:80/key"}}})
		}, "the target http://10.0.0.1:80 is not among those"},
		"no share": {func(t *testing.T, s *sealer, a *agent) []byte {
			return s.mustSeal(t, a, order{Kind: prepare, Run: "r", Seq: 2, K: 3, N: 2, Task: &run.Task{}})
		}, "no share"},
		"no level": {func(t *testing.T, s *sealer, a *agent) []byte {
			return s.mustSeal(t, a, order{Kind: begin, Run: "r", Seq: 2})
		}, "no such level"},
		"noise":         {func(*testing.T, *sealer, *agent) []byte { return []byte("{") }, "no order"},
		"a long letter": {func(*testing.T, *sealer, *agent) []byte { return make([]byte, mostMessage+1) }, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := taken(t)
			if got := a.obey(c.message(t, s, a)); !strings.Contains(got.Refused, c.why) || got.Old != (c.why == "an old one") {
				t.Errorf("%+v, want %q", got, c.why)
			}
			if len(a.works) > 0 {
				t.Error("it set to work")
			}
		})
	}
}

// An agent tells of an order that it refuses, once, but not of one that merely
// crossed with a later one: that is given again.
func TestAgentTellsWhatItRefuses(t *testing.T) {
	s, a := taken(t)
	var said []string
	a.Say = func(line string) { said = append(said, line) }
	later := s.mustSeal(t, a, order{Kind: ask, Run: "r", Seq: 3})
	crossed := s.mustSeal(t, a, order{Kind: ask, Run: "r", Seq: 2})
	for _, text := range [][]byte{later, crossed, {'{'}, {'{'}, crossed, {'{'}} {
		a.answerOrder(&nats.Msg{Data: text})
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "Refused an order: ") || strings.Contains(said[0], "old") {
		t.Errorf("it says %q", said)
	}
}

func TestAllowedTargets(t *testing.T) {
	for _, c := range []struct {
		patterns, target string
		want             bool
	}{
		{"http://vllm:8000", "http://vllm:8000", true},
		{"http://vllm:8000", "http://VLLM:8000/v1", true},
		{"http://vllm:8000", "http://vllm:8001", false},
		{"http://vllm:8000", "https://vllm:8000", false},
		{"http://vllm", "http://vllm:9", true},
		{"http://vllm", "http://vllm.evil.example:9", false},
		{"http://vllm", "http://vllm@evil.example", false},
		{"https://llm/a", "https://llm/ab", false},
		{"https://llm/a", "https://llm/a/b", true},
		{"http://a http://b", "http://b:1", true},
		{"any", "http://wherever", true},
		{"unix:///run/a.sock", "unix:///run/a.sock", true},
		{"unix:///run/a.sock", "unix:///run/b.sock", false},
		{"", "http://127.0.0.1:1", false},
		{"http://vllm", "http://vllm:80\x00", false},
	} {
		if got := allowed(strings.Fields(c.patterns), c.target) == nil; got != c.want {
			t.Errorf("%q may go to %q: %v", c.patterns, c.target, got)
		}
	}
}

// The secrets of a plan are nowhere in what NATS carries.
func TestOrdersAreSealed(t *testing.T) {
	s, a := pair(t)
	message := s.mustSeal(t, a, order{Kind: prepare, Task: &run.Task{APIKey: "sk-canary-12345"}})
	if strings.Contains(string(message), "canary") {
		t.Error("the key is in the message")
	}
	o, _, err := a.guard.open(message)
	must(t, err)
	if o.Task.APIKey != "sk-canary-12345" {
		t.Errorf("%q came out", o.Task.APIKey)
	}
}

// FuzzOrders throws messages at an agent: those of nobody, and those of its own
// coordinator with anything in them.
func FuzzOrders(f *testing.F) {
	f.Add([]byte(`{"from":"U","box":"X","body":"","sig":""}`))
	f.Add([]byte(`{"kind":"prepare","run":"r","seq":5,"n":2,"k":1,"task":{"plan":{},"targets":["http://127.0.0.1:8000"]}}`))
	f.Add([]byte(`{"kind":"begin","run":"r","seq":5,"start":-1}`))
	f.Add([]byte(`{"kind":"recall","run":"r","seq":5,"share":1,"skip":[1,2],"begun":[{"id":7,"over":[{"turn":-1,"end_ns":5,"answer":{"Text":"Yes."}}]}]}`))
	s, a := pair(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := a.obey(body); got.Refused == "" {
			t.Fatalf("nobody's order was obeyed: %+v", got)
		}
		e := envelope{From: s.identity.Public(), Box: s.public}
		var err error
		e.Body, err = s.box.Seal(body, a.about.Box)
		must(t, err)
		e.Sig, err = s.identity.pair.Sign(e.signed(a.about.ID))
		must(t, err)
		text, err := json.Marshal(e)
		must(t, err)
		o, _, err := a.guard.open(text)
		if err != nil || o.Kind == prepare { // a plan is fuzzed by package plan
			return
		}
		a.obey(text)
	})
}

// FuzzRecords throws messages with records at a share.
func FuzzRecords(f *testing.F) {
	f.Add("0", "", []byte(`{"stage":0,"session":1,"turn":0,"due_ns":0,"events":{"at_ns":[1,2]}}`+"\n"))
	f.Add("5", "1", []byte(`{}`))
	f.Add("0", "", []byte(`{"said":"Yes.","session":1,"turn":0,"tokens":2}`+"\n"+`{"session":1,"turn":0,"turns":2}`+"\n"))
	f.Fuzz(func(t *testing.T, offset, end string, body []byte) {
		s := &share{by: &member{hello: hello{ID: nuid.Next()}}, heeds: true, half: map[uint64]*halfDone{}, said: map[place]tacho.Answer{}}
		h := map[string][]string{offsetHeader: {offset}}
		if end != "" {
			h[endHeader] = []string{end}
		}
		_ = s.take(h, body, nothing{}) // an error is fine; a panic is not
	})
}

// FuzzHeard throws what agents and a coordinator before this one say at a
// coordinator.
func FuzzHeard(f *testing.F) {
	f.Add([]byte(`{"agent":"a1","try":"0-x","share":1,"totals":{"sent":5},"tick":{"at_ns":1}}`))
	f.Add([]byte(`{"agent":"a1","share":-1}`))
	f.Add([]byte(`{"level":1,"try":"1-x","epoch":5,"shares":[{"k":0,"n":1,"agent":{"id":"a1"},"left":true,"until":-5}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &Coordinator{agents: []*member{{hello: hello{ID: "a1"}}}}
		c.hear(&nats.Msg{Data: body})
		if n := len(c.agents[0].last); n > 1 {
			t.Errorf("%d shares of one beat", n)
		}
		s, err := parseStanding(body)
		if err != nil {
			return
		}
		for _, h := range s.Shares {
			again := &share{by: &member{}, left: h.Left, until: h.Until}
			_ = again.take(map[string][]string{offsetHeader: {"0"}}, body, nothing{}) // an error is fine; a panic is not
		}
	})
}

// An agent that is to end with its run waits for somebody to go on with it, but not
// for ever.
func TestOnceWaitsForTheNextCoordinator(t *testing.T) {
	_, a := taken(t)
	ended := false
	a.Once, a.over = true, func() { ended = true }
	a.heard = time.Now().Add(-2 * patience)
	a.tick()
	if a.run != "" || ended {
		t.Fatalf("it works for %q, ended: %v", a.run, ended)
	}
	a.parted = time.Now().Add(-onceWaits / 2)
	if a.tick(); ended {
		t.Error("it did not wait")
	}
	a.parted = time.Now().Add(-2 * onceWaits)
	if a.tick(); !ended {
		t.Error("it waits for ever")
	}
}
