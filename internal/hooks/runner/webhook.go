package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// readAtMost and readWithin bound the part of a response body that is read and
	// dropped, in bytes and in time.
	readAtMost = 4 << 10
	readWithin = 2 * time.Second
	// longestAfter bounds the wait that a server may request with Retry-After.
	longestAfter = time.Minute
)

// webhookClient makes webhook requests.
type webhookClient struct {
	http      *http.Client
	secrets   client.Reader
	namespace string

	destinations Destinations
}

func newWebhookClient(o *Options) *webhookClient {
	p := &webhookClient{secrets: o.Live, namespace: o.Namespace, destinations: o.Destinations}
	if o.HTTP != nil {
		own := *o.HTTP
		p.http = &own
	} else {
		p.http = &http.Client{Transport: o.Destinations.transport()}
	}
	p.http.CheckRedirect = checkRedirect
	return p
}

// checkRedirect follows a redirect that repeats the POST at the same host (307,
// 308). Any other redirect would turn it into a GET or send the body to another
// host; its response is returned as is.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	if r.Method != http.MethodPost || r.URL.Host != first.URL.Host || r.URL.Scheme != first.URL.Scheme || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

// post makes the request of a call and reads the response. Its messages never
// contain the URL.
func (p *webhookClient) post(ctx context.Context, c *webhookCall) callResult {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	who := describeWebhook(&c.webhook)
	r, err := p.request(ctx, c)
	if err != nil {
		return callResult{message: err.Error()}
	}
	response, err := p.http.Do(r)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return callResult{message: fmt.Sprintf("%s did not answer within %s", who, c.timeout)}
	case err != nil:
		return callResult{message: who + " could not be called: " + describeFailure(err)}
	}
	defer response.Body.Close()
	defer time.AfterFunc(readWithin, cancel).Stop()
	// Reading to the end lets the connection be reused.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, readAtMost))
	return resultOf(response, who)
}

// resultOf turns a response into a result. It ignores the body, which can repeat the
// request's secrets, or show a policy's author what an internal server answers.
func resultOf(response *http.Response, who string) callResult {
	status := response.StatusCode
	a := callResult{ok: status >= 200 && status <= 299, message: strings.TrimSpace(fmt.Sprintf("%s answered %d %s", who, status, http.StatusText(status)))}
	if status >= 300 && status <= 399 {
		a.message += ", a redirect that Lifeboat does not follow: configure the final URL"
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.after = min(time.Duration(min(seconds, 3600))*time.Second, longestAfter)
	}
	return a
}
