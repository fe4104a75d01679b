package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

// TestUntrustedAgentGetsNothing checks that a coordinator sends no plan to an agent with an
// untrusted key, and names the key.
func TestUntrustedAgentGetsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		url, got := p.serve(t)
		var honest string
		p.join(t, "honest", func(o *cluster.AgentOptions) {
			joined := o.Joined
			o.Joined = func(key string) { honest = key; joined(key) }
		})
		p.join(t, "rogue", nil)
		c := p.lead(t, 2, func(o *cluster.Options) {
			o.Wait = 2 * pollEvery
			o.Trusts = func(key string) bool { return key == honest }
		})
		out := p.execute(t.Context(), planFor(url, nil), c)
		if out.err == nil || !strings.Contains(out.err.Error(), "rogue has the key U") || !strings.Contains(out.err.Error(), "--trust-agent U") {
			t.Errorf("%v", out.err)
		}
		if strings.Contains(out.err.Error(), honest) || len(got.bodies) > 0 {
			t.Errorf("%d requests were sent; %v", len(got.bodies), out.err)
		}
	})
}

// TestForgedMessagesAreIgnored checks that records and heartbeats forged by another NATS
// client, and copies of an agent's messages, change nothing.
func TestForgedMessagesAreIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		url, got := p.serve(t)
		insider := p.connect(t)
		forged := 0
		_, err := insider.Subscribe("tacho.run.*.records.>", func(m *nats.Msg) {
			if m.Header.Get("Tacho-Offset") == "" || m.Header.Get("Forged") != "" {
				return
			}
			forged++
			for _, body := range [][]byte{[]byte("{\"id\":\"forged\"}\n"), m.Data} {
				f := &nats.Msg{Subject: m.Subject, Header: nats.Header{"Tacho-Offset": m.Header["Tacho-Offset"], "Tacho-Signature": m.Header["Tacho-Signature"], "Forged": {"1"}}, Data: body}
				_ = insider.PublishMsg(f)
				other := *f // a signed message at another offset
				other.Header = nats.Header{"Tacho-Offset": {"0"}, "Tacho-End": {"1"}, "Tacho-Signature": m.Header["Tacho-Signature"], "Forged": {"1"}}
				_ = insider.PublishMsg(&other)
			}
		})
		must.Do(t, err)
		_, err = insider.Subscribe("tacho.run.*.beat.*", func(m *nats.Msg) {
			var b map[string]any
			if json.Unmarshal(m.Data, &b) != nil || m.Header.Get("Forged") != "" {
				return
			}
			b["left"] = true // a forged stop
			text, _ := json.Marshal(b)
			_ = insider.PublishMsg(&nats.Msg{Subject: m.Subject, Header: nats.Header{"Tacho-Signature": m.Header["Tacho-Signature"], "Forged": {"1"}}, Data: text})
			m.Header.Set("Forged", "1")
			_ = insider.PublishMsg(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}) // a copy
		})
		must.Do(t, err)
		checkComplete(t, p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate = 20 }), p.many(t, 2)), got, 42)
		if forged == 0 || !p.said.has("did not sign") {
			t.Errorf("%d messages were forged; the coordinator must name that", forged)
		}
	})
}
