package predict

import (
	"cmp"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/stat"
)

// An intake is the burst at the beginning of a level, with the times when its
// requests were accepted. An API process divides the work on a request into tasks,
// and runs the first tasks of all requests before the last task of any.
type intake struct {
	n           int
	prompt      float64 // mean tokens
	first, last float64 // ms after sending
}

const (
	smallestIntake = 16
	sentTogether   = 5 * time.Millisecond // from one request of a burst to the next
)

// intake returns the intake of a level; n is 0 if the level does not begin with a
// burst.
func (w *watcher) intake() (in intake) {
	lives := slices.Clone(w.lives)
	slices.SortFunc(lives, func(a, b answerTimes) int { return cmp.Compare(a.sent, b.sent) })
	first, last := time.Duration(-1), time.Duration(0)
	for i, l := range lives {
		if i > 0 && l.sent > lives[i-1].sent+sentTogether {
			break
		}
		if l.head < 0 {
			return intake{}
		}
		if first < 0 || l.head < first {
			first = l.head
		}
		last = max(last, l.head)
		in.n++
		in.prompt += float64(l.prompt)
	}
	if in.n < smallestIntake {
		return intake{}
	}
	in.prompt /= float64(in.n)
	in.first, in.last = inMs(first-lives[0].sent), inMs(last-lives[0].sent)
	return in
}

// fewestIntakes is the minimum number of intakes for an estimate.
const fewestIntakes = 3

// readIntakes estimates the work of an API process on a request: the last task, and
// the work before it.
func readIntakes(p *step.Profile, levels []*MeasuredLevel, sigmas map[string]float64) {
	if p.API.RequestMs == 0 || p.API.SubmitMs == 0 {
		return
	}
	var before, submit []float64
	for _, s := range levels {
		if in := s.intake; in.n > 0 && in.first > leastHead {
			ms := (in.first-p.API.LatencyMs-p.API.HandOverMs)/float64(in.n) - p.API.RequestPerTokenUs*in.prompt/1e3
			before, submit = append(before, ms), append(submit, (in.last-in.first)/float64(in.n-1))
		}
	}
	if len(before) < fewestIntakes {
		return
	}
	b, s := stat.New(before).Quantile(0.5), stat.New(submit).Quantile(0.5)
	if b > 0 && s > 0 {
		p.API.RequestMs, p.API.SubmitMs = b, s
		sigmas["api.request_ms"], sigmas["api.submit_ms"] = launchSigma, launchSigma
	}
}
