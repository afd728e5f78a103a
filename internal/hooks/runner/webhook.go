package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

const (
	// readAtMost and readWithin bound the part of a response body that is read,
	// in bytes and in time.
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
	target, err := p.target(ctx, &c.webhook)
	if err != nil {
		return callResult{message: err.Error()}
	}
	clean := cleaner(target, c.webhook.URLFrom != nil)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(c.body))
	if err != nil {
		return callResult{message: who + " cannot be called: " + clean(withoutURL(err))}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "lifeboatd/"+version.String())
	for name, value := range c.webhook.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Idempotency-Key", c.key)
	response, err := p.http.Do(r)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return callResult{message: fmt.Sprintf("%s did not answer within %s", who, c.timeout)}
	case err != nil:
		return callResult{message: who + " could not be called: " + clean(withoutURL(err))}
	}
	defer response.Body.Close()
	defer time.AfterFunc(readWithin, cancel).Stop()
	// A partial body is better than none. Reading to the end lets the
	// connection be reused.
	body, _ := io.ReadAll(io.LimitReader(response.Body, readAtMost))
	return resultOf(response, who, clean(string(body)))
}

// resultOf turns a response into a result; line is the first line of its body.
func resultOf(response *http.Response, who, line string) callResult {
	status := response.StatusCode
	a := callResult{ok: status >= 200 && status <= 299, message: fmt.Sprintf("%s answered %d %s", who, status, http.StatusText(status))}
	switch {
	case a.ok:
	case status >= 300 && status <= 399:
		a.message += ", a redirect that Lifeboat does not follow: configure the final URL"
	case line != "":
		a.message += ": " + line
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.after = min(time.Duration(min(seconds, 3600))*time.Second, longestAfter)
	}
	return a
}

// withoutURL removes the URL from an error of net/http.
func withoutURL(err error) string {
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}

// target returns the URL of a webhook.
func (p *webhookClient) target(ctx context.Context, w *v1alpha1.Webhook) (*url.URL, error) {
	text, who := w.URL, describeWebhook(w)
	if from := w.URLFrom; from != nil {
		var secret corev1.Secret
		err := p.secrets.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: from.Name}, &secret)
		where := p.namespace + "/" + from.Name
		switch value, ok := secret.Data[from.Key]; {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("%s does not exist: create Secret %s with the URL under key %s", who, where, from.Key)
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("reading %s is forbidden: add %s to the chart's value webhooks.secrets", who, from.Name)
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", who, err)
		case !ok:
			return nil, fmt.Errorf("%s does not exist: Secret %s has no key %s: add the URL under that key", who, where, from.Key)
		default:
			text = string(bytes.TrimSpace(value))
		}
	}
	target, err := hooks.ParseURL(text)
	if err == nil {
		err = p.destinations.checkScheme(target)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be called: %w", who, err)
	}
	return target, nil
}

// describeWebhook describes a webhook's destination in messages.
func describeWebhook(w *v1alpha1.Webhook) string {
	if from := w.URLFrom; from != nil {
		return fmt.Sprintf("the URL in Secret %s (%s)", from.Name, from.Key)
	}
	return destinationOf(w)
}

// destinationOf is the destination that shares call slots: a host, or a key of a
// Secret, because the Secret is read only when the call starts.
func destinationOf(w *v1alpha1.Webhook) string {
	if from := w.URLFrom; from != nil {
		return "secret " + from.Name + "/" + from.Key
	}
	target, err := hooks.ParseURL(w.URL)
	if err != nil {
		return "the URL"
	}
	return target.Host
}
