//go:build real

package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tacho/cluster"
	"tacho/kube"
)

// The commands of the manifests, as Kubernetes runs them: agents that start before
// the coordinator wait for it; a coordinator that is ended with its node is started
// again and goes on; all end with the run, and nothing is lost or doubled.
func TestRealManifestsGoOn(t *testing.T) {
	f := newField(t, here())
	f.serve()
	f.answer(before)
	identity, err := cluster.NewIdentity()
	must(t, err)
	seed, err := identity.Seed()
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(f.dir, "tacho"), 0o700))
	must(t, os.WriteFile(filepath.Join(f.dir, "tacho", "coordinator.nk"), seed, 0o600))
	o := kube.Options{
		Name: "load", Image: "tacho:1", Agents: 2, CPUs: "1", Memory: "1Gi", Size: "1Gi", Token: f.token, Seed: string(seed), Trust: identity.Public(), Allow: []string{f.target},
		Bench: strings.Fields(fmt.Sprintf("--base-url=%s --num-prompts=%d --random-input-len=20 --random-output-len=10 --seed=1 --request-id-prefix=r- --no-html --no-trial", f.target, requests)),
	}
	host, _ := f.within("coordinator")
	at := freeAddress(t, host)
	var agents []*process
	for i := range o.Agents {
		agents = append(agents, f.start("agent", "tacho", f.commandOf(&o, "load-agents", at, i)...))
		agents[i].await(t, "No NATS server answers at nats://"+at+" yet")
	}
	bench := func() *process { return f.start("coordinator", "tacho", f.commandOf(&o, "load-coordinator", at, 0)...) }
	first := bench()
	f.awaitKept()
	must(t, first.cmd.Process.Signal(syscall.SIGTERM))
	<-first.over
	if code := first.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("it ended with %d", code)
	}
	f.answer(away)
	f.awaitSpooled(away)
	second := bench()
	second.await(t, "Going on with")
	f.answer(requests)
	f.end(second, "coordinator-restarted")
	f.whole()
	for _, a := range agents {
		if <-a.over; !a.cmd.ProcessState.Success() {
			t.Errorf("an agent ended with %v", a.cmd.ProcessState)
		}
	}
}

// commandOf is what a Job has its pods run, with places of this machine for those of
// a pod.
func (f *field) commandOf(o *kube.Options, job, nats string, index int) (args []string) {
	f.t.Helper()
	type object = map[string]any
	for _, obj := range o.Objects() {
		if obj["metadata"].(object)["name"] != job {
			continue
		}
		pod := obj["spec"].(object)["template"].(object)["spec"].(object)
		for _, word := range pod["containers"].([]object)[0]["args"].([]string) {
			args = append(args, strings.NewReplacer(
				"/runs/load", filepath.Join(f.dir, "runs"), "/spool", filepath.Join(f.dir, "spool", fmt.Sprint(index)), "0.0.0.0:4222", nats, "load-nats:4222", nats,
				"$(JOB_COMPLETION_INDEX)", fmt.Sprint(index)).Replace(word))
		}
		return args
	}
	f.t.Fatalf("there is no Job %s", job)
	return nil
}
