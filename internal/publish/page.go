package publish

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/exposition"
)

// ServeHTTP implements http.Handler. It serves the page scraped by Prometheus.
func (b *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.Error(w, "The metrics of this run are at /metrics.", http.StatusNotFound)
		return
	}
	defer b.read()()
	var page bytes.Buffer
	kind, write := exposition.PrometheusType, exposition.WritePrometheus
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, "io.prometheus.client.MetricFamily"):
		kind, write = exposition.ProtobufType, exposition.WriteProtobuf
	case strings.Contains(accept, "application/openmetrics-text"):
		kind, write = exposition.OpenMetricsType, exposition.WriteOpenMetrics
	}
	_ = write(&page, b.page()) // writing to a buffer cannot fail
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(page.Bytes()) // the client may have disconnected
}

// read records a scrape. Call done when the page was sent.
func (b *Exporter) read() (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scraped = true
	last := b.last
	b.last = nil // only the first scrape after the end counts
	return func() {
		if last != nil {
			close(last)
		}
	}
}

// LastScrape is the time for which the page stays available after the run, if it was scraped before. Prometheus
// scrapes every 15 s by default.
const LastScrape = 15 * time.Second

// Scraped reports whether the page was scraped.
func (b *Exporter) Scraped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.scraped
}

// awaitScrape waits for one more scrape, so the scraper gets the final values. It waits for at most LastScrape, and
// not at all if the page was never scraped.
func (b *Exporter) awaitScrape(ctx context.Context) {
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

// ownNames answers only requests that name this machine: by an IP address, by localhost, or by one of the names. A web
// page of another site could otherwise read the metrics after it changed the DNS entry of its own name.
func ownNames(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
		_, err := netip.ParseAddr(host)
		if err == nil || slices.ContainsFunc(append([]string{"localhost"}, names...), func(name string) bool { return strings.EqualFold(name, host) }) {
			next.ServeHTTP(w, r)
			return
		}
		http.Error(w, fmt.Sprintf("403: the Host header %q is not a name of this machine. Use its IP address, localhost or %s, or start tacho with --metrics-listen NAME:PORT.",
			host, strings.Join(names, " or ")), http.StatusForbidden)
	})
}

// Serve serves the page on a listener until stop is called, and then for one more scrape. Requests must name the host
// by its address, by localhost or by one of the names. at is the URL of the page.
func (b *Exporter) Serve(l net.Listener, names ...string) (at string, stop func(context.Context)) {
	server := &http.Server{Handler: ownNames(names, b), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until the listener is closed
	}()
	return "http://" + l.Addr().String() + "/metrics", func(ctx context.Context) {
		b.awaitScrape(ctx)
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // lets scrapers read the complete page
		_ = server.Close()       // disconnects clients that do not read
		<-done
	}
}
