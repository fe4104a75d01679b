//go:build netns && linux

package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/must"
)

// A cutCase cuts a part of a cluster off, or kills it, while agents send 15 requests/s for 40 s.
type cutCase struct {
	name  string
	own   bool // the user's own NATS server
	cut   func(*cutRun)
	extra bool // two agents send some requests
	keep  bool // no other agent takes over, so requests are missing
}

// cutAll cuts the coordinator off from all agents.
func cutAll(d time.Duration) func(*cutRun) {
	return func(r *cutRun) { r.during(d, func(cut bool) { r.wiring.cut("coordinator", cut) }) }
}

// cutOne cuts one agent off.
func cutOne(d time.Duration) func(*cutRun) {
	return func(r *cutRun) { r.during(d, func(cut bool) { r.wiring.cut("agent-1", cut) }) }
}

// cutOneWay drops packets in one direction.
func cutOneWay(from, to string, d time.Duration) func(*cutRun) {
	return func(r *cutRun) { r.during(d, func(cut bool) { r.wiring.cutOneWay(from, to, cut) }) }
}

// killCoordinatorFor kills the coordinator and resumes its run.
func killCoordinatorFor(d time.Duration) func(*cutRun) {
	return func(r *cutRun) {
		r.coordinator.kill()
		time.Sleep(d)
		r.coordinator = r.start("coordinator", "tacho", "bench", "--resume", r.runDir())
	}
}

// killNATSFor kills the NATS server and starts it again.
func killNATSFor(d time.Duration) func(*cutRun) {
	return func(r *cutRun) {
		r.node.kill()
		time.Sleep(d)
		r.node = r.start("nats-0", "nats", r.node.cmd.Args[len(r.node.cmd.Args)-4:]...)
	}
}

var cutCases = []cutCase{
	{"all agents, 8 s", false, cutAll(8 * time.Second), false, false},
	{"all agents, 14 s", false, cutAll(14 * time.Second), false, false},
	{"all agents, 30 s", false, cutAll(30 * time.Second), false, false},
	{"all agents, 120 s", false, cutAll(2 * time.Minute), false, false},
	{"one agent, 8 s", false, cutOne(8 * time.Second), false, false},
	{"one agent, 14 s", false, cutOne(14 * time.Second), true, false},
	{"one agent, 30 s", false, cutOne(30 * time.Second), true, false},
	{"one agent, 120 s", false, cutOne(2 * time.Minute), true, false},
	{"only to the coordinator, 30 s", false, cutOneWay("agent-1", "coordinator", 30*time.Second), true, false},
	{"only to the agent, 30 s", false, cutOneWay("coordinator", "agent-1", 30*time.Second), true, false},
	{"coordinator killed, resumed after 14 s", false, killCoordinatorFor(14 * time.Second), false, false},
	{"coordinator killed, resumed after 120 s", false, killCoordinatorFor(2 * time.Minute), false, false},
	{"NATS killed, 14 s", true, killNATSFor(14 * time.Second), false, false},
	{"NATS killed, 120 s", true, killNATSFor(2 * time.Minute), false, false},
	{"one agent killed, `--on-loss keep`", true, func(r *cutRun) { r.agents[1].kill() }, false, true},
	{"one agent, 120 s, `--on-loss keep`", false, cutOne(2 * time.Minute), false, true},
}

// A cutRun is the run of a case.
type cutRun struct {
	*field
	wiring            *wiring
	coordinator, node *process
	agents            []*process // with the user's own NATS server
}

// during cuts, waits, and restores.
func (r *cutRun) during(d time.Duration, set func(cut bool)) {
	set(true)
	time.Sleep(d)
	set(false)
}

// cutRequests is the number of requests of a case.
const cutRequests = 600

// measure runs a case.
func (c *cutCase) measure(t *testing.T) *cutRun {
	w := newWiring(t)
	r := &cutRun{field: newField(t, w.within), wiring: w}
	r.serve()
	load := []string{"--num-prompts", fmt.Sprint(cutRequests), "--request-rate", "15"}
	if c.keep {
		load = append(load, "--on-loss", "keep")
	}
	if c.own {
		r.node = r.oneNode()
		for i := range 3 {
			r.agents = append(r.agents, r.agent(fmt.Sprintf("agent-%d", i)))
		}
		r.coordinator = r.bench(3, load...)
	} else {
		host, _ := w.within("coordinator")
		r.coordinator = r.benchWithNATS(freeAddress(t, host), 3, load...)
	}
	if !eventually(t.Context(), func() bool { return len(r.kept()) >= 75 }) {
		t.Fatalf("%d records", len(r.kept()))
	}
	c.cut(r)
	r.end(r.coordinator)
	return r
}

// row checks a run and returns its row in the table.
func (c *cutCase) row(t *testing.T, r *cutRun) string {
	run := must.Get(archive.Open(r.runDir(), nil))(t)
	s := run.Levels[0].Summary
	extra, bound := 0, ""
	for _, a := range s.Config.Agents {
		extra += a.Extra
	}
	codes := []string{"not-received", "unsent", "agent-lost", "agent-paused", "extra-load", "coordinator-restarted"}
	var why []string // one sentence of each code
	for _, reason := range s.Verdict.Reasons {
		if i := slices.Index(codes, reason.Code); i >= 0 {
			codes = slices.Delete(codes, i, i+1)
			text, _, _ := strings.Cut(reason.Text, ": ") // without the advice
			why = append(why, text)
		}
		if strings.Contains(reason.Text, "both sent up to") {
			bound = "up to "
		}
	}
	served, kept := len(readLines[json.RawMessage](t, r.truth)), len(r.kept())
	missing, unsent := s.Config.NotReceived(), s.Unsent().Total()
	if kept+missing+unsent != cutRequests {
		t.Errorf("%d records, %d not received and %d never sent are not %d", kept, missing, unsent, cutRequests)
	}
	if !c.keep {
		r.check()
	} else {
		if kept+missing == cutRequests || !strings.Contains(strings.Join(why, " "), "never sent") {
			t.Errorf("%d records, %d not received: %v", kept, missing, s.Verdict)
		}
		return r.format(c, served, kept, missing, unsent, "0", fmt.Sprint(s.Verdict.Severity), why)
	}
	if bound == "" && served != kept+missing+extra || served > kept+missing+extra || (extra > 0) != c.extra {
		t.Errorf("the server counted %d requests; %d records, %d not received, %d extra", served, kept, missing, extra)
	}
	if kept != cutRequests {
		t.Errorf("%d of %d records: %v", kept, cutRequests, s.Verdict)
	}
	return r.format(c, served, kept, missing, unsent, fmt.Sprint(bound, extra), fmt.Sprint(s.Verdict.Severity), why)
}

func (r *cutRun) format(c *cutCase, served, kept, missing, unsent int, extra, verdict string, why []string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %s | %s | %s |", c.name, served, kept, missing, unsent, extra, verdict, strings.Join(why, ". "))
}

// TestCuts prints a table of cut links and killed processes. Each run must keep all requests, and
// its report must have all requests that the server counted.
func TestCuts(t *testing.T) {
	rows := make([]string, len(cutCases))
	var mu sync.Mutex
	t.Cleanup(func() {
		table := "| cut off or killed | counted by the server | records kept | not received | never sent | extra load | verdict | sentences |\n" +
			"|---|---|---|---|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
		t.Logf("\n%s", table)
		if file := os.Getenv("CUTS_TABLE"); file != "" {
			must.Do(t, os.WriteFile(file, []byte(table), 0o644))
		}
	})
	for i, c := range cutCases {
		t.Run(strings.NewReplacer(" ", "-", ",", "").Replace(c.name), func(t *testing.T) {
			t.Parallel()
			row := c.row(t, c.measure(t))
			mu.Lock()
			defer mu.Unlock()
			rows[i] = row
		})
	}
}

// oneNode starts a single NATS server.
func (f *field) oneNode() *process {
	f.t.Helper()
	host, _ := f.within("nats-0")
	at, route := freeAddress(f.t, host), freeAddress(f.t, host)
	p := f.start("nats-0", "nats", "nats-0", at, route, route)
	p.await(f.t, "ready")
	f.natsURL = "nats://" + at
	return p
}
