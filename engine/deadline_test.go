package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func begun(ds *deadlines) *deadline {
	d := &deadline{of: ds}
	d.begin()
	return d
}

// Requests expire at their own deadlines and not before, in any order of completion, and
// Done, Err and AfterFunc agree.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ds := newDeadlines(t.Context(), 10*time.Second)
		defer ds.close()
		began := time.Now()
		ended := make(chan string, 10)
		var open []*deadline
		for i := range 4 {
			d := begun(ds)
			open = append(open, d)
			d.AfterFunc(func() { ended <- fmt.Sprint("call ", i, " ", time.Since(began)) })
			time.Sleep(time.Second)
		}
		open[0].cancel()
		if stop := open[3].AfterFunc(func() { t.Error("called although it was stopped") }); !stop() || stop() {
			t.Error("a call is stopped once")
		}
		derived, cancel := context.WithCancel(open[2])
		defer cancel()
		for _, want := range []string{"call 0 4s", "call 1 11s", "call 2 12s", "call 3 13s"} {
			if got := <-ended; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		synctest.Wait()
		for i, d := range open {
			want := context.DeadlineExceeded
			if i == 0 {
				want = context.Canceled
			}
			<-d.Done()
			if at, ok := d.Deadline(); !errors.Is(d.Err(), want) || !ok || at.Sub(began) != time.Duration(i+10)*time.Second {
				t.Errorf("request %d: %v, due by %v", i, d.Err(), at.Sub(began))
			}
		}
		if !errors.Is(derived.Err(), context.DeadlineExceeded) {
			t.Errorf("derived from an ended context: %v", derived.Err())
		}
		late := make(chan bool, 1)
		open[1].AfterFunc(func() { late <- true })
		<-late
	})
}

// The end of the stage ends its requests, including later ones.
func TestDeadlinesEndWithTheStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		ds := newDeadlines(parent, 0)
		defer ds.close()
		ended := make(chan int, 2)
		before := begun(ds)
		before.AfterFunc(func() { ended <- 0 })
		if _, ok := before.Deadline(); ok {
			t.Error("there is a deadline")
		}
		cancel()
		synctest.Wait()
		after := begun(ds)
		<-after.Done()
		if !errors.Is(before.Err(), context.Canceled) || !errors.Is(after.Err(), context.Canceled) {
			t.Errorf("%v, %v", before.Err(), after.Err())
		}
		<-ended
		<-before.Done()
	})
}
