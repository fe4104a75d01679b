package cluster

import (
	"strings"
	"testing"

	"tacho"
)

// Whoever takes a share over begins no session again: those that were under way
// are told of, those that came to their end or failed are not.
func TestSessionsThatWereCutOff(t *testing.T) {
	s := share{n: 1, by: &member{}, lost: "it is gone", taker: "other"}
	turn := func(session uint64, turns int, failed bool) {
		r := record(int(session))
		r.Turns = turns
		if failed {
			r.Failure = &tacho.Failure{Cause: "timeout"}
		}
		s.count(r)
	}
	turn(1, 0, false)
	turn(2, 2, false)
	turn(2, 2, false)
	turn(3, 3, true)
	if got := s.missing(); got != "" || len(s.reasons()) != 1 {
		t.Errorf("all are over, and it says %q, %v", got, s.reasons())
	}
	turn(4, 3, false)
	turn(4, 3, false)
	turn(5, 2, false)
	if got := s.missing(); !strings.HasPrefix(got, "2 sessions") {
		t.Errorf("it says %q", got)
	}
	if all := s.reasons(); len(all) != 2 || all[1].Code != "agent-sessions" {
		t.Errorf("%v", all)
	}
}
