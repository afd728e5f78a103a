package metadata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsimds "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// dialTime and answerTime are timeouts of the metadata service. It runs on
	// the instance's host and answers within milliseconds.
	dialTime   = 500 * time.Millisecond
	answerTime = time.Second
	// readTime bounds a read, including the token request.
	readTime = 4 * time.Second
	// maxText is more than the response of any path that is read.
	maxText = 256 << 10
)

// Client reads instance metadata, always with tokens (IMDSv2).
type Client struct {
	sdk  *awsimds.Client
	seen *lastResult
}

// NewClient creates a client. AWS_EC2_METADATA_SERVICE_ENDPOINT and
// AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE override the endpoint, as for every
// AWS SDK. Proxies are never used: a proxy would return the metadata of another
// machine.
func NewClient(config aws.Config) *Client {
	return NewClientOver(config, awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTime }).
		WithTransportOptions(func(t *http.Transport) {
			t.Proxy = nil
			t.ResponseHeaderTimeout = answerTime
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 1, 1
		}))
}

// NewClientOver creates a client with the given transport.
func NewClientOver(config aws.Config, over awsimds.HTTPClient) *Client {
	seen := &lastResult{http: over}
	sdk := awsimds.NewFromConfig(config, func(o *awsimds.Options) {
		o.HTTPClient = seen
		o.EnableFallback = aws.FalseTernary
		o.DisableDefaultMaxBackoff = true // it would override MaxBackoff with one second
		// One retry, because the SDK needs one to renew a rejected token.
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts = 2
			r.MaxBackoff = 200 * time.Millisecond
			r.RateLimiter = ratelimit.None
		})
	})
	return &Client{sdk: sdk, seen: seen}
}

// Get reads a path below /latest/meta-data. It returns false if there is no
// content. Its errors are *ReadError. It is not safe for concurrent use.
func (c *Client) Get(ctx context.Context, path string) (text string, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	out, err := c.sdk.GetMetadata(ctx, &awsimds.GetMetadataInput{Path: path})
	if err == nil {
		defer out.Content.Close()
		body, err := io.ReadAll(io.LimitReader(out.Content, maxText))
		if err != nil {
			return "", false, c.readError(path, err)
		}
		return string(body), true, nil
	}
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) && reply.HTTPStatusCode() == http.StatusNotFound {
		return "", false, nil
	}
	return "", false, c.readError(path, err)
}

func (c *Client) readError(path string, err error) error {
	return &ReadError{Reason: diagnose(c.seen.last(), err), Err: fmt.Errorf("reading instance metadata %s: %w", path, err)}
}

// exchange is the result of a request, as far as diagnose needs it.
type exchange struct {
	method string
	status int   // 0: no response
	err    error // why there was no response
}

// lastResult remembers the result of the last request. The SDK's errors of
// token requests hide the wrapped error.
type lastResult struct {
	http awsimds.HTTPClient

	mu   sync.Mutex
	seen exchange
}

// Do sends a request.
func (w *lastResult) Do(r *http.Request) (*http.Response, error) {
	reply, err := w.http.Do(r)
	seen := exchange{method: r.Method, err: err}
	if err == nil {
		seen.status = reply.StatusCode
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
	return reply, err
}

func (w *lastResult) last() exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}
