// Package awshttp makes the HTTP client that all AWS clients here use, and reads the
// errors that AWS answers.
package awshttp

import (
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkhttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// idleConnections to one host are kept: as many as receivers may poll a queue
// at once.
const idleConnections = 64

// NewClient returns the client of a configuration that has none of its own.
func NewClient() *http.Client { return mend(sdkhttp.NewBuildableClient()) }

// Use returns the configuration with such a client, made from the one that it
// has: it may know certificates of its own (AWS_CA_BUNDLE).
func Use(config aws.Config) aws.Config {
	if own, ok := config.HTTPClient.(*sdkhttp.BuildableClient); ok {
		config.HTTPClient = mend(own)
	} else if config.HTTPClient == nil {
		config.HTTPClient = NewClient()
	}
	return config
}

// WithTimeout is Use with a limit for each call, answer included; the SDK sets
// none. A client that is none of these two kinds stays as it is.
func WithTimeout(config aws.Config, limit time.Duration) aws.Config {
	config = Use(config)
	if client, ok := config.HTTPClient.(*http.Client); ok {
		limited := *client
		limited.Timeout = limit
		config.HTTPClient = &limited
	}
	return config
}

// mend returns the SDK's client, but for one thing.
//
// The SDK closes the body of a request as soon as the answer begins
// (smithy-go, transport/http). Where the answer comes fast, as from an endpoint
// in the same zone, net/http may not have come to the end of the body by then;
// it takes the failing WriteTo of the SDK's body for a failed request and
// closes the connection, so that answers of several kilobytes are cut off. A
// body without WriteTo merely ends.
func mend(client *sdkhttp.BuildableClient) *http.Client {
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
