package compare

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// stretches is the number of parts of a run. Each part must be long compared with the time in which
// requests are correlated, and there must be enough parts to estimate their variance.
const (
	stretches      = 20
	fewestRequests = 2 * stretches
)

// A single is the only run of a side, cut into stretches.
type single struct {
	level    *outcome.Level
	requests int
	begins   [stretches]position // the first request of each stretch
	span     time.Duration       // until the last answer
	first    time.Duration       // sum of the times to first token
	whole    time.Duration       // sum of the latencies
	work     uint64              // hash of the lengths of all requests
	sent     []time.Duration     // due times in order
	answers  []answer            // in the order of their ends
	meters   map[string]*meter   // by quantity
}

// A position orders requests by their send time. If two runs sent the same work, the same stretch of
// both runs has the same requests.
type position struct {
	at      time.Duration
	session uint64
	turn    int
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.at, o.at), cmp.Compare(p.session, o.session), cmp.Compare(p.turn, o.turn))
}

// An answer is a successful request with its tokens.
type answer struct {
	end           time.Duration
	input, output int
}

// newSingle cuts a run and measures quantities in each stretch.
func newSingle(l *outcome.Level, quantities []metric.Quantity) (*single, error) {
	s := &single{level: l, meters: map[string]*meter{}}
	if l.Records == nil {
		return s, nil
	}
	if err := s.cut(); err != nil || s.requests < fewestRequests {
		return s, err
	}
	for _, q := range quantities {
		s.meters[q.Name] = newMeter(q)
	}
	for r, err := range l.Records() {
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		for _, m := range s.meters {
			m.add(r, s)
		}
	}
	for _, m := range s.meters {
		m.serve(s)
	}
	return s, nil
}

var workSeed = maphash.MakeSeed()

// cut finds the starts of stretches with equal numbers of requests.
func (s *single) cut() error {
	var all []position
	for r, err := range s.level.Records() {
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		all = append(all, positionOf(r))
		s.span = max(s.span, r.End)
		s.work += maphash.Comparable(workSeed, [...]int{int(r.Session), r.Turn, r.Input, r.Asked}) // a sum, so that order does not matter
		s.sent = append(s.sent, r.Due)
		if r.OK() {
			s.whole += r.End - positionOf(r).at
			s.first += max(r.First()-positionOf(r).at, 0)
			s.answers = append(s.answers, answer{r.End, metric.InputTokens(r), r.Output})
		}
	}
	s.requests = len(all)
	slices.SortFunc(all, position.compare)
	slices.Sort(s.sent)
	slices.SortFunc(s.answers, func(a, b answer) int { return cmp.Compare(a.end, b.end) })
	for i := range s.begins {
		if len(all) > 0 {
			s.begins[i] = all[i*len(all)/stretches]
		}
	}
	return nil
}

func positionOf(r *tacho.Record) position {
	at := r.Sent
	if at == tacho.Never {
		at = r.Due
	}
	return position{at, r.Session, r.Turn}
}

// bySent returns the stretch in which a request was sent.
func (s *single) bySent(r *tacho.Record) int {
	i, found := slices.BinarySearchFunc(s.begins[:], positionOf(r), position.compare)
	if !found {
		i--
	}
	return max(i, 0)
}

// generations returns the length of the run relative to the part of a request that a metric measures.
// Requests measured at the same time share the steps of the engine, so there are no more independent
// stretches than generations.
func (s *single) generations(m *metric.Metric) float64 {
	each := s.whole
	switch m {
	case nil:
		return stretches
	case metric.TTFT:
		each = s.first
	case metric.TPOT, metric.ITL, metric.TokenGap:
		each = s.whole - s.first
	}
	if each <= 0 {
		return stretches
	}
	return float64(s.span) * float64(len(s.answers)) / float64(each)
}

// paced reports whether a schedule, and not the answers, determines the send times.
func (s *single) paced() bool { return s.level.Rate > 0 }

// burst reports whether all requests were sent together, so that they share the state of the server.
func (s *single) burst() bool {
	return s.level.Rate <= 0 && (s.level.Concurrency <= 0 || s.requests <= s.level.Concurrency)
}

// untestable returns why two runs cannot be tested, or "" if they can.
func (s *single) untestable(o *single) string {
	switch {
	case s.level.Records == nil || o.level.Records == nil:
		return noRequests
	case s.requests < fewestRequests || o.requests < fewestRequests:
		return fmt.Sprintf("too few requests: a test needs %d in each run", fewestRequests)
	case s.burst() && s.work != o.work:
		return oneBurst
	}
	return ""
}

// Two runs of one server differ by more than their requests show: by GPU clocks, memory placement and
// neighbours. No test claims to know a run better than runSpread, the standard deviation of its
// logarithm. The requests of a burst wait for each other and share one state of the server: a single
// slow step delays all of them.
const (
	runSpread   = 0.005
	burstSpread = 0.05
)

// floor returns the variance of the logarithm of a ratio that requests do not show.
func (s *single) floor(o *single) float64 {
	if s.burst() || o.burst() {
		return 2 * burstSpread * burstSpread
	}
	return 2 * runSpread * runSpread
}
