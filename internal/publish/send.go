package publish

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tacho-bench/tacho/internal/exposition"
)

// Connect prepares the HTTP client of a signal. base is the client for servers that are not measured.
func (s *Signal) Connect(base *http.Client) {
	client := *base
	client.CheckRedirect = sameServer
	s.client = &client
	t, ok := cmp.Or(base.Transport, http.DefaultTransport).(*http.Transport)
	if !ok {
		return
	}
	t = t.Clone()
	t.TLSClientConfig = cmp.Or(s.tls, t.TLSClientConfig)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(true)
	if s.protocol == "grpc" {
		t.Protocols.SetUnencryptedHTTP2(true) // gRPC exists over HTTP/2 only
	} else {
		t.Protocols.SetHTTP1(true)
	}
	client.Transport = t
	s.client = &client
}

// Close closes the connections of a signal.
func (s *Signal) Close() { s.client.CloseIdleConnections() }

// sameServer follows redirects within a server. A redirect to another one would send it the metrics and the headers of
// this one.
func sameServer(to *http.Request, via []*http.Request) error {
	if from := via[0].URL; to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
		return fmt.Errorf("the collector redirects to %s, another server: set the endpoint to it if you trust it", to.URL.Host)
	}
	if to.Method != http.MethodPost || len(via) > maxRedirects {
		return http.ErrUseLastResponse // some statuses turn a POST into a GET
	}
	return nil
}

const maxRedirects = 3

// A rejection is an answer of the collector that will not change if the same data is sent again.
type rejection struct{ error }

// maxAnswer limits what is read of a collector's answer.
const maxAnswer = 64 << 10

// send sends a request.
func (s *Signal) send(ctx context.Context, m exposition.Message) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	header := s.Headers.Clone()
	body := s.encode(m, header)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // gRPC has its status at the end
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		err := fmt.Errorf("the collector answered %s: %s", resp.Status, bytes.TrimSpace(answer[:min(len(answer), 200)]))
		switch resp.StatusCode {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return err
		}
		return rejection{err}
	}
	if s.protocol == "grpc" {
		return grpcStatus(resp)
	}
	return nil
}

// encode returns the body of a request and sets its headers.
func (s *Signal) encode(m exposition.Message, header http.Header) []byte {
	switch s.protocol {
	case "http/json":
		header.Set("Content-Type", "application/json")
		return s.compressed(m.JSON(nil), header, "Content-Encoding")
	case "http/protobuf":
		header.Set("Content-Type", "application/x-protobuf")
		return s.compressed(m.Proto(nil), header, "Content-Encoding")
	}
	header.Set("Content-Type", "application/grpc")
	header.Set("Te", "trailers")
	body := s.compressed(m.Proto(nil), header, "Grpc-Encoding")
	frame := []byte{0}
	if s.gzip {
		frame[0] = 1
	}
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	return append(frame, body...)
}

// compressed compresses a body, if the user wants it, and names the compression in a header.
func (s *Signal) compressed(body []byte, header http.Header, name string) []byte {
	if !s.gzip {
		return body
	}
	header.Set(name, "gzip")
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer cannot fail
	_ = w.Close()
	return out.Bytes()
}

// Status codes of gRPC after which sending the same data again can help.
var passing = map[string]bool{"1": true, "4": true, "8": true, "10": true, "11": true, "14": true, "15": true}

// grpcStatus returns an error unless the status of the call is OK. The status is in the trailer, or in the header if
// there is no answer.
func grpcStatus(resp *http.Response) error {
	header := resp.Trailer
	if header.Get("Grpc-Status") == "" {
		header = resp.Header
	}
	code := header.Get("Grpc-Status")
	if code == "0" {
		return nil
	}
	message, err := url.PathUnescape(header.Get("Grpc-Message"))
	if err != nil {
		message = header.Get("Grpc-Message")
	}
	err = fmt.Errorf("the collector answered gRPC status %s: %s", cmp.Or(code, "(none)"), strings.TrimSpace(message))
	if passing[code] {
		return err
	}
	return rejection{err}
}
