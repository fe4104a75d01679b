package tacho_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tacho"
)

// Records that share steps are written as each alone is, in whatever order they come.
func TestEncoderSharesSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	steps := make([][]time.Duration, 2)
	for i := range steps {
		at := time.Duration(1)
		for range 20_000 {
			at += time.Duration(rng.Int64N(1 << rng.IntN(34)))
			steps[i] = append(steps[i], at)
		}
	}
	var e tacho.Encoder
	for n := range 2000 {
		of := rng.IntN(2)
		first, length := (n*9)%19_000, 1+rng.IntN(300)
		r := tacho.Record{Session: uint64(n), Endpoint: fmt.Sprint(of), Timeline: tacho.NewTimeline(0)}
		r.Clock = tacho.VirtualClock
		for range rng.IntN(3) {
			r.Events = append(r.Events, tacho.Event{At: steps[of][first] - 1, Tokens: int16(rng.IntN(3))})
		}
		r.Steps = tacho.Steps{Of: &steps[of][0], First: first, Event: len(r.Events)}
		for _, at := range steps[of][first : first+length] {
			r.Events = append(r.Events, tacho.Event{At: at, Tokens: 1})
		}
		if n%7 == 0 {
			r.Failure = &tacho.Failure{Cause: tacho.Reset}
		}
		if n%11 == 0 {
			r.ID = `"`
		}
		want, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Append([]byte("before "), &r)
		if err != nil || string(got) != "before "+string(want) {
			t.Fatalf("%v: %s\nwant %s", err, got, want)
		}
	}
}
