//go:build real || netns

package cluster_test

import (
	"fmt"
	"strings"
	"testing"
)

// ready is a field with NATS, a server and agents. The server answers the first
// requests, and holds the others.
func ready(t *testing.T, within func(string) (string, []string), agents int) (*field, []*process, []*process) {
	t.Helper()
	f := newField(t, within)
	nodes := f.nats()
	f.serve()
	var all []*process
	for i := range agents {
		all = append(all, f.agent(fmt.Sprintf("agent-%d", i)))
	}
	f.answer(before)
	return f, nodes, all
}

// resume starts the coordinator again. When it leads the run, the server answers the
// rest.
func (f *field) resume() *process {
	f.t.Helper()
	p := f.start("coordinator", "tacho", "bench", "--resume", f.runDir())
	p.await(f.t, "Going on with")
	f.answer(requests)
	return p
}

// The coordinator is killed in the middle of a level, and started again: the
// agents went on, and nothing of the level is lost or doubled.
func killCoordinator(t *testing.T, within func(string) (string, []string)) {
	f, _, _ := ready(t, within, 3)
	first := f.bench(3)
	f.awaitKept()
	first.kill()
	f.answer(away)
	f.awaitSpooled(away)
	f.end(f.resume(), "coordinator-restarted: the coordinator was started again")
	f.whole()
}

// It is killed, and comes back when the agents are through, and have given it up.
func killCoordinatorLong(t *testing.T, within func(string) (string, []string)) {
	f, _, all := ready(t, within, 2)
	first := f.bench(2)
	f.awaitKept()
	first.kill()
	f.answer(requests)
	for _, a := range all {
		a.await(t, "The coordinator is gone")
	}
	f.end(f.resume(), "coordinator-restarted")
	f.whole()
}

// The coordinator that is killed carries NATS with it. Agents find the next one
// where the first was, and let it have what waits in their spools.
func killCoordinatorWithNATS(t *testing.T, within func(string) (string, []string)) {
	f := newField(t, within)
	f.serve()
	f.answer(before)
	host, _ := within("coordinator")
	at := freeAddress(t, host)
	f.natsURL = "nats://" + at
	first := f.bench(2, "--nats", "", "--nats-listen", at)
	first.await(t, "Start agents with")
	f.agent("agent-0")
	f.agent("agent-1")
	f.awaitKept()
	first.kill()
	f.answer(away)
	f.awaitSpooled(away)
	f.end(f.resume(), "coordinator-restarted")
	f.whole()
}

// A killed agent leaves what it had finished; its share is named.
func killAgent(t *testing.T, within func(string) (string, []string)) {
	f, _, all := ready(t, within, 3)
	p := f.bench(3, "--agent-timeout", "15", "--on-loss", "keep")
	f.killSecond(all[1])
	f.end(p, "agent-lost: agent agent-1 (share 2 of 3) was lost", "INVALID")
	f.withoutSecond()
}

// It is started again with its spool, before it counts as lost: what it had
// finished is all there.
func killAgentAndStart(t *testing.T, within func(string) (string, []string)) {
	f, _, all := ready(t, within, 3)
	p := f.bench(3, "--agent-timeout", "300", "--on-loss", "keep")
	f.killSecond(all[1])
	again := f.agent("agent-1")
	f.end(p, "agent-lost: agent agent-1 (share 2 of 3) was lost: its process died, and the next one handed over what it had finished")
	f.withoutSecond()
	if !strings.Contains(again.out.String(), "Handed over") {
		t.Errorf("it says %s", again.out.String())
	}
}

// unfinished is how many requests the second of three agents has not finished when it
// is killed.
func unfinished() (n int) {
	for i := before; i < requests; i++ {
		if i%3 == 1 {
			n++
		}
	}
	return n
}

// killSecond kills the second of three agents while its requests wait. When the server
// knows that their client is gone, it answers those of the others.
func (f *field) killSecond(agent *process) {
	f.t.Helper()
	f.awaitKept()
	f.awaitWaiting(requests - before)
	agent.kill()
	f.awaitWaiting(requests - before - unfinished())
	f.answer(requests)
}

// withoutSecond wants all requests of a run of three agents but those that the second
// had not finished when it was killed.
func (f *field) withoutSecond() {
	f.t.Helper()
	want := requests - unfinished()
	if kept := f.check(); len(kept) != want {
		f.t.Errorf("%d requests are kept, want %d", len(kept), want)
	}
}

// A killed NATS server takes nothing with it.
func killNode(t *testing.T, within func(string) (string, []string)) {
	f, nodes, _ := ready(t, within, 3)
	p := f.bench(3, "--agent-timeout", "300", "--on-loss", "keep")
	f.awaitKept()
	nodes[0].kill() // it may lead, or hand the records out, or neither
	f.answer(requests)
	f.end(p)
	f.whole()
}

// killing are the ways to kill a part of a cluster during a run.
var killing = map[string]func(*testing.T, func(string) (string, []string)){
	"coordinator": killCoordinator, "coordinator for long": killCoordinatorLong, "coordinator with NATS": killCoordinatorWithNATS,
	"agent": killAgent, "agent that comes back": killAgentAndStart, "NATS": killNode,
}

// Whatever is killed during a run, by the simulator's own log no finished request
// is lost or doubled. The others wait for time to pass, and are for namespaces.
func TestRealKilledProcesses(t *testing.T) {
	for _, name := range []string{"coordinator", "coordinator with NATS", "agent that comes back", "NATS"} {
		t.Run(name, func(t *testing.T) { killing[name](t, here()) })
	}
}
