package run

import (
	"sync"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

const (
	beatEvery = 20 * time.Millisecond
	pauseMin  = 100 * time.Millisecond // shorter pauses are normal on a busy machine
)

// A heartbeat detects when the client was not scheduled. A stopped process, a
// suspended machine and a stolen core all look like a slow server to a request.
// A late timer reveals them.
type heartbeat struct {
	pulse
	began         time.Time
	bootAtStart   time.Duration
	stop, stopped chan struct{}
}

func startHeartbeat() *heartbeat {
	h := &heartbeat{began: time.Now(), bootAtStart: sinceBoot(), stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(h.stopped)
		tick := time.NewTimer(beatEvery)
		defer tick.Stop()
		for ; ; tick.Reset(beatEvery) {
			select {
			case <-tick.C:
				h.beat(h.now())
			case <-h.stop:
				return
			}
		}
	}()
	return h
}

func (h *heartbeat) now() (awake, boot time.Duration) {
	return time.Since(h.began), sinceBoot() - h.bootAtStart
}

// end stops the heartbeat and returns its pauses up to the call; the time
// needed to stop is excluded.
func (h *heartbeat) end() metric.Pauses {
	awake, boot := h.now()
	close(h.stop)
	<-h.stopped
	h.beat(awake, boot)
	return h.pauses
}

// soFar returns the pauses up to now.
func (p *pulse) soFar() metric.Pauses {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pauses
}

// A pulse is a heartbeat without a clock. Each beat passes the time of two
// clocks: one stops while the machine is suspended, the other does not.
type pulse struct {
	mu          sync.Mutex
	awake, boot time.Duration // at the last beat
	pauses      metric.Pauses
}

func (p *pulse) beat(awake, boot time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := awake - p.awake
	asleep := max(boot-p.boot-passed, 0)
	if asleep < pauseMin {
		asleep = 0
	}
	if pause := passed + asleep - beatEvery; pause > 0 {
		if ms := pause.Seconds() * 1e3; ms > p.pauses.LongestMillis {
			p.pauses.LongestMillis, p.pauses.AtS = ms, p.awake.Seconds()
		}
		if pause >= pauseMin {
			p.pauses.TotalS += pause.Seconds()
			p.pauses.AsleepS += asleep.Seconds()
			if len(p.pauses.List) < metric.MaxStalls {
				p.pauses.List = append(p.pauses.List, metric.Stall{AtS: p.awake.Seconds(), Millis: pause.Seconds() * 1e3})
			}
		}
	}
	p.awake, p.boot = awake, boot
}
