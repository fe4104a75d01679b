package page

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"tacho/instrument"
)

// A picture is what a page can show of the requests of a level.
type picture struct {
	Curves  map[string]*curve  `json:"curves"` // by metric
	Bins    bins               `json:"bins"`
	Server  map[string]*series `json:"server,omitempty"`    // by quantity of the metrics pages
	Lengths []lengthBand       `json:"by_length,omitempty"` // TTFT by the length of the prompt, where that varies
	Rows    rows               `json:"rows"`                // in order of sending
	Every   int                `json:"every"`               // the timeline has one in so many requests, and those that stand out; 1 is all, 0 none
}

// A curve is one metric over all requests.
type curve struct {
	Values []float64 `json:"values"` // ms, at the page's shares, and the greatest
	Exact  bool      `json:"exact"`
	From   int       `json:"from"`   // the histogram's first bin, from 10^(From/16) ms
	Counts []int     `json:"counts"` // by sixteenths of a decade
}

// bins are what happened in equal pieces of time.
type bins struct {
	WidthS float64     `json:"width_s"`
	Asked  []float64   `json:"asked"`  // requests due, a second
	Served []float64   `json:"served"` // requests that ended well, a second
	Failed []int       `json:"failed"` // requests that ended badly
	Tokens []float64   `json:"tokens"` // output tokens received, a second
	Flight []float64   `json:"flight"` // requests in flight, mean
	TTFT   [][]float64 `json:"ttft"`   // least, p50, p95, greatest of the requests sent then, ms; null is none
	ITL    [][]float64 `json:"itl"`    // least, p50, p99, greatest of the gaps that ended then, ms; null is none
	Lag    [][]float64 `json:"lag"`    // least, p50, p99, greatest of what the client added to requests due then, ms; null is none
}

// A series is what metrics pages said of one quantity. Where readings were too
// many, a point is the least and the greatest of several.
type series struct {
	T    []float64 `json:"t"` // s
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
}

// A lengthBand is TTFT of the prompts of about one length.
type lengthBand struct {
	From float64   `json:"from"` // tokens
	To   float64   `json:"to"`
	N    int       `json:"n"`
	TTFT []float64 `json:"ttft"` // least, p50, p95, greatest, ms
}

// cutRows leaves the timeline out.
func (p *picture) cutRows() {
	if p != nil {
		p.Rows, p.Every = rows{}, 0
	}
}

// picture is what was gathered.
func (g *gatherer) picture() *picture {
	p := &picture{Curves: map[string]*curve{}, Server: readings(g.level.Samples, len(g.bins), g.width), Lengths: g.length.list(), Rows: g.rows.list(), Every: g.rows.stride}
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

// shownReadings are the quantities of a metrics page that are drawn, and
// whether those of several servers are added up; else the greatest counts.
var shownReadings = map[instrument.Quantity]bool{"running": true, "queued": true, "power_w": true, "kv_share": false, "gpu_share": false}

// readings are the samples as series. A server is read at moments of its own: of
// several, the last reading of each counts.
func readings(samples []instrument.Sample, most int, width time.Duration) map[string]*series {
	out := map[string]*series{}
	for quantity, adds := range shownReadings {
		last := map[string]float64{}
		var points []point
		for _, s := range slices.SortedStableFunc(slices.Values(samples), func(a, b instrument.Sample) int { return cmp.Compare(a.At, b.At) }) {
			v, told := s.Values[quantity]
			if !told {
				continue
			}
			last[s.Target] = v
			points = append(points, point{s.At, together(last, adds)})
		}
		if len(points) > 0 {
			out[string(quantity)] = drawn(points, max(most, 24), width)
		}
	}
	return out
}

// together is what several servers come to.
func together(values map[string]float64, add bool) float64 {
	sum, greatest := 0.0, math.Inf(-1)
	for _, target := range slices.Sorted(maps.Keys(values)) { // sums depend on the order
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

// drawn are points, or the least and the greatest of those in each bin where
// there are more than most.
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
