//go:build netns && linux

package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// A wiring is a set of machines in network namespaces. Each has two links, one for the cluster
// and one for the load. Both end at a bridge in another namespace.
type wiring struct {
	t     *testing.T
	name  string         // prefix of the names of namespaces
	known map[string]int // number of each machine
	slow  map[string]slowness
	other map[string]bool // machines that must not recognize this machine's clock
}

// slowness is the one-way delay from the hub to a machine, and back.
type slowness struct{ there, back time.Duration }

// wirings counts the sets of machines.
var wirings atomic.Int32

func newWiring(t *testing.T) *wiring {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("namespaces need root")
	}
	w := &wiring{t: t, name: fmt.Sprintf("tacho-%d-%d", os.Getpid(), wirings.Add(1)), known: map[string]int{}, slow: map[string]slowness{}, other: map[string]bool{}}
	w.ip("netns", "add", w.hub())
	t.Cleanup(func() { w.ip("netns", "del", w.hub()) })
	for _, bridge := range []string{"talk", "load"} {
		w.ip("-n", w.hub(), "link", "add", bridge, "type", "bridge")
		w.ip("-n", w.hub(), "link", "set", bridge, "up")
	}
	return w
}

func (w *wiring) ip(args ...string) {
	w.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		w.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (w *wiring) hub() string                 { return w.space("hub") }
func (w *wiring) space(machine string) string { return w.name + "-" + machine }

// within creates a machine on first use. The server has an address in the load network, all
// others in the cluster network.
func (w *wiring) within(machine string) (address string, prefix []string) {
	w.t.Helper()
	n, known := w.known[machine]
	if !known {
		n = len(w.known) + 1
		w.known[machine] = n
		w.ip("netns", "add", w.space(machine))
		w.t.Cleanup(func() { w.ip("netns", "del", w.space(machine)) })
		w.ip("-n", w.space(machine), "link", "set", "lo", "up")
		w.link(machine, "talk", fmt.Sprintf("10.77.0.%d/24", n))
		w.link(machine, "load", fmt.Sprintf("10.78.0.%d/24", n))
	}
	prefix = []string{"ip", "netns", "exec", w.space(machine)}
	if w.other[machine] {
		// Processes there read another boot id.
		other := filepath.Join(w.t.TempDir(), "boot_id")
		must.Do(w.t, os.WriteFile(other, []byte("another\n"), 0o644))
		prefix = append(prefix, "unshare", "-m", "sh", "-c", `mount --bind `+other+` /proc/sys/kernel/random/boot_id && exec "$0" "$@"`)
	}
	if machine == "server" {
		return fmt.Sprintf("10.78.0.%d", n), prefix
	}
	return fmt.Sprintf("10.77.0.%d", n), prefix
}

// link connects a machine to a bridge.
func (w *wiring) link(machine, bridge, address string) {
	w.t.Helper()
	space, end := w.space(machine), w.end(machine, bridge)
	slow, isSlow := w.slow[machine]
	isSlow = isSlow && bridge == "talk"
	if isSlow && !hasNetem() {
		w.relay(space, bridge, end, slow)
	} else {
		w.ip("-n", w.hub(), "link", "add", end, "type", "veth", "peer", "name", bridge, "netns", space)
		if isSlow {
			w.netem(w.hub(), end, slow.there)
			w.netem(space, bridge, slow.back)
		}
	}
	w.ip("-n", w.hub(), "link", "set", end, "master", bridge, "up")
	w.ip("-n", space, "addr", "add", address, "dev", bridge)
	w.ip("-n", space, "link", "set", bridge, "up")
}

func (w *wiring) end(machine, bridge string) string {
	return fmt.Sprintf("%s%d", bridge, w.known[machine])
}

// cut removes or restores a machine's link to the cluster.
func (w *wiring) cut(machine string, cut bool) {
	w.t.Helper()
	w.ip("-n", w.hub(), "link", "set", w.end(machine, "talk"), map[bool]string{true: "down", false: "up"}[cut])
}

// cutOneWay drops, or delivers again, all packets of the cluster from a machine to another: they
// leave with the hardware address of no machine.
func (w *wiring) cutOneWay(from, to string, cut bool) {
	w.t.Helper()
	address, _ := w.within(to)
	change := []string{"del", address}
	if cut {
		change = []string{"replace", address, "lladdr", "02:00:00:00:00:01", "nud", "permanent"}
	}
	w.ip(append(append([]string{"-n", w.space(from), "neigh"}, change...), "dev", "talk")...)
}

// hasNetem reports whether this kernel can delay packets.
var hasNetem = sync.OnceValue(func() bool {
	space := fmt.Sprintf("tacho-%d-try", os.Getpid())
	if exec.Command("ip", "netns", "add", space).Run() != nil {
		return false
	}
	defer func() { _ = exec.Command("ip", "netns", "del", space).Run() }()
	return exec.Command("tc", "-n", space, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms").Run() == nil
})

func (w *wiring) netem(space, device string, d time.Duration) {
	w.t.Helper()
	if d == 0 {
		return
	}
	out, err := exec.Command("tc", "-n", space, "qdisc", "add", "dev", device, "root", "netem", "delay", fmt.Sprintf("%dus", d.Microseconds())).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tc: %v: %s", err, out)
	}
}

// relay is a link through this process, for kernels without netem. It delays packets.
func (w *wiring) relay(space, near, far string, s slowness) {
	w.t.Helper()
	hub, there := tap(w.t, w.hub(), far), tap(w.t, space, near)
	carry := func(from, to *os.File, d time.Duration) {
		type packet struct {
			at   time.Time
			data []byte
		}
		packets := make(chan packet, 4096)
		go func() {
			for p := range packets {
				time.Sleep(time.Until(p.at))
				_, _ = to.Write(p.data) // the other end may be down
			}
		}()
		defer close(packets)
		buffer := make([]byte, 1<<16)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return // the test has ended
			}
			packets <- packet{time.Now().Add(d), slices.Clone(buffer[:n])}
		}
	}
	go carry(hub, there, s.there)
	go carry(there, hub, s.back)
}

// tap creates an Ethernet device in a namespace. The file is its wire.
func tap(t *testing.T, space, name string) *os.File {
	t.Helper()
	type made struct {
		fd  int
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread stays in the namespace and exits with the goroutine
		fd, err := tapHere(space, name)
		done <- made{fd, err}
	}()
	m := <-done
	must.Do(t, m.err)
	f := os.NewFile(uintptr(m.fd), name)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func tapHere(space, name string) (int, error) {
	ns, err := os.Open(filepath.Join("/run/netns", space))
	if err != nil {
		return 0, err
	}
	defer func() { _ = ns.Close() }()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return 0, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	return fd, unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

// Killing a process during a run on several machines loses or duplicates no finished request.
func TestNamespacesKilled(t *testing.T) {
	for name, kill := range killing {
		t.Run(name, func(t *testing.T) { kill(t, newWiring(t).within) })
	}
}

// An agent is disconnected while it sends, and its link is restored.
func TestNamespacesCutLink(t *testing.T) {
	w := newWiring(t)
	f, _, _ := newReadyField(t, w.within, 3)
	p := f.bench(3, "--agent-timeout", "60")
	f.awaitKept()
	w.cut("agent-1", true)
	f.answer(away)
	f.awaitSpooled(away)
	w.cut("agent-1", false)
	f.answer(requests)
	f.end(p)
	f.complete()
}

// The coordinator is disconnected.
func TestNamespacesCutCoordinator(t *testing.T) {
	w := newWiring(t)
	f, _, _ := newReadyField(t, w.within, 2)
	p := f.bench(2, "--agent-timeout", "4")
	f.awaitKept()
	w.cut("coordinator", true)
	f.answer(away)
	p.await(t, "Waiting up to 10m0s, because ") // no agent is heard, or NATS is disconnected
	w.cut("coordinator", false)
	f.answer(requests)
	f.end(p, "Agents are heard again")
	f.complete()
}

// An agent with a tiny spool is disconnected. Its records wait in memory.
func TestNamespacesFullSpool(t *testing.T) {
	w := newWiring(t)
	f := newField(t, w.within)
	f.spool = "4K"
	f.nats()
	f.serve()
	f.answer(before)
	for i := range 2 {
		f.agent(fmt.Sprintf("agent-%d", i))
	}
	p := f.bench(2, "--agent-timeout", "60")
	f.awaitKept()
	w.cut("agent-1", true)
	f.answer(away)
	f.awaitAnswered(away)
	w.cut("agent-1", false)
	f.answer(requests)
	f.end(p, "agent-spool-full: agent agent-1 (share 2 of 2)")
	f.complete()
}

// awaitAnswered waits until the server has answered the first n requests.
func (f *field) awaitAnswered(n int) {
	f.t.Helper()
	if !eventually(f.t.Context(), func() bool { return len(readLines[struct{}](f.t, f.truth)) >= n }) {
		f.t.Fatalf("the server did not answer %d requests", n)
	}
}

// agents returns the agents in the report of the run.
func (f *field) agents() []metric.Agent {
	f.t.Helper()
	type stage struct{ Config metric.Config }
	all := readLines[json.RawMessage](f.t, filepath.Join(f.runDir(), "stages.jsonl"))
	var last stage
	must.Do(f.t, json.Unmarshal(all[len(all)-1], &last))
	return last.Config.Agents
}

// With slow links, symmetric or not, the reported clock offset includes the truth, which is 0.
func TestNamespacesClocks(t *testing.T) {
	t.Logf("delays are made by netem: %v", hasNetem())
	for name, s := range map[string]slowness{
		"alike": {20 * time.Millisecond, 20 * time.Millisecond}, "there": {40 * time.Millisecond, 0}, "back": {0, 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWiring(t)
			w.slow["agent-1"], w.other["agent-1"] = s, true
			f, _, _ := newReadyField(t, w.within, 2)
			f.answer(requests)
			f.end(f.bench(2, "--num-prompts", "80", "--request-rate", "40"))
			for _, a := range f.agents() {
				t.Logf("%s: ahead by %v, give or take %v", a.Name, a.Offset, a.OffsetErr)
				if a.Name == "agent-0" && (!a.SameClock || a.Offset != 0) {
					t.Errorf("%+v", a)
				}
				if a.Name != "agent-1" {
					continue
				}
				if a.SameClock || a.Offset.Abs() > a.OffsetErr {
					t.Errorf("its clock is the same, and the report says that it is ahead by %v, give or take %v", a.Offset, a.OffsetErr)
				}
				// The possible error is at least half of the delay. A tenth of a second is
				// more than the exchange takes here.
				if a.OffsetErr < 20*time.Millisecond || a.OffsetErr > 100*time.Millisecond {
					t.Errorf("give or take %v", a.OffsetErr)
				}
			}
		})
	}
}

// Agents follow one schedule. Agents of one machine share its clock, so their kernel send
// times can be compared with it.
func TestNamespacesSendInstants(t *testing.T) {
	w := newWiring(t)
	f, _, _ := newReadyField(t, w.within, 4)
	f.answer(requests)
	f.end(f.bench(4, "--request-rate", "40"))
	f.complete()
	var all stat.Digest
	by := map[string]*stat.Digest{}
	for _, r := range f.kept() {
		if by[r.Agent] == nil {
			by[r.Agent] = &stat.Digest{}
		}
		late := float64(r.Sent-r.Due) / 1e6
		all.Add(late)
		by[r.Agent].Add(late)
	}
	for name, d := range by {
		late := d.Distribution()
		t.Logf("%s: p50 %.3f ms, p99 %.3f ms after the schedule", name, late.Quantile(0.5), late.Quantile(0.99))
		if m := late.Quantile(0.5); m < 0 || m > 1 {
			t.Errorf("%s: half of its requests left %.3f ms and more after the schedule", name, m)
		}
	}
	t.Logf("all: p50 %.3f ms, p99 %.3f ms", all.Distribution().Quantile(0.5), all.Distribution().Quantile(0.99))
}
