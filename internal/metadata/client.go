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
	// dialTime and answerTime are what an answer from the host that the
	// instance runs on may take; it is a matter of milliseconds.
	dialTime   = 500 * time.Millisecond
	answerTime = time.Second
	// readTime bounds a read with all that belongs to it.
	readTime = 4 * time.Second
	// maxText is more than a reply of any path that is read can hold.
	maxText = 256 << 10
)

// Client reads instance metadata, with tokens (IMDSv2) and never without.
type Client struct {
	sdk  *awsimds.Client
	seen *witness
}

// NewClient makes a client. AWS_EC2_METADATA_SERVICE_ENDPOINT and
// AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE say where metadata is, as for every AWS
// SDK. Proxies are never used: what a proxy answers is the metadata of another
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

// NewClientOver makes a client that sends its requests with over.
func NewClientOver(config aws.Config, over awsimds.HTTPClient) *Client {
	seen := &witness{http: over}
	sdk := awsimds.NewFromConfig(config, func(o *awsimds.Options) {
		o.HTTPClient = seen
		o.EnableFallback = aws.FalseTernary
		o.DisableDefaultMaxBackoff = true // it would be a second, in place of what is set here
		// Once more, which is how the SDK renews a token that is refused.
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts = 2
			r.MaxBackoff = 200 * time.Millisecond
			r.RateLimiter = ratelimit.None
		})
	})
	return &Client{sdk: sdk, seen: seen}
}

// Get reads what stands at a path below /latest/meta-data. It reports false
// where there is nothing. Its errors are *Trouble. It is not safe for concurrent
// use.
func (c *Client) Get(ctx context.Context, path string) (text string, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	out, err := c.sdk.GetMetadata(ctx, &awsimds.GetMetadataInput{Path: path})
	if err == nil {
		defer out.Content.Close()
		body, err := io.ReadAll(io.LimitReader(out.Content, maxText))
		if err != nil {
			return "", false, c.trouble(path, err)
		}
		return string(body), true, nil
	}
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) && reply.HTTPStatusCode() == http.StatusNotFound {
		return "", false, nil
	}
	return "", false, c.trouble(path, err)
}

func (c *Client) trouble(path string, err error) error {
	return &Trouble{Reason: diagnose(c.seen.last(), err), Err: fmt.Errorf("reading instance metadata %s: %w", path, err)}
}

// exchange is how a request went, as far as a diagnosis needs it.
type exchange struct {
	method string
	status int   // 0: there was no answer
	err    error // why there was none
}

// witness remembers how the last request went. The SDK does not tell: its
// errors of token requests hide what they wrap.
type witness struct {
	http awsimds.HTTPClient

	mu   sync.Mutex
	seen exchange
}

// Do sends a request.
func (w *witness) Do(r *http.Request) (*http.Response, error) {
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

func (w *witness) last() exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}
