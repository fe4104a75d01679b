// Package instrument reads the metrics pages of servers while a stage runs, on
// the stage's own time axis, and says what they came to. It runs beside the
// measurement and cannot fail it: a page that cannot be had is a gap in what is
// known of the server, and no more.
package instrument

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"tacho/internal/limit"
)

const (
	// maxPage bounds a page: the longest of real ones are some hundred kilobytes.
	maxPage = 16 << 20
	// patience is how long a page may take. A server under load is slow, but a
	// page that comes much later says nothing of the time it was asked for.
	patience = 5 * time.Second
	// briefPatience is the same before and after a stage, where the user waits.
	briefPatience = time.Second
)

// A Sample is what one page said, at a time of the stage.
type Sample struct {
	Target string               `json:"target"`
	At     time.Duration        `json:"at_ns"` // from the epoch of the stage; when the page was there
	Values map[Quantity]float64 `json:"values,omitempty"`
	Error  string               `json:"error,omitempty"` // why there are none
}

// A Target is a page to read.
type Target struct {
	URL    string
	Header http.Header // sent with every request
	// Optional is a page that may well not be there: if it cannot be had at
	// first, nothing is said and it is left out.
	Optional bool
}

// A Scraper reads pages until it is stopped.
type Scraper struct {
	client   *http.Client
	epoch    time.Time
	mu       sync.Mutex
	samples  []Sample
	stop     context.CancelFunc
	finished sync.WaitGroup
}

// Before reads the targets once and waits for them, though not for long: what
// counters say before a stage begins is where they count from. Targets that
// cannot be had are left out. The time of a sample is 0, the stage's beginning.
func Before(ctx context.Context, client *http.Client, targets []Target) []Sample {
	s := &Scraper{client: client}
	for _, t := range targets {
		s.finished.Go(func() { s.scrape(ctx, t, briefPatience, false) })
	}
	s.finished.Wait()
	for i := range s.samples {
		s.samples[i].At = 0
	}
	return s.samples
}

// Start begins to read the targets, at once and then once in each interval. It
// returns without waiting for any of them. What was read Before is part of it,
// and those targets are next read when the first interval is over.
func Start(ctx context.Context, client *http.Client, targets []Target, interval time.Duration, epoch time.Time, before []Sample) *Scraper {
	s := &Scraper{client: client, epoch: epoch, samples: slices.Clone(before)}
	ctx, s.stop = context.WithCancel(ctx)
	for _, t := range targets {
		had := slices.ContainsFunc(before, func(b Sample) bool { return b.Target == t.URL })
		s.finished.Go(func() { s.follow(ctx, t, interval, had) })
	}
	return s
}

// follow reads one page again and again, and once more when it is stopped: what
// a server counted in the end is known only then. Had says whether it could be
// read before.
func (s *Scraper) follow(ctx context.Context, t Target, interval time.Duration, had bool) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	if !had {
		had = s.scrape(ctx, t, patience, !t.Optional)
	}
	// An optional page may be missing only because the run was over before it came.
	for !t.Optional || had || ctx.Err() != nil {
		select {
		case <-ticks.C:
			had = s.scrape(ctx, t, patience, true) || had
		case <-ctx.Done():
			s.scrape(context.WithoutCancel(ctx), t, briefPatience, !t.Optional || had)
			return
		}
	}
}

// Stop reads every page a last time and returns all that was read, in order of
// time.
func (s *Scraper) Stop() []Sample {
	s.stop()
	s.finished.Wait()
	slices.SortStableFunc(s.samples, func(a, b Sample) int { return int(a.At - b.At) })
	return s.samples
}

// Gauges are what the pages say of a moment; nil is what none of them tells.
type Gauges struct {
	Running, Queued *float64 // requests, at all servers
	KVShare         *float64 // of the server that has most of it in use
}

// Now is what the pages said last.
func (s *Scraper) Now() (now Gauges) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for _, sample := range slices.Backward(s.samples) {
		if seen[sample.Target] || sample.Error != "" {
			continue
		}
		seen[sample.Target] = true
		plus := func(a, b float64) float64 { return a + b }
		now.Running = sample.joined(running, now.Running, plus)
		now.Queued = sample.joined(queued, now.Queued, plus)
		now.KVShare = sample.joined(kvShare, now.KVShare, math.Max)
	}
	return now
}

// joined is a value of the sample with that of others.
func (s *Sample) joined(q Quantity, others *float64, join func(a, b float64) float64) *float64 {
	v, told := s.Values[q]
	switch {
	case !told:
		return others
	case others == nil:
		return &v
	}
	return new(join(*others, v))
}

// scrape reads a page once and says whether it could. A failure is kept only if
// it is to be told.
func (s *Scraper) scrape(ctx context.Context, t Target, patience time.Duration, tell bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	values, err := fetch(ctx, s.client, t)
	if errors.Is(ctx.Err(), context.Canceled) {
		return false // it was stopped, and is about to be read a last time
	}
	if err != nil && !tell {
		return false
	}
	sample := Sample{Target: t.URL, At: time.Since(s.epoch), Values: values}
	if err != nil {
		sample.Error = limit.Clip(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, sample)
	return err == nil
}

// Probe reads a page once, and says whether there is anything to read.
func Probe(ctx context.Context, client *http.Client, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := fetch(ctx, client, t)
	return err
}

// errUnknown says that a page has nothing on it that we know.
var errUnknown = errors.New("a metrics page, but of no server that is known here")

func fetch(ctx context.Context, client *http.Client, t Target) (map[Quantity]float64, error) {
	page, err := get(ctx, client, t)
	if err != nil {
		return nil, err
	}
	values, err := read(page)
	if err == nil && len(values) == 0 {
		err = errUnknown
	}
	return values, err
}

func get(ctx context.Context, client *http.Client, t Target) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, t.Header)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it has been read, or given up
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxPage))
}
