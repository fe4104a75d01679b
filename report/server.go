package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tacho/metric"
)

// server writes what the server says of itself: with each answer, and on its
// metrics page. Where it says nothing, nothing is written.
func (p printer) server(s *metric.Summary) {
	told := slices.ContainsFunc(metric.ServerSide, func(m *metric.Metric) bool { return s.Dist(m).Stats != nil })
	if !told && len(s.Instruments) == 0 {
		return
	}
	p.line(centre("As the Server Has It", "-", blockWidth))
	for _, m := range metric.ServerSide {
		if s.Dist(m).Stats != nil {
			p.fact(m.Title+" p50/p99/max (ms):", spread(s, m))
		}
	}
	for i := range s.Instruments {
		in := &s.Instruments[i]
		if len(s.Instruments) > 1 {
			p.line(safe(in.Target) + ":")
		}
		p.instruments(s, in)
	}
	if e := s.EnergyPerToken(); e != nil {
		p.fact("Energy per output token (J):", fixed(e))
	}
}

func (p printer) instruments(s *metric.Summary, in *metric.Instruments) {
	p.gauge("Requests running mean/max:", in.Running, 1)
	p.gauge("Requests queued mean/max:", in.Queued, 1)
	p.gauge("KV cache in use mean/max (%):", in.KVShare, 100)
	if in.PrefixHitShare != nil {
		p.fact("Prompt tokens found in a cache (%):", share(in.PrefixHitShare))
	}
	if in.Preemptions != nil {
		p.fact("Preemptions:", strconv.FormatFloat(*in.Preemptions, 'f', 0, 64))
	}
	p.beside(s, "Mean TTFT by server/by us (ms):", in.Target, in.TTFTMillis, metric.TTFT)
	p.beside(s, "Mean TPOT by server/by us (ms):", in.Target, in.TPOTMillis, metric.TPOT)
	p.beside(s, "Mean E2EL by server/by us (ms):", in.Target, in.E2ELMillis, metric.E2EL)
	if in.QueueMillis != nil {
		p.fact("Mean wait in the server's queue (ms):", fixed(in.QueueMillis))
	}
	p.gauge("GPUs busy mean/max (%):", in.GPUShare, 100)
	p.gauge("GPU power mean/max (W):", in.PowerWatts, 1)
	scrapes := strconv.Itoa(in.Scrapes)
	if in.Failed > 0 {
		scrapes += fmt.Sprintf(", and %d that failed: %s", in.Failed, safe(in.Problem))
	}
	p.fact("Readings of the metrics page:", scrapes)
}

// beside sets a mean of the server's next to our own.
func (p printer) beside(s *metric.Summary, label, target string, theirs *float64, m *metric.Metric) {
	if theirs == nil {
		return
	}
	ours := notMeasured
	if stats := s.At(target, m).Stats; stats != nil {
		ours = fixed(&stats.Mean)
	}
	p.fact(label, fixed(theirs)+" / "+ours)
}

func (p printer) gauge(label string, g *metric.Gauge, scale float64) {
	switch {
	case g == nil:
	case g.Mean == nil:
		p.fact(label, notMeasured)
	default:
		mean, most := scale**g.Mean, scale**g.Max
		p.fact(label, fixed(&mean)+" / "+fixed(&most))
	}
}

// endpoints writes a line for each of several servers.
func (p printer) endpoints(s *metric.Summary) {
	if len(s.Endpoints) == 0 {
		return
	}
	p.line(centre("By Endpoint", "-", blockWidth))
	table := [][]string{{"ok", "failed", "out tokens", "mean TTFT", "p99 TTFT", "mean TPOT", "mean E2EL", "endpoint"}}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		table = append(table, []string{
			strconv.Itoa(e.Completed), strconv.Itoa(e.Failed), strconv.Itoa(e.OutputTokens),
			ofGroup(e.Dist(metric.TTFT), mean), ofGroup(e.Dist(metric.TTFT), p99),
			ofGroup(e.Dist(metric.TPOT), mean), ofGroup(e.Dist(metric.E2EL), mean), safe(e.Endpoint),
		})
	}
	p.table(table)
}

// finishes writes why answers ended.
func (p printer) finishes(list []metric.FinishCount) {
	var words []string
	for _, f := range list {
		reason := f.Reason
		if reason == "" {
			reason = "untold"
		}
		words = append(words, fmt.Sprintf("%s (%d)", safe(reason), f.Requests))
	}
	if len(list) > 1 || len(list) == 1 && list[0].Reason != "" {
		p.fact("Answers ended by (requests):", strings.Join(words, ", "))
	}
}
