package publish

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/exposition"
)

// Settings select the collector: by flags, and by the standard variables of OpenTelemetry. Flags take precedence.
type Settings struct {
	Endpoint string   // URL
	Headers  []string // NAME=VALUE
	Getenv   func(string) string
}

// A Collector receives metrics over OTLP, as Protobuf in HTTP.
type Collector struct {
	URL         string
	From        string // option or variable that contains the URL
	Headers     http.Header
	Every       time.Duration // interval between exports
	Exponential bool          // send exponential histograms
	Resource    []exposition.Attribute
	Now         func() time.Time

	gzip    bool
	timeout time.Duration
	tls     *tls.Config // nil for the defaults
	client  *http.Client
}

// ErrNotSent is returned if a variable for all programs of the machine prevents the export. The run need not stop.
var ErrNotSent = errors.New("no metrics are sent to a collector")

// onlyProtocol is the protocol of OTLP that tacho speaks.
const onlyProtocol = "http/protobuf"

// Collector returns the selected collector, or nil if none is.
func (s *Settings) Collector() (*Collector, error) {
	c := &Collector{}
	var err error
	switch {
	case strings.EqualFold(s.env("OTEL_SDK_DISABLED"), "true"):
		if s.Endpoint != "" {
			return nil, fmt.Errorf("%w, because OTEL_SDK_DISABLED is true", ErrNotSent)
		}
		return nil, nil
	case s.Endpoint == "" && s.env("OTEL_METRICS_EXPORTER") == "none":
		return nil, nil
	}
	if err = s.endpoint(c); err != nil || c.URL == "" {
		return nil, err
	}
	if variable, value := s.variable("PROTOCOL"); s.Endpoint == "" && value != "" && value != onlyProtocol {
		return nil, fmt.Errorf("%w, because %s is %q and tacho speaks only %s: set --otlp-endpoint http://HOST:4318", ErrNotSent, variable, value, onlyProtocol)
	}
	variable, _ := s.variable("TIMEOUT")
	if c.timeout, err = s.milliseconds(variable, 5*time.Second); err != nil {
		return nil, err
	}
	switch variable, value := s.variable("COMPRESSION"); value {
	case "", "none":
	case "gzip":
		c.gzip = true
	default:
		return nil, fmt.Errorf("%s %q: use gzip or none", variable, value)
	}
	if c.Headers, err = s.headers(); err != nil {
		return nil, err
	}
	if c.tls, err = s.certificates(); err != nil {
		return nil, err
	}
	if c.Every, err = s.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 10*time.Second); err != nil {
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

// variable returns the variable of metrics, or the variable of all signals.
func (s *Settings) variable(name string) (variable, value string) {
	variable = exporterPrefix + "METRICS_" + name
	if value = s.env(variable); value == "" {
		variable = exporterPrefix + name
		value = s.env(variable)
	}
	return variable, value
}

// endpoint sets the URL of the collector.
func (s *Settings) endpoint(c *Collector) (err error) {
	own, all := exporterPrefix+"METRICS_ENDPOINT", exporterPrefix+"ENDPOINT"
	switch {
	case s.Endpoint != "":
		c.From = "--otlp-endpoint"
		c.URL, err = collectorURL(s.Endpoint)
	case s.env(own) != "":
		c.From = own
		c.URL, err = checkURL(s.env(own))
	case s.env(all) != "":
		c.From = all
		c.URL, err = checkURL(strings.TrimRight(s.env(all), "/") + metricsPath)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	return nil
}

// metricsPath is the standard path of metrics.
const metricsPath = "/v1/metrics"

// collectorURL returns the URL for metrics. If the user's URL contains no path, collectorURL adds the standard one.
func collectorURL(given string) (string, error) {
	address, err := checkURL(given)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(address)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = metricsPath
		address = u.String()
	}
	return address, err
}

func checkURL(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("%q is not a collector URL: use http://HOST:4318", given)
	}
	return given, nil
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
func (s *Settings) headers() (http.Header, error) {
	variable, value := s.variable("HEADERS")
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

// certificates reads the certificates. It returns nil if the system's are used.
func (s *Settings) certificates() (*tls.Config, error) {
	caFrom, ca := s.variable("CERTIFICATE")
	certFrom, cert := s.variable("CLIENT_CERTIFICATE")
	keyFrom, key := s.variable("CLIENT_KEY")
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
