package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/metric"
)

// server writes the metrics of the server, from its answers and from its metrics
// endpoint. It writes nothing if the server reports nothing.
func (p *printer) server(s *metric.Summary) {
	reported := slices.ContainsFunc(metric.ServerSide, func(m *metric.Metric) bool { return s.Dist(m).Stats != nil })
	if !reported && len(s.Instruments) == 0 {
		return
	}
	if p.brief && s.EnergyPerToken() == nil && !slices.ContainsFunc(s.Instruments, read) {
		return
	}
	p.section("Server Metrics")
	for _, m := range metric.ServerSide {
		if s.Dist(m).Stats != nil {
			p.detail(m.Title+" p50/p99/max (ms):", spread(s, m))
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

// read reports whether there are enough readings of a metrics page for a line, or if reading the page failed.
func read(in metric.Instruments) bool {
	known := func(g *metric.Gauge) bool { return g != nil && g.Mean != nil }
	counted := func(v *float64) bool { return v != nil && *v > 0 }
	return known(in.Running) || known(in.Queued) || known(in.KVShare) || known(in.GPUShare) || known(in.PowerWatts) ||
		counted(in.PrefixHitShare) || counted(in.Preemptions) || in.Failed > 0
}

func (p *printer) instruments(s *metric.Summary, in *metric.Instruments) {
	p.gauge("Requests running mean/max:", in.Running, 1)
	p.gauge("Requests queued mean/max:", in.Queued, 1)
	p.gauge("KV cache in use mean/max (%):", in.KVShare, 100)
	if v := in.PrefixHitShare; v != nil && (*v > 0 || !p.brief) {
		p.fact("Prefix cache hits (% of prompt tokens):", share(in.PrefixHitShare))
	}
	if v := in.Preemptions; v != nil && (*v > 0 || !p.brief) {
		p.fact("Preemptions:", strconv.FormatFloat(*in.Preemptions, 'f', 0, 64))
	}
	for _, c := range []struct {
		name  string
		count *float64
	}{{"Requests rejected by the server:", in.Rejected}, {"Corrupted requests (NaN in logits):", in.Corrupted}} {
		if c.count != nil && *c.count > 0 {
			p.fact(c.name, strconv.FormatFloat(*c.count, 'f', 0, 64))
		}
	}
	p.serverClient(s, "Mean TTFT server/client (ms):", in.Target, in.TTFTMillis, metric.TTFT)
	p.serverClient(s, "Mean TPOT server/client (ms):", in.Target, in.TPOTMillis, metric.TPOT)
	p.serverClient(s, "Mean E2EL server/client (ms):", in.Target, in.E2ELMillis, metric.E2EL)
	if in.QueueMillis != nil {
		p.detail("Mean server queue time (ms):", fixed(in.QueueMillis))
	}
	for _, f := range metric.Figures {
		if v, known := in.More[f.Name]; known {
			p.detail(f.Title+unitOf(f)+":", metric.Brief(v))
		}
	}
	p.gauge("GPU utilization mean/max (%):", in.GPUShare, 100)
	p.gauge("GPU power mean/max (W):", in.PowerWatts, 1)
	scrapes := strconv.Itoa(in.Scrapes)
	if in.Failed > 0 {
		scrapes += fmt.Sprintf(", %d failed (%s)", in.Failed, safe(in.Problem))
	}
	if !p.brief || in.Failed > 0 {
		p.fact("Scrapes of the metrics endpoint:", scrapes)
	}
}

// unitOf returns the unit of a figure for its label, unless the title contains it.
func unitOf(f *metric.Figure) string {
	if f.Unit == metric.Share || f.Unit == metric.Count || f.Unit == metric.TokenCount {
		return ""
	}
	return " (" + string(f.Unit) + ")"
}

// serverClient writes a mean of the server next to the mean of the client.
func (p *printer) serverClient(s *metric.Summary, label, target string, server *float64, m *metric.Metric) {
	if server == nil {
		return
	}
	client := notMeasured
	if stats := s.At(target, m).Stats; stats != nil {
		client = fixed(&stats.Mean)
	}
	p.detail(label, fixed(server)+" / "+client)
}

func (p *printer) gauge(label string, g *metric.Gauge, scale float64) {
	switch {
	case g == nil:
	case g.Mean == nil:
		p.fact(label, notMeasured)
	default:
		mean, most := scale**g.Mean, scale**g.Max
		p.fact(label, fixed(&mean)+" / "+fixed(&most))
	}
}

// endpoints writes a line for each server if there are several.
func (p *printer) endpoints(s *metric.Summary) {
	if len(s.Endpoints) == 0 {
		return
	}
	p.section("By Endpoint")
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

// finishes writes the finish reasons of answers.
func (p *printer) finishes(list []metric.FinishCount) {
	var words []string
	for _, f := range list {
		reason := f.Reason
		if reason == "" {
			reason = "unknown"
		}
		words = append(words, fmt.Sprintf("%s (%d)", safe(reason), f.Requests))
	}
	if expected := len(list) == 1 && (list[0].Reason == "length" || list[0].Reason == "stop"); p.brief && expected {
		return
	}
	if len(list) > 1 || len(list) == 1 && list[0].Reason != "" {
		p.fact("Finish reasons (requests):", strings.Join(words, ", "))
	}
}
