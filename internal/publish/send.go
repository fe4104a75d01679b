package publish

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/protobuf/proto"
)

// Connect prepares the HTTP client. base is the client for servers that are not measured.
func (c *Collector) Connect(base *http.Client) {
	client := *base
	client.CheckRedirect = sameServer
	if t, ok := cmp.Or(base.Transport, http.DefaultTransport).(*http.Transport); ok {
		t = t.Clone()
		t.TLSClientConfig = cmp.Or(c.tls, t.TLSClientConfig)
		client.Transport = t
	}
	c.client = &client
}

// Close closes the connections.
func (c *Collector) Close() { c.client.CloseIdleConnections() }

// sameServer follows redirects within a server. A redirect to another one would send it the metrics and the headers of
// this one.
func sameServer(to *http.Request, via []*http.Request) error {
	if from := via[0].URL; to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
		return fmt.Errorf("the collector redirects to %s, another server: set the endpoint to it if you trust it", to.URL.Host)
	}
	if to.Method != http.MethodPost || len(via) > 3 {
		return http.ErrUseLastResponse // some statuses turn a POST into a GET
	}
	return nil
}

// send sends a request.
func (c *Collector) send(ctx context.Context, m proto.Message) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	header := c.Headers.Clone()
	header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		header.Set("Content-Encoding", "gzip")
		body = compressed(body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("the collector answered %s: %s", resp.Status, bytes.TrimSpace(answer[:min(len(answer), 200)]))
	}
	return err
}

func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer cannot fail
	_ = w.Close()
	return out.Bytes()
}
