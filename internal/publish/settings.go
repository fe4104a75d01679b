package publish

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/exposition"
)

// Settings select collectors: by flags, and by the standard variables of OpenTelemetry. Flags take precedence.
type Settings struct {
	Endpoint string   // URL for metrics and spans
	Headers  []string // NAME=VALUE
	Protocol string
	Sample   float64 // fraction of the requests with a span
	Getenv   func(string) string
}

// Protocols are the protocols of OTLP, the default first.
var Protocols = []string{"http/protobuf", "http/json", "grpc"}

// A Collector receives metrics and spans over OTLP.
type Collector struct {
	Metrics     *Signal       // nil if no metrics are sent
	Traces      *Signal       // nil if no spans are sent
	Every       time.Duration // interval between exports of metrics
	Exponential bool          // send exponential histograms
	Sample      float64       // fraction of the requests with a span
	Resource    []exposition.Attribute
	Now         func() time.Time
}

// Signals returns the receivers.
func (c *Collector) Signals() (out []*Signal) {
	for _, s := range []*Signal{c.Metrics, c.Traces} {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

// A Signal is the receiver of metrics or of spans.
type Signal struct {
	Name    string // metrics or traces
	URL     string
	Headers http.Header
	From    string // option or variable that contains the URL

	path     string // of the gRPC method
	protocol string
	gzip     bool
	timeout  time.Duration
	tls      *tls.Config // nil for the defaults
	client   *http.Client
}

// defaultPeriod is the interval between exports of metrics.
const defaultPeriod = 10 * time.Second

// defaultTimeout is the time limit for an export.
const defaultTimeout = 5 * time.Second

// ErrDisabled is returned if OTEL_SDK_DISABLED forbids what a flag asks for.
var ErrDisabled = errors.New("OTEL_SDK_DISABLED is true, so no metrics or spans are sent")

// Collector returns the selected collector, or nil if none is.
func (s *Settings) Collector() (*Collector, error) {
	if strings.EqualFold(s.env("OTEL_SDK_DISABLED"), "true") {
		if s.Endpoint != "" || s.Sample > 0 {
			return nil, ErrDisabled
		}
		return nil, nil
	}
	c := &Collector{Every: defaultPeriod, Sample: s.Sample}
	var err error
	if c.Metrics, err = s.signal("METRICS", "opentelemetry.proto.collector.metrics.v1.MetricsService"); err != nil {
		return nil, err
	}
	if s.Sample > 0 {
		if c.Traces, err = s.signal("TRACES", "opentelemetry.proto.collector.trace.v1.TraceService"); err != nil {
			return nil, err
		}
		if c.Traces == nil {
			return nil, errors.New("--otlp-spans needs a collector: set --otlp-endpoint")
		}
	}
	if c.Metrics == nil && c.Traces == nil {
		return nil, nil
	}
	if c.Every, err = s.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", defaultPeriod); err != nil {
		return nil, err
	}
	switch name := "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"; s.env(name) {
	case "", "explicit_bucket_histogram":
	case "base2_exponential_bucket_histogram":
		c.Exponential = true
	default:
		return nil, fmt.Errorf("%s: use explicit_bucket_histogram or base2_exponential_bucket_histogram", name)
	}
	if c.Resource, err = pairs("OTEL_RESOURCE_ATTRIBUTES", s.env("OTEL_RESOURCE_ATTRIBUTES")); err != nil {
		return nil, err
	}
	if name := s.env("OTEL_SERVICE_NAME"); name != "" {
		c.Resource = append(c.Resource, exposition.Attribute{Key: "service.name", Value: name})
	}
	return c, nil
}

func (s *Settings) env(name string) string {
	if s.Getenv == nil {
		return ""
	}
	return strings.TrimSpace(s.Getenv(name))
}

const exporterPrefix = "OTEL_EXPORTER_OTLP_"

// variable returns the variable of one signal, or the variable for both signals.
func (s *Settings) variable(signal, name string) (variable, value string) {
	variable = exporterPrefix + signal + "_" + name
	if value = s.env(variable); value == "" {
		variable = exporterPrefix + name
		value = s.env(variable)
	}
	return variable, value
}

// signal returns the receiver of a signal, or nil if there is none.
func (s *Settings) signal(name, service string) (*Signal, error) {
	if s.Endpoint == "" && s.env("OTEL_"+name+"_EXPORTER") == "none" {
		return nil, nil
	}
	variable, protocol := s.variable(name, "PROTOCOL")
	if s.Protocol != "" {
		variable, protocol = "--otlp-protocol", s.Protocol
	}
	out := &Signal{Name: strings.ToLower(name), protocol: cmp.Or(protocol, Protocols[0]), path: "/" + service + "/Export"}
	if !slices.Contains(Protocols, out.protocol) {
		return nil, fmt.Errorf("%s %q: use %s", variable, protocol, strings.Join(Protocols, ", "))
	}
	if err := s.endpoint(out, name); err != nil || out.URL == "" {
		return nil, err
	}
	var err error
	if out.timeout, err = s.timeout(name); err != nil {
		return nil, err
	}
	switch variable, value := s.variable(name, "COMPRESSION"); value {
	case "", "none":
	case "gzip":
		out.gzip = true
	default:
		return nil, fmt.Errorf("%s %q: use gzip or none", variable, value)
	}
	if out.Headers, err = s.headers(name); err != nil {
		return nil, err
	}
	out.tls, err = s.certificates(name)
	return out, err
}

// endpoint sets the URL of a signal.
func (s *Settings) endpoint(out *Signal, signal string) error {
	path := "/v1/" + strings.ToLower(signal)
	variable := exporterPrefix + signal + "_ENDPOINT"
	own, both := s.env(variable), s.env(exporterPrefix+"ENDPOINT")
	var err error
	switch {
	case s.Endpoint != "":
		out.From = "--otlp-endpoint"
		out.URL, err = CollectorURL(s.Endpoint, path)
	case own != "":
		out.From = variable
		out.URL, err = checkURL(s.schemed(own, signal, out.protocol))
	case both != "":
		out.From = exporterPrefix + "ENDPOINT"
		out.URL, err = checkURL(strings.TrimRight(s.schemed(both, signal, out.protocol), "/") + path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", out.From, err)
	}
	if out.protocol == "grpc" && out.URL != "" {
		u, _ := url.Parse(out.URL) // was parsed before
		u.Path = out.path
		out.URL = u.String()
	}
	return nil
}

// schemed adds the scheme to an address for gRPC, which may be HOST:PORT.
func (s *Settings) schemed(address, signal, protocol string) string {
	if protocol != "grpc" || strings.Contains(address, "://") {
		return address
	}
	if _, insecure := s.variable(signal, "INSECURE"); strings.EqualFold(insecure, "true") {
		return "http://" + address
	}
	return "https://" + address
}

// CollectorURL returns the URL for posting to a path. If the user's URL contains no path, CollectorURL adds the
// standard one. If it contains the standard path of metrics, spans have their own instead.
func CollectorURL(given, path string) (string, error) {
	address, err := checkURL(given)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if rest, ok := strings.CutSuffix(strings.TrimRight(u.Path, "/"), "/v1/metrics"); ok {
		u.Path = rest + path
	} else if strings.Trim(u.Path, "/") == "" {
		u.Path = path
	}
	return u.String(), nil
}

func checkURL(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("%q is not a collector URL: use http://HOST:4318", given)
	}
	return given, nil
}

func (s *Settings) timeout(signal string) (time.Duration, error) {
	variable, _ := s.variable(signal, "TIMEOUT")
	return s.milliseconds(variable, defaultTimeout)
}

func (s *Settings) milliseconds(variable string, otherwise time.Duration) (time.Duration, error) {
	value := s.env(variable)
	if value == "" {
		return otherwise, nil
	}
	ms, err := strconv.ParseInt(value, 10, 32)
	if err != nil || ms <= 0 {
		return 0, fmt.Errorf("%s %q: want a number of milliseconds above 0", variable, value)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// headers returns the headers of the variables and, with precedence, of the flags.
func (s *Settings) headers(signal string) (http.Header, error) {
	variable, value := s.variable(signal, "HEADERS")
	list, err := pairs(variable, value)
	if err != nil {
		return nil, err
	}
	out := http.Header{}
	for _, h := range list {
		out.Set(h.Key, h.Value.(string))
	}
	flags := http.Header{}
	for _, pair := range s.Headers {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, errors.New("--otlp-header: want NAME=VALUE")
		}
		flags.Add(name, value)
	}
	maps.Copy(out, flags)
	return out, nil
}

// pairs parses a variable with NAME=VALUE pairs, separated by commas. Values are encoded as in URLs. Errors do not
// contain the values, because they may be secret.
func pairs(variable, list string) (out []exposition.Attribute, err error) {
	for part := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, fmt.Errorf("%s: want NAME=VALUE,NAME=VALUE, with special characters as %%XX", variable)
		}
		out = append(out, exposition.Attribute{Key: name, Value: value})
	}
	return out, nil
}

// certificates reads the certificates of a signal. It returns nil if the system's are used.
func (s *Settings) certificates(signal string) (*tls.Config, error) {
	caFrom, ca := s.variable(signal, "CERTIFICATE")
	certFrom, cert := s.variable(signal, "CLIENT_CERTIFICATE")
	keyFrom, key := s.variable(signal, "CLIENT_KEY")
	switch {
	case cert != "" && key == "":
		return nil, fmt.Errorf("%s without %sCLIENT_KEY: set both for mutual TLS", certFrom, exporterPrefix)
	case key != "" && cert == "":
		return nil, fmt.Errorf("%s without %sCLIENT_CERTIFICATE: set both for mutual TLS", keyFrom, exporterPrefix)
	case ca == "" && cert == "":
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", caFrom, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s contains no certificate in PEM", caFrom, ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", certFrom, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
