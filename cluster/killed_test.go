package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// ready is a field with NATS, an engine and agents.
func ready(t *testing.T, within func(string) (string, []string), agents int) (*field, []*process, []*process) {
	t.Helper()
	f := newField(t, within)
	nodes := f.nats()
	f.sim()
	var all []*process
	for i := range agents {
		all = append(all, f.agent(fmt.Sprintf("agent-%d", i)))
	}
	return f, nodes, all
}

// The coordinator is killed in the middle of a level, and started again: the
// agents went on, and nothing of the level is lost or doubled.
func killCoordinator(t *testing.T, within func(string) (string, []string)) {
	f, _, _ := ready(t, within, 3)
	first := f.bench(3)
	f.midway()
	first.kill()
	time.Sleep(time.Second)
	second := f.start("coordinator", "tacho", "bench", "--resume", f.runDir())
	f.end(second, "Going on with", "coordinator-restarted: the coordinator was started again")
	f.whole()
}

// It is killed, and comes back when the agents are through, and have given it up.
func killCoordinatorLong(t *testing.T, within func(string) (string, []string)) {
	f, _, all := ready(t, within, 2)
	first := f.bench(2)
	f.midway()
	first.kill()
	for _, a := range all {
		a.await(t, "The coordinator is gone")
	}
	second := f.start("coordinator", "tacho", "bench", "--resume", f.runDir())
	f.end(second, "coordinator-restarted")
	f.whole()
}

// The coordinator that is killed carries NATS with it. Agents find the next one
// where the first was, and let it have what waits in their spools.
func killCoordinatorWithNATS(t *testing.T, within func(string) (string, []string)) {
	f := newField(t, within)
	f.sim()
	host, _ := within("coordinator")
	at := net.JoinHostPort(host, freePort(t))
	f.natsURL = "nats://" + at
	bench := func() *process { return f.bench(2, "--nats", "", "--nats-listen", at) }
	first := bench()
	first.await(t, "Start agents with")
	f.agent("agent-0")
	f.agent("agent-1")
	f.midway()
	first.kill()
	time.Sleep(3 * time.Second) // what finishes now waits
	second := f.start("coordinator", "tacho", "bench", "--resume", f.runDir())
	f.end(second, "coordinator-restarted")
	f.whole()
}

// A killed agent leaves what it had finished; its share is named.
func killAgent(t *testing.T, within func(string) (string, []string)) {
	f, _, all := ready(t, within, 3)
	p := f.bench(3, "--agent-timeout", "2")
	f.midway()
	all[1].kill()
	f.end(p, "agent-lost: agent agent-1 (share 2 of 3) was lost", "DEGRADED")
	if kept := f.check(2); len(kept) < requests*2/3 || len(kept) >= requests { // records of some milliseconds wait in its spool
		t.Errorf("%d of %d requests are kept", len(kept), requests)
	}
}

// It is started again with its spool, before it counts as lost: what it had
// finished is all there.
func killAgentAndStart(t *testing.T, within func(string) (string, []string)) {
	f, _, all := ready(t, within, 3)
	p := f.bench(3, "--agent-timeout", "5")
	f.midway()
	all[1].kill()
	again := f.agent("agent-1")
	f.end(p, "agent-lost: agent agent-1 (share 2 of 3) was lost: its process died, and the next one handed over what it had finished")
	f.check(1)
	if !strings.Contains(again.out.String(), "Handed over") {
		t.Errorf("it says %s", again.out.String())
	}
}

// A killed NATS server takes nothing with it.
func killNode(t *testing.T, within func(string) (string, []string)) {
	f, nodes, _ := ready(t, within, 3)
	p := f.bench(3, "--agent-timeout", "20")
	f.midway()
	nodes[rand.IntN(len(nodes))].kill() // it may lead, or hand the records out, or neither
	f.end(p)
	f.whole()
}

// killing are the ways to kill a part of a cluster during a run.
var killing = map[string]func(*testing.T, func(string) (string, []string)){
	"coordinator": killCoordinator, "coordinator for long": killCoordinatorLong, "coordinator with NATS": killCoordinatorWithNATS,
	"agent": killAgent, "agent that comes back": killAgentAndStart, "NATS": killNode,
}

// Whatever is killed during a run, by the simulator's own log no finished request
// is lost or doubled. The others are for namespaces.
func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some ten seconds of real time")
	}
	for _, name := range []string{"coordinator with NATS", "NATS"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killing[name](t, here)
		})
	}
}
