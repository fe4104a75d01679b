package proof

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/stat"
)

// BenchmarkBurst measures the CPU time per request in a burst and the duration
// of the burst, compared with a bare loop of writes to as many connections.
func BenchmarkBurst(b *testing.B) {
	const requests, rounds = 1024, 7
	for b.Loop() {
		addr := start(b, "server", "500ms", "50ms").line()
		cpu, wall := map[string][]float64{}, map[string][]float64{}
		for range rounds {
			for kind := range bursts {
				c := start(b, "burst", kind, addr, strconv.Itoa(requests))
				var s, took float64
				must.Get(fmt.Sscan(c.line(), &s, &took))(b)
				c.stop()
				cpu[kind], wall[kind] = append(cpu[kind], 1e6*s/requests), append(wall[kind], 1e3*took)
			}
		}
		half := func(of []float64) float64 { return stat.New(of).Quantile(.5) }
		for kind := range bursts {
			b.Logf("%s: %.1f us of CPU a request, %d requests in %.1f ms (medians of %d)", kind, half(cpu[kind]), requests, half(wall[kind]), rounds)
		}
		b.ReportMetric(half(cpu["tacho"])/half(cpu["floor"]), "cpu-ratio")
		b.ReportMetric(half(wall["tacho"]), "burst-ms")
		b.ReportMetric(0, "ns/op")
	}
}

// bursts are implementations of a burst. They return the CPU time, and the time
// from before the first write until after the last, in seconds.
var bursts = map[string]func(addr string, requests int) (cpu, wall float64, err error){"tacho": tachoBurst, "floor": floorBurst}

// burst is the role of a client that sends a burst. args are its kind, the
// server's address and the number of requests.
func burst(args []string) error {
	requests, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	cpu, wall, err := bursts[args[0]](args[1], requests)
	fmt.Println(cpu, wall)
	return err
}

// floorBurst writes to open connections. Transmit timestamps are enabled, as in
// tacho.
func floorBurst(addr string, requests int) (cpu, wall float64, err error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return 0, 0, err
	}
	to, text := &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}, floorRequest(addr, 0, requestBody(2))
	fds := make([]int, requests)
	for i := range fds {
		if fds[i], err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
			return 0, 0, err
		}
		if err := unix.Connect(fds[i], to); err != nil {
			return 0, 0, err
		}
		if err := unix.SetsockoptInt(fds[i], unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_TX_SOFTWARE|
			unix.SOF_TIMESTAMPING_SOFTWARE|unix.SOF_TIMESTAMPING_OPT_ID|unix.SOF_TIMESTAMPING_OPT_TSONLY); err != nil {
			return 0, 0, err
		}
	}
	time.Sleep(100 * time.Millisecond) // until the server has accepted all connections
	before, began := cpuSeconds(), time.Now()
	for _, fd := range fds {
		if _, err := unix.Write(fd, text); err != nil {
			return 0, 0, err
		}
	}
	return cpuSeconds() - before, time.Since(began).Seconds(), nil
}

// tachoBurst sends the burst with tacho's engine and transport.
func tachoBurst(addr string, requests int) (cpu, wall float64, err error) {
	engine.Tune()
	be, tc, err := vllm(addr)
	if err != nil {
		return 0, 0, err
	}
	defer tc.Close()
	if err := tc.Warm(context.Background(), requests, 0); err != nil {
		return 0, 0, err
	}
	time.Sleep(100 * time.Millisecond)
	w := &watch{Backend: be}
	w.left.Store(int64(requests))
	err = engine.Run(context.Background(), engine.Stage{
		Arrivals: pace.Stripe(pace.Burst{Count: requests}.Arrivals(), 0, 1), Source: prompts{count: requests, output: 2}, Backend: w, Precise: true,
	}, new(counter))
	return w.cpu, w.wall, err
}

// A watch records the first and the last write of a burst.
type watch struct {
	tacho.Backend
	begun     atomic.Bool
	left      atomic.Int64
	before    float64
	began     time.Time
	cpu, wall float64
}

func (w *watch) Prepare(q *tacho.Request) (tacho.Call, error) {
	c, err := w.Backend.Prepare(q)
	return watched{c, w}, err
}

type watched struct {
	tacho.Call
	watch *watch
}

func (c watched) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	inner := o
	o.Gate = func(write func()) error { return c.watch.pass(inner, write) }
	c.Call.Do(ctx, epoch, rec, o)
}

func (w *watch) pass(o tacho.CallOptions, write func()) error {
	return o.Pass(func() {
		if !w.begun.Swap(true) {
			w.before, w.began = cpuSeconds(), time.Now()
		}
		write()
		if w.left.Add(-1) == 0 {
			w.cpu, w.wall = cpuSeconds()-w.before, time.Since(w.began).Seconds()
		}
	})
}
