package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
)

// handshakeError is a failed TLS handshake.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// Classify returns the Failure for an error of Do, or nil if err is nil. For errors of
// Warm and of the client of HTTP, x is nil.
func Classify(err error, x *Exchange) *tacho.Failure {
	if err == nil {
		return nil
	}
	if x == nil {
		x = guessed(err)
	}
	f := &tacho.Failure{Phase: phase(x), Status: x.Status, Message: plainMessage(err)}
	f.Cause = cause(err, f.Phase)
	if h := hint(err, f); h != "" {
		f.Message += "; " + h
	}
	if f.Cause == tacho.Reset && x.Reused && x.Head == 0 {
		f.Message += "; the connection was reused, and the server may have been closing it"
	}
	return f
}

// hints are advice for causes whose error message gives none.
var hints = map[tacho.Cause]string{
	tacho.Refused: "nothing is listening on that port, check the server and its address",
	tacho.DNS:     "check the host name, or use an IP address",
	tacho.TLS:     "check the scheme, the CA file (--ca-cert) and the client certificate (--client-cert)",
}

// hint returns advice for err.
func hint(err error, f *tacho.Failure) string {
	var errno syscall.Errno
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &errno) && (errno == syscall.EMFILE || errno == syscall.ENFILE):
		return "each connection needs a file descriptor; raise the limit (ulimit -n 65536) or lower --max-concurrency"
	case errors.As(err, &errno) && errno == syscall.EADDRNOTAVAIL && f.Phase == "connect":
		return "no local port is free; wait a minute until closed connections expire, lower --max-concurrency, or widen net.ipv4.ip_local_port_range"
	case errors.As(err, &record) && !strings.HasPrefix(string(record.RecordHeader[:]), "\x15\x03"):
		return "the server does not use TLS on that port; write http:// instead of https://"
	case strings.Contains(f.Message, `malformed HTTP response "\x15\x03`):
		return "the server uses TLS on that port; write https:// instead of http://"
	}
	return hints[f.Cause]
}

// guessed returns an Exchange with the likely phase if only the error is known.
func guessed(err error) *Exchange {
	var op *net.OpError
	if isTLS(err) || errors.As(err, &op) && op.Op == "dial" {
		return &Exchange{}
	}
	return &Exchange{Conn: 1, Wrote: 1}
}

// phase returns the phase in which x ended.
func phase(x *Exchange) string {
	switch {
	case x.Head != 0:
		return "stream"
	case x.Wrote != 0:
		return "wait"
	case x.Conn != 0:
		return "send"
	}
	return "connect"
}

// The numbers above 10000 are error codes of Windows; no other system uses them.
var (
	refusedErrnos = []syscall.Errno{syscall.ECONNREFUSED, 10061}
	resetErrnos   = []syscall.Errno{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, syscall.ETIMEDOUT, 10054, 10053, 10060}
)

func cause(err error, phase string) tacho.Cause {
	var errno syscall.Errno
	var dns *net.DNSError
	errors.As(err, &errno)
	switch {
	case errors.Is(err, context.Canceled):
		return tacho.Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return tacho.Timeout
	case isTooLarge(err):
		return tacho.TooLarge
	case errors.As(err, &dns):
		return tacho.DNS
	case isTLS(err):
		return tacho.TLS
	case phase != "connect":
		return brokenOrMalformed(err, errno)
	case slices.Contains(refusedErrnos, errno), errno == syscall.ENOENT: // a unix socket that does not exist
		return tacho.Refused
	}
	return tacho.Connect
}

// brokenOrMalformed distinguishes broken connections from responses that are not HTTP.
// Errors other than the known ways to break are errors of net/http's parsers.
func brokenOrMalformed(err error, errno syscall.Errno) tacho.Cause {
	var op *net.OpError
	switch message := err.Error(); {
	case slices.Contains(resetErrnos, errno),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, net.ErrClosed), errors.As(err, &op),
		strings.Contains(message, "server closed idle connection"),
		strings.HasPrefix(message, "http2:"), strings.HasPrefix(message, "stream error:"):
		return tacho.Reset
	}
	return tacho.Malformed
}

// isTooLarge recognizes net/http's error by its text, because the error is untyped.
func isTooLarge(err error) bool {
	var bound *limit.Error
	return errors.As(err, &bound) || strings.Contains(err.Error(), "server response headers exceeded")
}

func isTLS(err error) bool {
	var (
		handshake *handshakeError
		record    tls.RecordHeaderError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		op        *net.OpError
	)
	return errors.As(err, &handshake) || errors.As(err, &record) || errors.As(err, &verify) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		// In TLS 1.3 the server checks our certificate after our side of the handshake is
		// complete. Its alert arrives in place of the response.
		errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}

// plainMessage returns the message of err without our local port. Failures are counted by
// message, and the port differs by connection.
func plainMessage(err error) string {
	var of *url.Error
	if errors.As(err, &of) { // the caller knows the URL
		err = of.Err
	}
	message := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Source != nil {
		plain := *op
		plain.Source = nil
		message = strings.ReplaceAll(message, op.Error(), plain.Error())
	}
	return message
}
