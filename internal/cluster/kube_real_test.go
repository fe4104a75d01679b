//go:build real

package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
)

// TestRealManifestsGoOn runs the commands of the manifests as Kubernetes does. Agents
// that start before the coordinator wait for it. A coordinator that is deleted or
// evicted stops the load. If it is started again, it measures the level again with the
// same agents, and all end with the run.
func TestRealManifestsGoOn(t *testing.T) {
	f := newField(t, here())
	f.serve()
	f.answer(before)
	identity := must.Get(cluster.NewIdentity())(t)
	seed := must.Get(identity.Seed())(t)
	must.Do(t, os.MkdirAll(filepath.Join(f.dir, "tacho"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(f.dir, "tacho", "coordinator.nk"), seed, 0o600))
	host, _ := f.within("coordinator")
	at := freeAddress(t, host)
	var agents []*process
	for i := range 2 {
		agents = append(agents, f.start("agent", "tacho", f.commandOf("load-agents", identity, at, i)...))
		agents[i].await(t, "No NATS server answers at tls://"+at)
	}
	flags := fmt.Sprintf("--num-prompts=%d --random-input-len=20 --random-output-len=10 --request-id-prefix=r- --no-html --no-trial", requests)
	bench := func() *process {
		return f.start("coordinator", "tacho", append(f.commandOf("load-coordinator", identity, at, 0), strings.Fields(flags)...)...)
	}
	first := bench()
	f.awaitKept()
	f.awaitWaiting(requests - before)
	must.Do(t, first.cmd.Process.Signal(syscall.SIGTERM))
	<-first.exited
	if code := first.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("it ended with %d", code)
	}
	f.awaitWaiting(0) // the load has stopped
	for _, a := range agents {
		select {
		case <-a.exited:
			t.Errorf("an agent ended with its coordinator: %v", a.cmd.ProcessState)
		default:
		}
	}
	f.answer(requests)
	second := bench()
	second.await(t, "Continuing ")
	f.end(second)
	f.complete()
	for _, a := range agents {
		if <-a.exited; !a.cmd.ProcessState.Success() {
			t.Errorf("an agent ended with %v", a.cmd.ProcessState)
		}
	}
}

// commandOf returns the command of a Job in the chart (deploy/check renders the chart), with
// addresses and directories of this machine.
func (f *field) commandOf(job string, identity *cluster.Identity, nats string, index int) (args []string) {
	f.t.Helper()
	pin := identity.Pin()
	text := must.Get(os.ReadFile("../../deploy/check/testdata/manifests.yaml"))(f.t)
	for docs := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var object struct {
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Spec struct{ Containers []struct{ Args []string } }
				}
			}
		}
		must.Do(f.t, docs.Decode(&object)) // fails if there is no such Job
		if object.Metadata.Name != job {
			continue
		}
		for _, word := range object.Spec.Template.Spec.Containers[0].Args {
			args = append(args, strings.NewReplacer(
				"/runs/load", filepath.Join(f.dir, "runs"), "/spool", filepath.Join(f.dir, "spool", fmt.Sprint(index)), "0.0.0.0:4222", nats, "load-nats:4222", nats,
				"http://vllm:8000", f.target, "$(TACHO_TRUST)", identity.Public(), "$(TACHO_PIN)", pin, "$(JOB_COMPLETION_INDEX)", fmt.Sprint(index)).Replace(word))
		}
		return args
	}
}
