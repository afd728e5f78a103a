package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// defaultTimeout is the default of OTEL_EXPORTER_OTLP_TIMEOUT.
const defaultTimeout = 10 * time.Second

// settings are what the environment says (OpenTelemetry specification, "OpenTelemetry Protocol
// Exporter").
type settings struct {
	endpoint string
	headers  map[string]string
	timeout  time.Duration
	gzip     bool
	tls      *tls.Config
	// resource has the attributes of OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
	resource map[string]string
}

// readSettings reads the environment. endpoint is that of the flag, and takes precedence; without
// any, the settings have none.
func readSettings(endpoint string, getenv func(string) string) (settings, error) {
	s := settings{timeout: defaultTimeout, resource: map[string]string{"service.name": "lifeboat"}}
	if disabled, err := strconv.ParseBool(getenv("OTEL_SDK_DISABLED")); err == nil && disabled || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return s, nil
	}
	either := func(name string) string {
		if value := getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); value != "" {
			return value
		}
		return getenv("OTEL_EXPORTER_OTLP_" + name)
	}
	err := errors.Join(s.setEndpoint(endpoint, getenv), s.setHeaders(either("HEADERS")), s.setTimeout(either("TIMEOUT")), s.setTransport(either), s.setResource(getenv))
	return s, err
}

func (s *settings) setEndpoint(flag string, getenv func(string) string) error {
	name, text, exact := "--tracing-endpoint", flag, false
	if text == "" {
		name, text, exact = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), true
	}
	if text == "" {
		name, text, exact = "OTEL_EXPORTER_OTLP_ENDPOINT", getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), false
	}
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s %q is not the URL of a collector: write one such as http://otel-collector.monitoring:4318", name, text)
	}
	if !exact && !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	s.endpoint = u.String()
	return nil
}

func (s *settings) setHeaders(text string) error {
	pairs, err := keyValues(text)
	if err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	s.headers = pairs
	return nil
}

func (s *settings) setTimeout(text string) error {
	if text == "" {
		return nil
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 1 || ms > 60_000 {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT %q is not a time: write milliseconds, from 1 to 60000", text)
	}
	s.timeout = time.Duration(ms) * time.Millisecond
	return nil
}

func (s *settings) setTransport(either func(string) string) error {
	if p := either("PROTOCOL"); p != "" && p != "http/protobuf" {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: Lifeboat speaks http/protobuf only, which collectors serve at port 4318", p)
	}
	switch c := either("COMPRESSION"); c {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION is %q: write gzip or none", c)
	}
	return s.setTLS(either)
}

func (s *settings) setTLS(either func(string) string) error {
	ca, cert, key := either("CERTIFICATE"), either("CLIENT_CERTIFICATE"), either("CLIENT_KEY")
	if ca == "" && cert == "" && key == "" {
		return nil
	}
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		s.tls.RootCAs = x509.NewCertPool()
		if !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s contains no certificate in PEM format", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
		}
		s.tls.Certificates = []tls.Certificate{pair}
	}
	return nil
}

func (s *settings) setResource(getenv func(string) string) error {
	pairs, err := keyValues(getenv("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	for key, value := range pairs {
		s.resource[key] = value
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		s.resource["service.name"] = name
	}
	return nil
}

// keyValues reads a list such as a=1,b=2, in which values can be percent-encoded.
func keyValues(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || strings.TrimSpace(key) == "" || err != nil {
			return nil, fmt.Errorf("entry %d is not key=value with a percent-encoded value", len(pairs)+1) // the text can be secret
		}
		pairs[strings.TrimSpace(key)] = decoded
	}
	return pairs, nil
}
