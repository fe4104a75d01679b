package transport

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

type consumerFunc func(data []byte, reads []Read) error

func (f consumerFunc) Consume(data []byte, reads []Read) error { return f(data, reads) }

// However many streams call consume at once, each Consumer runs, each stream gets the
// error of its own Consumer, and at most NumCPU run at the same time.
func TestCrew(t *testing.T) {
	var c workerPool
	var at, most, consumed atomic.Int64
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			for j := range 3 {
				want := fmt.Sprint(i, j)
				said := errors.New(want)
				err := c.consume(consumerFunc(func(data []byte, _ []Read) error {
					n := at.Add(1)
					defer at.Add(-1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					runtime.Gosched()
					if string(data) == want {
						consumed.Add(1)
					}
					return said
				}), []byte(want), nil)
				if !errors.Is(err, said) {
					t.Errorf("%v, want %v", err, said)
				}
			}
		})
	}
	wg.Wait()
	if n := most.Load(); consumed.Load() != 3000 || n > int64(runtime.NumCPU()) {
		t.Errorf("%d were consumed, %d at a time", consumed.Load(), n)
	}
}
