// Package instrument scrapes the metrics pages of servers during a stage, on the
// stage's time axis, and summarizes them. A failed scrape never fails the
// measurement; it only leaves a gap in the server's metrics.
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

	"github.com/tacho-bench/tacho/internal/limit"
)

const (
	// maxPage bounds the size of a page. The longest real pages have some hundred
	// kilobytes.
	maxPage = 16 << 20
	// timeout is the time limit for a page. A server under load is slow, but a page
	// that arrives much later does not describe the time of the request.
	timeout = 5 * time.Second
	// briefTimeout is the limit before and after a stage, while the user waits.
	briefTimeout = time.Second
)

// A Sample is the content of one page at a time of the stage.
type Sample struct {
	Target string               `json:"target"`
	At     time.Duration        `json:"at_ns"` // arrival of the page, from the epoch of the stage
	Values map[Quantity]float64 `json:"values,omitempty"`
	Error  string               `json:"error,omitempty"` // error message, if the page could not be read
}

// A Target is a page to read.
type Target struct {
	URL    string
	Header http.Header // sent with every request
	// Optional marks a page that may not exist. If the first read fails, the target
	// is dropped without an error.
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

// Before reads the targets once, with a short timeout, to get the start values of
// counters. Targets that cannot be read are left out. Samples have time 0, the
// beginning of the stage.
func Before(ctx context.Context, client *http.Client, targets []Target) []Sample {
	s := &Scraper{client: client}
	for _, t := range targets {
		s.finished.Go(func() { s.scrape(ctx, t, briefTimeout, false) })
	}
	s.finished.Wait()
	for i := range s.samples {
		s.samples[i].At = 0
	}
	return s.samples
}

// Start begins to read the targets, immediately and then once per interval, and
// returns without waiting. The samples of before are included, and their targets
// are next read after the first interval.
func Start(ctx context.Context, client *http.Client, targets []Target, interval time.Duration, epoch time.Time, before []Sample) *Scraper {
	s := &Scraper{client: client, epoch: epoch, samples: slices.Clone(before)}
	ctx, s.stop = context.WithCancel(ctx)
	for _, t := range targets {
		had := slices.ContainsFunc(before, func(b Sample) bool { return b.Target == t.URL })
		s.finished.Go(func() { s.follow(ctx, t, interval, had) })
	}
	return s
}

// follow reads one page repeatedly, and once more after the stop, because only then
// are the server's counters complete. had reports whether the page was read before.
func (s *Scraper) follow(ctx context.Context, t Target, interval time.Duration, had bool) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	if !had {
		had = s.scrape(ctx, t, timeout, !t.Optional)
	}
	// An optional page may be missing only because the run ended before the page
	// arrived.
	for !t.Optional || had || ctx.Err() != nil {
		select {
		case <-ticks.C:
			had = s.scrape(ctx, t, timeout, true) || had
		case <-ctx.Done():
			s.scrape(context.WithoutCancel(ctx), t, briefTimeout, !t.Optional || had)
			return
		}
	}
}

// Stop reads every page a last time and returns all samples in order of time.
func (s *Scraper) Stop() []Sample {
	s.stop()
	s.finished.Wait()
	slices.SortStableFunc(s.samples, func(a, b Sample) int { return int(a.At - b.At) })
	return s.samples
}

// Gauges are the current gauges of all pages; nil if no page contains the gauge.
type Gauges struct {
	Running, Queued *float64 // requests, at all servers
	KVShare         *float64 // of the server with the highest KV cache usage
	AgeS            *float64 // seconds since the oldest of the values was read
}

// Now returns the latest gauges.
func (s *Scraper) Now() (now Gauges) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	passed := time.Since(s.epoch)
	for _, sample := range slices.Backward(s.samples) {
		if seen[sample.Target] || sample.Error != "" {
			continue
		}
		seen[sample.Target] = true
		plus := func(a, b float64) float64 { return a + b }
		now.Running = sample.joined(running, now.Running, plus)
		now.Queued = sample.joined(queued, now.Queued, plus)
		now.KVShare = sample.joined(kvShare, now.KVShare, math.Max)
		if age := max(passed-sample.At, 0).Seconds(); now.AgeS == nil || age > *now.AgeS {
			now.AgeS = &age
		}
	}
	return now
}

// joined combines a value of the sample with the value of other samples.
func (s *Sample) joined(q Quantity, others *float64, join func(a, b float64) float64) *float64 {
	v, reported := s.Values[q]
	switch {
	case !reported:
		return others
	case others == nil:
		return &v
	}
	return new(join(*others, v))
}

// scrape reads a page once and reports success. A failure is recorded only if
// report is true.
func (s *Scraper) scrape(ctx context.Context, t Target, within time.Duration, report bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	values, err := fetch(ctx, s.client, t)
	if errors.Is(ctx.Err(), context.Canceled) {
		return false // the scraper was stopped; a last read follows
	}
	if err != nil && !report {
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

// Probe reads a page once and returns an error if it contains no known metric.
func Probe(ctx context.Context, client *http.Client, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := fetch(ctx, client, t)
	return err
}

// errUnknown is returned for a metrics page without known metrics.
var errUnknown = errors.New("a metrics page without known metrics")

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
	defer func() { _ = resp.Body.Close() }() // the body was read, or is abandoned
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxPage))
}
