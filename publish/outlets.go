package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tacho/internal/exposition"
)

// ServeHTTP implements http.Handler: it is the page that Prometheus reads.
func (b *Board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.Error(w, "The figures of this run are at /metrics.", http.StatusNotFound)
		return
	}
	defer b.read()()
	var page bytes.Buffer
	kind, write := exposition.PrometheusType, exposition.WritePrometheus
	if strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text") {
		kind, write = exposition.OpenMetricsType, exposition.WriteOpenMetrics
	}
	_ = write(&page, b.families()) // a buffer takes all
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(page.Bytes()) // who asked may be gone
}

// read notes that the page is read. The returned function is called when it was.
func (b *Board) read() (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scraped = true
	last := b.last
	b.last = nil // only the first read after the end counts
	return func() {
		if last != nil {
			close(last)
		}
	}
}

// LastScrape is how long the page stays up after the run for a scraper that read it
// before. Prometheus scrapes every 15 s in the configuration that it is delivered with.
const LastScrape = 15 * time.Second

// Scraped says whether the page was read.
func (b *Board) Scraped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.scraped
}

// awaitScrape returns when the page was read once more, so that the scraper has the
// last figures: after LastScrape at the latest, and at once if it was never read.
func (b *Board) awaitScrape(ctx context.Context) {
	b.mu.Lock()
	last := make(chan struct{})
	b.last = last
	scraped := b.scraped
	b.mu.Unlock()
	if !scraped {
		return
	}
	timer := time.NewTimer(LastScrape)
	defer timer.Stop()
	select {
	case <-last:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// closeTime is how long the last reader of the page may take.
const closeTime = time.Second

// Serve shows the page to the clients of a listener until stop is called, and to a
// scraper once more after that. at is the page's URL.
func (b *Board) Serve(l net.Listener) (at string, stop func(context.Context)) {
	server := &http.Server{Handler: b, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until it is closed
	}()
	return "http://" + l.Addr().String() + "/metrics", func(ctx context.Context) {
		b.awaitScrape(ctx)
		ctx, cancel := context.WithTimeout(ctx, closeTime)
		defer cancel()
		_ = server.Shutdown(ctx) // a reader gets the whole page
		_ = server.Close()       // one that does not read is left
		<-done
	}
}

// A Collector takes figures over OTLP/HTTP.
type Collector struct {
	URL     string
	Headers http.Header
	Every   time.Duration
	Client  *http.Client
	Now     func() time.Time
	Trouble func(error) // told of the first failure of each row of them
}

// CollectorURL is the address that metrics are posted to, of one that a user
// gives: a collector without a path has them where the standard says.
func CollectorURL(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("%q is no address of a collector: write http://HOST:4318", given)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/metrics"
	}
	return u.String(), nil
}

// Push posts the figures until the returned function is called, and then once
// more, even if ctx is done by then. A collector that does not answer holds
// nothing up but that.
func (b *Board) Push(ctx context.Context, c Collector) (stop func()) {
	ctx = context.WithoutCancel(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(c.Every)
		defer tick.Stop()
		failing := false
		post := func() {
			err := b.post(ctx, &c)
			if err != nil && !failing {
				c.Trouble(err)
			}
			failing = err != nil
		}
		for {
			select {
			case <-tick.C:
				post()
			case <-quit:
				post()
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
	})
}

// resource is what a collector knows the run by.
func (b *Board) resource() []exposition.Label {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []exposition.Label{{Name: "service.name", Value: "tacho"}}
	for _, l := range b.run {
		out = append(out, exposition.Label{Name: "service.instance.id", Value: l.Value})
	}
	return append(out, b.about...)
}

// postTime is how long a collector may take.
const postTime = 5 * time.Second

func (b *Board) post(ctx context.Context, c *Collector) (err error) {
	body, err := exposition.OTLP(b.resource(), b.families(), b.began, c.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if c.Headers != nil {
		req.Header = c.Headers.Clone()
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // only for the words of an error
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the collector answered %s: %s", resp.Status, bytes.TrimSpace(said))
	}
	return nil
}
