package metric

import (
	"fmt"
	"slices"
)

// Unsent counts the requests of a level that were planned and never sent. A session that never began
// counts with the mean number of turns of the sessions that did.
type Unsent struct {
	Planned int  // sent or not
	Due     int  // due before the sending ended: no slot was free, or their agent was lost
	Cut     int  // left out because the user ended the level, or the run was interrupted
	Turns   int  // of conversations in which an earlier turn failed
	Unknown bool // the level ended before its plan did, and the plan has no number of requests
}

// Unsent counts the requests that were never sent.
func (s *Summary) Unsent() Unsent {
	c, turns := &s.Config, 1.0
	var inBegun, refused int
	if s.Sessions != nil {
		inBegun, refused = s.Sessions.Unsent, s.Sessions.Refused
		turns = float64(s.Requests+inBegun) / float64(max(s.Begun, 1))
	}
	if c.Interrupted {
		refused = 0 // turns in flight were canceled, and did not fail
	}
	early := c.Interrupted || c.EndedEarlyS > 0
	u := Unsent{Due: requestsIn(c.Unsent, turns), Turns: refused, Unknown: early && c.Planned == 0 || s.Verdict.Severity == Unjudged}
	if early && c.Planned > 0 {
		u.Cut = requestsIn(max(c.Planned-s.Begun-c.Unsent, 0), turns) + inBegun - refused
	}
	u.Planned = s.Requests + u.Total()
	return u
}

// requestsIn returns the number of requests in sessions.
func requestsIn(sessions int, turns float64) int { return int(float64(sessions)*turns + 0.5) }

// Total returns the number of requests that were never sent.
func (u Unsent) Total() int { return u.Due + u.Cut + u.Turns }

// share returns the share of the planned requests that were never sent, or false if it is unknown.
func (u Unsent) share() (float64, bool) {
	if u.Unknown {
		return 0, false
	}
	return ratio(u.Total(), u.Planned)
}

// leftOut continues a sentence about a level that ended before its plan did.
func (u Unsent) leftOut() string {
	if u.Cut == 0 {
		return ""
	}
	share, _ := ratio(u.Cut, u.Planned)
	return fmt.Sprintf(", and %d of %d planned requests were never sent (%s)", u.Cut, u.Planned, Percent(share))
}

var endedEarlyRule = Rule{
	Code: "ended-early", Unit: "share", Note: -1, Degraded: 0, Invalid: never,
	Action: "run it again in full",
	Doc:    "if the user ended the level: planned requests that were left out / all planned requests",
	value: func(s *Summary) (float64, bool) {
		u := s.Unsent()
		share, _ := ratio(u.Cut, u.Planned)
		return share, s.Config.EndedEarlyS > 0
	},
	text: func(s *Summary, _ float64) string {
		return fmt.Sprintf("the user ended this level after %s%s", Duration(1e3*s.Config.EndedEarlyS), s.Unsent().leftOut())
	},
}

var unsentRule = Rule{
	Code: "unsent", Unit: "share", Note: never, Degraded: 0, Invalid: 0.05,
	Action: "raise --max-concurrency, lower the rate, or replace lost agents",
	Doc:    "requests due before the sending ended but never sent / all requests due. Latencies from due leave out the longest waits",
	value: func(s *Summary) (float64, bool) {
		u := s.Unsent()
		return ratio(u.Due, u.Due+s.Requests)
	},
	text: func(s *Summary, v float64) string {
		u := s.Unsent()
		known := ""
		if slices.ContainsFunc(s.Config.Agents, func(a Agent) bool { return a.Continued }) {
			known = ", as far as is known"
		}
		return fmt.Sprintf("%d of %d due requests were never sent%s (%s)", u.Due, u.Due+s.Requests, known, Percent(v))
	},
}

var turnsRule = Rule{
	Code: "turns", Unit: "share", Note: never, Degraded: 0, Invalid: never,
	Action: "fix the failures and measure again",
	Doc:    "turns never sent because an earlier turn of their conversation failed / all planned requests. Later turns have longer prompts",
	value: func(s *Summary) (float64, bool) {
		u := s.Unsent()
		return ratio(u.Turns, u.Planned)
	},
	text: func(s *Summary, v float64) string {
		u := s.Unsent()
		return fmt.Sprintf("%d of %d planned turns were never sent (%s) after a failed turn of their conversation", u.Turns, u.Planned, Percent(v))
	},
}
