// Package awshttp provides the HTTP client of all AWS clients, and classifies
// AWS errors.
package awshttp

import (
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkhttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// idleConnections is the number of idle connections kept per host: as many as
// receivers may poll a queue at once.
const idleConnections = 64

// NewClient returns the default client.
func NewClient() *http.Client { return fixBodies(sdkhttp.NewBuildableClient()) }

// Use returns the configuration with a fixed client that is derived from its
// own: that may contain a CA bundle (AWS_CA_BUNDLE).
func Use(config aws.Config) aws.Config {
	if own, ok := config.HTTPClient.(*sdkhttp.BuildableClient); ok {
		config.HTTPClient = fixBodies(own)
	} else if config.HTTPClient == nil {
		config.HTTPClient = NewClient()
	}
	return config
}

// WithTimeout is Use with a timeout for each call including the response; the
// SDK sets none. A client of another type is not changed.
func WithTimeout(config aws.Config, limit time.Duration) aws.Config {
	config = Use(config)
	if client, ok := config.HTTPClient.(*http.Client); ok {
		limited := *client
		limited.Timeout = limit
		config.HTTPClient = &limited
	}
	return config
}

// fixBodies returns the SDK's client with a workaround.
//
// The SDK closes the request body as soon as the response begins (smithy-go,
// transport/http). With a fast response, as from an endpoint in the same zone,
// net/http may not have reached the end of the body yet. It treats the failing
// WriteTo of the SDK's body as a failed request and closes the connection, so
// that responses of several kilobytes are cut off. A body without WriteTo
// simply ends.
func fixBodies(client *sdkhttp.BuildableClient) *http.Client {
	transport := client.WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = idleConnections
	}).GetTransport()
	return &http.Client{Transport: plainBodies{transport}, Timeout: client.GetTimeout()}
}

// plainBodies hides WriteTo.
type plainBodies struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (p plainBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body := r.Body
		r = r.Clone(r.Context())
		r.Body = struct{ io.ReadCloser }{body}
	}
	return p.Transport.RoundTrip(r)
}
