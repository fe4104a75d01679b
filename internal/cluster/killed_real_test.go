//go:build real || netns

package cluster_test

import (
	"fmt"
	"strings"
	"testing"
)

// newReadyField returns a field with NATS, a server and agents. The server answers only the
// first requests.
func newReadyField(t *testing.T, within func(string) (string, []string), agents int) (*field, []*process, []*process) {
	t.Helper()
	return newField(t, within).ready(agents)
}

// ready starts NATS, a server and agents.
func (f *field) ready(agents int) (*field, []*process, []*process) {
	f.t.Helper()
	nodes := f.nats()
	f.serve()
	var all []*process
	for i := range agents {
		all = append(all, f.agent(fmt.Sprintf("agent-%d", i)))
	}
	f.answer(before)
	return f, nodes, all
}

// resume starts the coordinator again. The server answers all requests when it leads the run.
func (f *field) resume() *process {
	f.t.Helper()
	p := f.start("coordinator", "tacho", "bench", "--resume", f.runDir())
	p.await(f.t, "Continuing ")
	f.answer(requests)
	return p
}

// The coordinator is killed during a level and started again. Agents continue, and no record
// is lost or duplicated.
func killCoordinator(t *testing.T, within func(string) (string, []string)) {
	f, _, _ := newReadyField(t, within, 3)
	first := f.bench(3)
	f.awaitKept()
	first.kill()
	f.answer(away)
	f.awaitSpooled(away)
	f.end(f.resume(), "coordinator-restarted: the coordinator restarted")
	f.complete()
}

// The coordinator returns after the agents have finished and abandoned it.
func killCoordinatorLong(t *testing.T, within func(string) (string, []string)) {
	f, _, all := newReadyField(t, within, 2)
	first := f.bench(2)
	f.awaitKept()
	first.kill()
	f.answer(requests)
	for _, a := range all {
		a.await(t, "The coordinator does not answer")
	}
	f.end(f.resume(), "coordinator-restarted")
	f.complete()
}

// Agents whose coordinator was killed stop the load. The next coordinator has them send the rest.
func killCoordinatorForGood(t *testing.T, within func(string) (string, []string)) {
	f := newField(t, within)
	f.orphan = "15"
	_, _, all := f.ready(2)
	first := f.bench(2)
	f.awaitKept()
	f.awaitWaiting(requests - before)
	first.kill()
	for _, a := range all {
		a.await(t, "No coordinator was heard for 15s: the load stops")
	}
	f.awaitWaiting(0) // the agents cancel the requests that wait
	f.end(f.resume(), "coordinator-restarted", "it stopped without a coordinator")
	f.complete()
}

// The killed coordinator contains NATS. Agents find its successor at the same address and
// deliver the records of their spools.
func killCoordinatorWithNATS(t *testing.T, within func(string) (string, []string)) {
	f := newField(t, within)
	f.serve()
	f.answer(before)
	host, _ := within("coordinator")
	first := f.benchWithNATS(freeAddress(t, host), 2)
	f.awaitKept()
	first.kill()
	f.answer(away)
	f.awaitSpooled(away)
	f.end(f.resume(), "coordinator-restarted")
	f.complete()
}

// The finished records of a killed agent are stored, and its share is named.
func killAgent(t *testing.T, within func(string) (string, []string)) {
	f, _, all := newReadyField(t, within, 3)
	p := f.bench(3, "--agent-timeout", "15", "--on-loss", "keep")
	f.killSecond(all[1])
	f.end(p, "agent-lost: agent agent-1 (share 2 of 3) was lost", "INVALID")
	f.withoutSecond()
}

// The agent restarts with its spool before it counts as lost, and all its finished records are
// stored.
func killAgentAndStart(t *testing.T, within func(string) (string, []string)) {
	f, _, all := newReadyField(t, within, 3)
	p := f.bench(3, "--agent-timeout", "300", "--on-loss", "keep")
	f.killSecond(all[1])
	again := f.agent("agent-1")
	f.end(p, "agent-lost: agent agent-1 (share 2 of 3) was lost (its process died)")
	f.withoutSecond()
	if !strings.Contains(again.out.String(), "Delivered") {
		t.Errorf("it says %s", again.out.String())
	}
}

// unfinished returns how many requests the second of three agents has not finished when it is
// killed.
func unfinished() (n int) {
	for i := before; i < requests; i++ {
		if i%3 == 1 {
			n++
		}
	}
	return n
}

// killSecond kills the second of three agents while its requests wait. The server answers the
// others when it has noticed the disconnection.
func (f *field) killSecond(agent *process) {
	f.t.Helper()
	f.awaitKept()
	f.awaitWaiting(requests - before)
	agent.kill()
	f.awaitWaiting(requests - before - unfinished())
	f.answer(requests)
}

// withoutSecond checks that all requests are stored except the unfinished ones of the second
// agent.
func (f *field) withoutSecond() {
	f.t.Helper()
	want := requests - unfinished()
	if kept := f.check(); len(kept) != want {
		f.t.Errorf("%d requests are kept, want %d", len(kept), want)
	}
}

// A killed NATS server loses no records.
func killNode(t *testing.T, within func(string) (string, []string)) {
	f, nodes, _ := newReadyField(t, within, 3)
	p := f.bench(3, "--agent-timeout", "300", "--on-loss", "keep")
	f.awaitKept()
	nodes[0].kill() // any server: the leader, the one that delivers the records, or neither
	f.answer(requests)
	f.end(p)
	f.complete()
}

// killing lists the ways to kill a part of a cluster during a run.
var killing = map[string]func(*testing.T, func(string) (string, []string)){
	"coordinator": killCoordinator, "coordinator for long": killCoordinatorLong, "coordinator for good": killCoordinatorForGood, "coordinator with NATS": killCoordinatorWithNATS,
	"agent": killAgent, "agent that comes back": killAgentAndStart, "NATS": killNode,
}

// Killing a process during a run loses or duplicates no finished request, by the simulator's
// log. Slow cases run in namespaces only.
func TestRealKilledProcesses(t *testing.T) {
	for _, name := range []string{"coordinator", "coordinator for good", "coordinator with NATS", "agent that comes back", "NATS"} {
		t.Run(name, func(t *testing.T) { killing[name](t, here()) })
	}
}
