package errand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/hook"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

const (
	// readAtMost of an answer's body, in bytes and in time.
	readAtMost = 4 << 10
	readWithin = 2 * time.Second
	// longestAfter bounds what a server may ask for with Retry-After.
	longestAfter = time.Minute
)

// poster makes requests.
type poster struct {
	http      *http.Client
	secrets   client.Reader
	namespace string
}

func newPoster(o *Options) *poster {
	p := &poster{secrets: o.Live, namespace: o.Namespace}
	if o.HTTP != nil {
		own := *o.HTTP
		p.http = &own
	} else {
		p.http = &http.Client{Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		}}
	}
	p.http.CheckRedirect = checkRedirect
	return p
}

// checkRedirect follows a redirect that repeats the request at the same place
// (307, 308). Others would make a GET of it, or send what is in it to whom it
// is not for; their answers are returned as they are.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	if r.Method != http.MethodPost || r.URL.Host != first.URL.Host || r.URL.Scheme != first.URL.Scheme || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

// post makes the request of a call and reads the answer. No message of it has
// the URL in it.
func (p *poster) post(ctx context.Context, c *call) answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	who := whoOf(&c.webhook)
	target, err := p.target(ctx, &c.webhook)
	if err != nil {
		return answer{message: err.Error()}
	}
	clean := cleaner(target, c.webhook.URLFrom != nil)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(c.body))
	if err != nil {
		return answer{message: who + " cannot be called: " + clean(withoutURL(err))}
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
		return answer{message: fmt.Sprintf("%s did not answer within %s", who, c.limit)}
	case err != nil:
		return answer{message: who + " could not be called: " + clean(withoutURL(err))}
	}
	defer response.Body.Close()
	defer time.AfterFunc(readWithin, cancel).Stop()
	// What came is better than nothing. Reading a body to its end lets the
	// connection be used again.
	body, _ := io.ReadAll(io.LimitReader(response.Body, readAtMost))
	return judge(response, who, clean(string(body)))
}

// judge reads an answer, of whose body line is the first.
func judge(response *http.Response, who, line string) answer {
	status := response.StatusCode
	a := answer{ok: status >= 200 && status <= 299, message: fmt.Sprintf("%s answered %d %s", who, status, http.StatusText(status))}
	switch {
	case a.ok:
	case status >= 300 && status <= 399:
		a.message += ", a redirect that is not followed: write the URL that it leads to"
	case line != "":
		a.message += ": " + line
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.after = min(time.Duration(min(seconds, 3600))*time.Second, longestAfter)
	}
	return a
}

// withoutURL takes the URL out of an error of net/http.
func withoutURL(err error) string {
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}

// target is where a webhook goes.
func (p *poster) target(ctx context.Context, w *v1alpha1.Webhook) (*url.URL, error) {
	text, who := w.URL, whoOf(w)
	if from := w.URLFrom; from != nil {
		var secret corev1.Secret
		err := p.secrets.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: from.Name}, &secret)
		where := p.namespace + "/" + from.Name
		switch value, ok := secret.Data[from.Key]; {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("%s is not there: create Secret %s with the URL under %s", who, where, from.Key)
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("%s may not be read: add %s to the chart's value webhooks.secrets", who, from.Name)
		case err != nil:
			return nil, fmt.Errorf("%s could not be read: %w", who, err)
		case !ok:
			return nil, fmt.Errorf("%s is not there: Secret %s has no entry %s: write the URL under it", who, where, from.Key)
		default:
			text = string(bytes.TrimSpace(value))
		}
	}
	target, err := hook.ParseURL(text)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be called: %w", who, err)
	}
	return target, nil
}

// whoOf names a webhook's place in messages.
func whoOf(w *v1alpha1.Webhook) string {
	if from := w.URLFrom; from != nil {
		return fmt.Sprintf("the URL in Secret %s (%s)", from.Name, from.Key)
	}
	return placeOf(w)
}

// placeOf is what shares its turns: a host, or an entry of a Secret, whose URL
// is read when it is its turn.
func placeOf(w *v1alpha1.Webhook) string {
	if from := w.URLFrom; from != nil {
		return "secret " + from.Name + "/" + from.Key
	}
	target, err := hook.ParseURL(w.URL)
	if err != nil {
		return "the URL"
	}
	return target.Host
}
