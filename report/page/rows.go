package page

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"tacho"
	"tacho/metric"
)

// A row is one request of the timeline. Its times are in hundredths of a
// millisecond.
type row struct {
	sent                  int64 // from the level's start
	due                   int64 // before sent
	head, first, last     int64 // after sent; -1 is never
	end                   int64 // after sent
	input, output, events int
	gaps                  string
	failure               string // empty is success
	at                    int    // its place among the records, which sampling goes by
}

// rows are those of a level. There may be so many that to have each encoded by itself
// would be most of the work of a page.
type rows []row

// MarshalJSON implements json.Marshaler.
func (rs rows) MarshalJSON() (b []byte, err error) {
	b = append(b, '[')
	for i := range rs {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = rs[i].appendTo(b); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendTo appends a row as a list of its values.
func (r *row) appendTo(b []byte) ([]byte, error) {
	b = append(b, '[')
	for _, n := range [...]int64{r.sent, r.due, r.head, r.first, r.last, r.end, int64(r.input), int64(r.output), int64(r.events)} {
		b = append(strconv.AppendInt(b, n, 10), ',')
	}
	texts := []string{r.gaps, r.failure}
	if r.failure == "" {
		texts = texts[:1]
	}
	for i, text := range texts {
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quoted...)
	}
	return append(b, ']'), nil
}

// size is about how many bytes a row takes.
func (r *row) size() int { return 56 + len(r.gaps) + len(r.failure) }

func newRow(r *tacho.Record, at int) row {
	const unit = 10 * time.Microsecond
	sent := sentAt(r)
	after := func(t time.Duration) int64 {
		if t == tacho.Never {
			return -1
		}
		return int64((t - sent).Round(unit) / unit)
	}
	out := row{
		sent: int64(sent.Round(unit) / unit), due: -after(r.Due), head: after(r.Head), first: after(r.First()), last: after(r.Last()), end: after(r.End),
		input: metric.InputTokens(r), output: r.Output, events: len(r.Events), gaps: code.encode(r.Events), at: at,
	}
	if r.Due == tacho.Never || out.due < 0 {
		out.due = 0
	}
	if !r.OK() {
		out.failure = clipAt(r.Failure.Error(), 160)
	}
	return out
}

const mostFailures = 1000 // rows of failed requests beyond the sample; all failures are counted by time

// A rowKeeper keeps rows within a budget of bytes. Where not all have room, it
// keeps one in 2, 4, 8 ... by their order, and beside these the failed ones and
// the slowest of each piece of time.
type rowKeeper struct {
	budget, stride int
	n, size        int
	rows           []row
	failed         []row
	worst          []worst
}

// A worst is the slowest requests of a piece of time: by the whole, and to the
// first token.
type worst struct {
	whole, first time.Duration
	rows         [2]row
}

// add takes a record in that was sent in a piece of time. Coding its gaps costs
// something, so that a row is made only of what is kept.
func (k *rowKeeper) add(r *tacho.Record, bin int) {
	at, w, sent := k.n, &k.worst[bin], sentAt(r)
	k.n++
	longest := r.OK() && r.End-sent > w.whole
	latest := r.OK() && len(r.Events) > 0 && r.First()-sent > w.first
	sampled := at%k.stride == 0
	failed := !r.OK() && len(k.failed) < mostFailures
	if !longest && !latest && !sampled && !failed {
		return
	}
	one := newRow(r, at)
	if longest {
		w.whole, w.rows[0] = r.End-sent, one
	}
	if latest {
		w.first, w.rows[1] = r.First()-sent, one
	}
	switch {
	case sampled:
		k.keep(one)
	case failed:
		k.failed = append(k.failed, one)
	}
}

// keep adds to the sample, and thins it where it has become too long.
func (k *rowKeeper) keep(r row) {
	k.rows = append(k.rows, r)
	for k.size += r.size(); k.size > k.budget && len(k.rows) > 1; {
		k.stride *= 2
		k.size = 0
		k.rows = slices.DeleteFunc(k.rows, func(r row) bool {
			if r.at%k.stride == 0 {
				k.size += r.size()
				return false
			}
			if r.failure != "" && len(k.failed) < mostFailures {
				k.failed = append(k.failed, r)
			}
			return true
		})
	}
}

// list is all that was kept, in order of sending.
func (k *rowKeeper) list() rows {
	all := slices.Concat(rows{}, k.rows)
	if k.stride > 1 {
		all = append(all, k.failed...)
		for _, w := range k.worst {
			for _, r := range w.rows {
				if r.end > 0 { // or there is none
					all = append(all, r)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b row) int { return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.at, b.at)) })
	return slices.CompactFunc(all, func(a, b row) bool { return a.at == b.at })
}
