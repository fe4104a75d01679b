package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// A row is one request of the timeline. Its times are in units of 10 µs.
type row struct {
	sent                  int64 // from the level's start
	due                   int64 // time before sent
	head, first, last     int64 // times after sent; -1 means never
	end                   int64 // time after sent
	input, output, events int
	gaps                  string
	failure               string // empty if the request succeeded
	at                    int    // index among the records, used for sampling

	name, class, answer string // see details
}

// rows are the rows of a level. They are encoded together, because encoding each row on
// its own would take most of the time to write a page.
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

// size returns the approximate size of a row in bytes.
func (r *row) size() int { return 64 + len(r.gaps) + len(r.failure) + len(r.answer) }

// details identify the requests of the rows. Their lists are in the order of the rows.
type details struct {
	Prefix  string         `json:"prefix,omitempty"`  // common prefix of all names
	Names   []string       `json:"names"`             // x-request-id, or session and turn, without Prefix
	Classes []string       `json:"classes,omitempty"` // distinct labels
	Class   []int          `json:"class,omitempty"`   // index in Classes
	Answers map[int]string `json:"answers,omitempty"` // generated texts by row, if the run keeps texts
}

// mostClasses is the maximum number of classes that the page can filter by.
const mostClasses = 24

// details returns the details of rows.
func (rs rows) details() *details {
	if len(rs) == 0 {
		return nil
	}
	d := &details{Prefix: rs[0].name, Answers: map[int]string{}}
	for i := range rs {
		for !strings.HasPrefix(rs[i].name, d.Prefix) {
			d.Prefix = d.Prefix[:len(d.Prefix)-1]
		}
		if at := slices.Index(d.Classes, rs[i].class); at < 0 && len(d.Classes) <= mostClasses {
			d.Classes = append(d.Classes, rs[i].class)
		}
		if rs[i].answer != "" {
			d.Answers[i] = rs[i].answer
		}
	}
	d.Prefix = d.Prefix[:strings.LastIndexAny(d.Prefix, "-_.:/")+1] // the numbers of requests stay whole
	if len(d.Classes) < 2 || len(d.Classes) > mostClasses {
		d.Classes = nil
	}
	for i := range rs {
		d.Names = append(d.Names, strings.TrimPrefix(rs[i].name, d.Prefix))
		if d.Classes != nil {
			d.Class = append(d.Class, slices.Index(d.Classes, rs[i].class))
		}
	}
	return d
}

// nameOf returns the x-request-id of a request, or its session and turn if it has none.
func nameOf(r *tacho.Record) string {
	switch {
	case r.ID != "":
		return clipAt(r.ID, mostName)
	case r.Turns > 1:
		return fmt.Sprintf("%d.%d", r.Session, r.Turn+1)
	}
	return strconv.FormatUint(r.Session, 10)
}

const mostName = 80 // characters of the name and of the class of a request

func classOf(labels tacho.Labels) string {
	var out []string
	for _, l := range labels {
		out = append(out, l.Key+" "+l.Value)
	}
	return clipAt(strings.Join(out, ", "), mostName)
}

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
		name: nameOf(r), class: classOf(r.Labels), answer: Clip(r.Text),
	}
	if r.Due == tacho.Never || out.due < 0 {
		out.due = 0
	}
	if !r.OK() {
		out.failure = clipAt(r.Failure.Error(), 160)
	}
	return out
}

const mostFailures = 1000 // rows of failed requests in addition to the sample; the time bins count all failures

// A rowSampler keeps rows within a budget of bytes. If not all rows fit, it keeps every
// second, fourth, eighth ... row, plus the failed requests and the slowest requests of
// each time bin.
type rowSampler struct {
	budget, stride int
	n, size        int
	rows           []row
	failed         []row
	worst          []worst
}

// A worst is the slowest requests of a time bin: by total latency, and by TTFT.
type worst struct {
	whole, first time.Duration
	rows         [2]row
}

// add adds a record that was sent in a bin. It encodes the gaps only if the row is kept,
// because encoding is expensive.
func (k *rowSampler) add(r *tacho.Record, bin int) {
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

// keep adds a row to the sample, and thins the sample if it exceeds the budget.
func (k *rowSampler) keep(r row) {
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

// list returns all kept rows in order of sending.
func (k *rowSampler) list() rows {
	all := slices.Concat(rows{}, k.rows)
	if k.stride > 1 {
		all = append(all, k.failed...)
		for _, w := range k.worst {
			for _, r := range w.rows {
				if r.end > 0 { // not an empty slot
					all = append(all, r)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b row) int { return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.at, b.at)) })
	return slices.CompactFunc(all, func(a, b row) bool { return a.at == b.at })
}
