package page

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/internal/instrument"
)

// A picture is the data that a page draws of the requests of a level.
type picture struct {
	Curves  map[string]*curve  `json:"curves"` // by metric
	Bins    bins               `json:"bins"`
	Server  map[string]*series `json:"server,omitempty"`    // by quantity of the metrics endpoints
	Lengths []lengthBand       `json:"by_length,omitempty"` // TTFT by the length of the prompt, if the length varies
	Rows    rows               `json:"rows"`                // in order of sending
	Details *details           `json:"details,omitempty"`
	Every   int                `json:"every"` // the timeline shows one in Every requests, plus failed and slow ones; 1: all, 0: none
}

// A curve is the distribution of one metric over all requests.
type curve struct {
	Values []float64 `json:"values"` // ms, at the page's shares, then the maximum
	Exact  bool      `json:"exact"`
	From   int       `json:"from"`   // first bin of the histogram, which starts at 10^(From/16) ms
	Counts []int     `json:"counts"` // 16 bins per decade
}

// bins are time series in bins of equal width.
type bins struct {
	WidthS float64     `json:"width_s"`
	Asked  []float64   `json:"asked"`  // requests due per second
	Served []float64   `json:"served"` // successful requests per second
	Failed []int       `json:"failed"` // failed requests
	Tokens []float64   `json:"tokens"` // output tokens received per second
	Flight []float64   `json:"flight"` // requests in flight, mean
	TTFT   [][]float64 `json:"ttft"`   // min, p50, p95 and max in ms of the requests sent in the bin; null if none
	ITL    [][]float64 `json:"itl"`    // min, p50, p99 and max in ms of the gaps that ended in the bin; null if none
	Lag    [][]float64 `json:"lag"`    // min, p50, p99 and max send lag in ms of the requests due in the bin; null if none
}

// A series is the readings of one quantity of the metrics endpoints. If there are too
// many readings, a point is the minimum and the maximum of several.
type series struct {
	T    []float64 `json:"t"` // s
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
}

// A lengthBand is TTFT of prompts in a range of lengths.
type lengthBand struct {
	From float64   `json:"from"` // tokens
	To   float64   `json:"to"`
	N    int       `json:"n"`
	TTFT []float64 `json:"ttft"` // min, p50, p95 and max in ms
}

// cutRows removes the timeline.
func (p *picture) cutRows() {
	if p != nil {
		p.Rows, p.Details, p.Every = rows{}, nil, 0
	}
}

// picture returns the collected data.
func (g *gatherer) picture() *picture {
	p := &picture{Curves: map[string]*curve{}, Server: readings(g.level.Samples, len(g.bins), g.width), Lengths: g.length.list(), Rows: g.rows.list(), Every: g.rows.stride}
	p.Details = p.Rows.details()
	for i, m := range curveMetrics {
		if c := g.curves[i].curve(); c != nil {
			p.Curves[m.Name] = c
		}
	}
	b, width := &p.Bins, g.width.Seconds()
	b.WidthS = width
	for i := range g.bins {
		from := &g.bins[i]
		b.Asked = append(b.Asked, brief(float64(from.asked)/width))
		b.Served = append(b.Served, brief(float64(from.served)/width))
		b.Failed = append(b.Failed, from.failed)
		b.Tokens = append(b.Tokens, brief(from.tokens/width))
		b.Flight = append(b.Flight, brief(from.flight.Seconds()/width))
		b.TTFT = append(b.TTFT, from.ttft.at(0.5, 0.95))
		b.ITL = append(b.ITL, from.itl.at(0.5, 0.99))
		b.Lag = append(b.Lag, from.lag.at(0.5, 0.99))
	}
	return p
}

// shownReadings are the drawn quantities of a metrics endpoint. If the value is true,
// the readings of several servers are added, otherwise the maximum counts.
var shownReadings = map[instrument.Quantity]bool{"running": true, "queued": true, "power_w": true, "kv_share": false, "gpu_share": false}

// readings returns the samples as series. Servers are read at different times, so each
// point combines the last reading of every server.
func readings(samples []instrument.Sample, most int, width time.Duration) map[string]*series {
	out := map[string]*series{}
	for quantity, adds := range shownReadings {
		last := map[string]float64{}
		var points []point
		for _, s := range slices.SortedStableFunc(slices.Values(samples), func(a, b instrument.Sample) int { return cmp.Compare(a.At, b.At) }) {
			v, known := s.Values[quantity]
			if !known {
				continue
			}
			last[s.Target] = v
			points = append(points, point{s.At, combined(last, adds)})
		}
		if len(points) > 0 {
			out[string(quantity)] = drawn(points, max(most, 24), width)
		}
	}
	return out
}

// combined returns the sum or the maximum over several servers.
func combined(values map[string]float64, add bool) float64 {
	sum, greatest := 0.0, math.Inf(-1)
	for _, target := range slices.Sorted(maps.Keys(values)) { // in a fixed order, because floating-point sums depend on it
		sum, greatest = sum+values[target], max(greatest, values[target])
	}
	if add {
		return sum
	}
	return greatest
}

type point struct {
	at time.Duration
	v  float64
}

// drawn returns the points, or the minimum and maximum of each bin if there are more
// than 2*most points.
func drawn(points []point, most int, width time.Duration) *series {
	s := &series{}
	bin := time.Duration(math.MinInt64)
	for _, p := range points {
		v := brief(p.v)
		if n := len(s.T) - 1; len(points) > 2*most && n >= 0 && p.at/width == bin {
			s.Low[n], s.High[n] = min(s.Low[n], v), max(s.High[n], v)
			continue
		}
		bin = p.at / width
		s.T, s.Low, s.High = append(s.T, brief(p.at.Seconds())), append(s.Low, v), append(s.High, v)
	}
	return s
}
