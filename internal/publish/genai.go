package publish

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/metric"
)

// About describes a run.
type About struct {
	Labels    []exposition.Label // of the metric tacho_run
	Version   string             // of tacho
	Operation string             // gen_ai.operation.name
	Provider  string             // gen_ai.provider.name
	Model     string             // name of the model in requests
	Server    string             // URL of the server, if there is only one
}

// Bounds of the GenAI conventions, in seconds and in tokens. They are coarse: each bucket is twice or four times as
// wide as the one before.
var (
	durationBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBounds    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	ttftBounds     = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	tpotBounds     = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}
)

// An instrument is a histogram of the OpenTelemetry conventions for generative AI.
type instrument struct {
	name, unit, help string
	bounds           []float64
	token            string // gen_ai.token.type; empty for durations
	of               func(r *tacho.Record, emit func(float64))
}

// instruments are the metrics of the conventions that a client can measure. The metrics of the server are the client's
// view of them, with the network.
var instruments = []instrument{
	{"gen_ai.client.operation.duration", "s", "GenAI operation duration", durationBounds, "", duration},
	{"gen_ai.client.token.usage", "{token}", "Number of input and output tokens used", tokenBounds, "input", inputTokens},
	{"gen_ai.client.token.usage", "{token}", "Number of input and output tokens used", tokenBounds, "output", outputTokens},
	{"gen_ai.client.operation.time_to_first_chunk", "s", "Time from sending the request to the first token event", durationBounds, "", seconds(metric.TTFT)},
	{"gen_ai.client.operation.time_per_output_chunk", "s", "Time between two token events", durationBounds, "", seconds(metric.ITL)},
	{"gen_ai.server.time_to_first_token", "s", "Time to first token, as the client sees it", ttftBounds, "", seconds(metric.TTFT)},
	{"gen_ai.server.time_per_output_token", "s", "Time per output token after the first, as the client sees it", tpotBounds, "", seconds(metric.TPOT)},
}

// seconds returns a latency in seconds. Answers without tokens, such as embeddings, are not streamed and have only a
// duration.
func seconds(m *metric.Metric) func(r *tacho.Record, emit func(float64)) {
	return func(r *tacho.Record, emit func(float64)) {
		if r.Output > 0 {
			m.Of(r, func(ms float64) { emit(ms / 1e3) })
		}
	}
}

// duration is the end-to-end latency of a successful request, and the time until the failure of any other.
func duration(r *tacho.Record, emit func(float64)) {
	if r.OK() {
		metric.E2EL.Of(r, func(ms float64) { emit(ms / 1e3) })
		return
	}
	for _, from := range []time.Duration{r.Sent, r.Start, r.Slot} { // it may have failed before it was sent
		if from >= 0 && r.End >= from {
			emit((r.End - from).Seconds())
			return
		}
	}
}

func inputTokens(r *tacho.Record, emit func(float64)) {
	if n := promptTokens(r); r.OK() && n > 0 {
		emit(float64(n))
	}
}

func outputTokens(r *tacho.Record, emit func(float64)) {
	if r.OK() && r.Output > 0 {
		emit(float64(r.Output))
	}
}

// promptTokens returns the server's count, or the client's if the server reports none.
func promptTokens(r *tacho.Record) int {
	if r.Usage != nil {
		return cmp.Or(r.Usage.Prompt, r.Input)
	}
	return r.Input
}

// A series separates the requests of a level that have different attributes.
type series struct{ server, model, err string }

func (a *About) seriesOf(r *tacho.Record) series {
	s := series{cmp.Or(r.Endpoint, a.Server), a.Model, errorType(r.Failure)}
	for _, l := range r.Labels {
		if l.Key == "adapter" {
			s.model = l.Value
		}
	}
	return s
}

// errorType returns error.type: the HTTP status of the server, or the cause of the failure.
func errorType(f *tacho.Failure) string {
	switch {
	case f == nil:
		return ""
	case f.Cause == tacho.Status && f.Status != 0:
		return strconv.Itoa(f.Status)
	}
	return string(f.Cause)
}

// attributes returns the attributes of the conventions.
func (a *About) attributes(s series) []exposition.Attribute {
	out := []exposition.Attribute{{Key: "gen_ai.operation.name", Value: a.Operation}, {Key: "gen_ai.provider.name", Value: a.Provider}}
	if s.model != "" {
		out = append(out, exposition.Attribute{Key: "gen_ai.request.model", Value: s.model})
	}
	if host, port := hostPort(s.server); host != "" {
		out = append(out, exposition.Attribute{Key: "server.address", Value: host}, exposition.Attribute{Key: "server.port", Value: port})
	}
	if s.err != "" {
		out = append(out, exposition.Attribute{Key: "error.type", Value: s.err})
	}
	return out
}

// hostPort returns the host and the port of a URL.
func hostPort(server string) (host string, port int) {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return "", 0
	}
	if port, err = strconv.Atoi(u.Port()); err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return u.Hostname(), port
}

// genAI are the histograms of the conventions in one level.
type genAI map[series][]*histogram

func (g genAI) add(a *About, r *tacho.Record, exponential bool) {
	s := a.seriesOf(r)
	hists := g[s]
	if hists == nil {
		for i := range instruments {
			hists = append(hists, newHistogram(instruments[i].bounds, exponential))
		}
		g[s] = hists
	}
	for i := range instruments {
		instruments[i].of(r, hists[i].add)
	}
}

// conventions returns the metrics of the GenAI conventions.
func (b *Exporter) conventions() (out []exposition.Family) {
	for i := range instruments {
		in := &instruments[i]
		f := exposition.Family{Name: in.name, UCUM: in.unit, Help: in.help, Kind: exposition.Histogram}
		for _, l := range b.levels {
			f.Points = append(f.Points, b.points(l, i)...)
		}
		if n := len(out); n > 0 && out[n-1].Name == in.name {
			out[n-1].Points = append(out[n-1].Points, f.Points...)
			continue
		}
		out = append(out, f)
	}
	return out
}

// points returns the points of one instrument in a level.
func (b *Exporter) points(l *level, i int) (out []exposition.Point) {
	order := func(x, y series) int {
		return cmp.Or(strings.Compare(x.server, y.server), strings.Compare(x.model, y.model), strings.Compare(x.err, y.err))
	}
	for _, s := range slices.SortedFunc(maps.Keys(l.genAI), order) {
		h := l.genAI[s][i]
		if h.count == 0 {
			continue
		}
		p := h.point()
		p.Attributes = append(b.about.attributes(s), l.attributes()...)
		if token := instruments[i].token; token != "" {
			p.Attributes = append(p.Attributes, exposition.Attribute{Key: "gen_ai.token.type", Value: token})
		}
		out = append(out, p)
	}
	return out
}
