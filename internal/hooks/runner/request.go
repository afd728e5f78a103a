package runner

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// request makes the request of a call. It reads the Secrets that the webhook names.
func (p *webhookClient) request(ctx context.Context, c *webhookCall) (*http.Request, error) {
	target, err := p.target(ctx, &c.webhook)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for name, from := range c.webhook.ValuesFrom {
		if values[name], err = p.entry(ctx, &c.webhook, from, "value "+name, target.Hostname()); err != nil {
			return nil, err
		}
	}
	body, err := hooks.Body(c.webhook, c.subject, values)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil { // the error repeats the URL
		return nil, fmt.Errorf("%s cannot be called: the URL is not valid", describeWebhook(&c.webhook))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "lifeboatd/"+version.String())
	for name, value := range c.webhook.Headers {
		r.Header.Set(name, value)
	}
	for name, from := range c.webhook.HeadersFrom {
		value, err := p.entry(ctx, &c.webhook, from, "header "+name, target.Hostname())
		if err != nil {
			return nil, err
		}
		if err := hooks.CheckHeaderValue(value); err != nil {
			return nil, fmt.Errorf("%s cannot be sent: the value %w", describeEntry("header "+name, from), err)
		}
		r.Header.Set(name, value)
	}
	r.Header.Set("Idempotency-Key", c.key)
	return r, nil
}

// target returns the URL of a webhook.
func (p *webhookClient) target(ctx context.Context, w *v1beta1.Webhook) (*url.URL, error) {
	text, who := w.URL, describeWebhook(w)
	if from := w.URLFrom; from != nil {
		value, _, err := p.secret(ctx, *from, who)
		if err != nil {
			return nil, err
		}
		text = value
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

// entry returns the value of a header or of a field of the body from a Secret. A policy's author may
// name any of these Secrets and any host. So the Secret itself says to which hosts it may be sent, by
// its annotation or because it contains the URL.
func (p *webhookClient) entry(ctx context.Context, w *v1beta1.Webhook, from v1beta1.SecretKey, use, host string) (string, error) {
	who := describeEntry(use, from)
	value, secret, err := p.secret(ctx, from, who)
	if err != nil {
		return "", err
	}
	if w.URLFrom != nil && w.URLFrom.Name == from.Name {
		return value, nil
	}
	hosts := strings.FieldsFunc(secret.Annotations[v1beta1.AnnotationWebhookHosts], func(r rune) bool { return r == ',' || r == ' ' })
	if !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return "", fmt.Errorf("%s may not be sent to %s: add the host to the Secret's annotation %s", who, describeWebhook(w), v1beta1.AnnotationWebhookHosts)
	}
	return value, nil
}

// describeEntry describes an entry of a Secret by its use.
func describeEntry(use string, from v1beta1.SecretKey) string {
	return fmt.Sprintf("the %s in Secret %s (%s)", use, from.Name, from.Key)
}

// secret returns one entry of a Secret, and the Secret.
func (p *webhookClient) secret(ctx context.Context, from v1beta1.SecretKey, who string) (string, *corev1.Secret, error) {
	var secret corev1.Secret
	err := p.secrets.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: from.Name}, &secret)
	where := p.namespace + "/" + from.Name
	switch value, ok := secret.Data[from.Key]; {
	case apierrors.IsNotFound(err):
		return "", nil, fmt.Errorf("%s does not exist: create Secret %s with the key %s", who, where, from.Key)
	case apierrors.IsForbidden(err):
		return "", nil, fmt.Errorf("reading %s is forbidden: add %s to the chart's value webhooks.secrets", who, from.Name)
	case err != nil:
		return "", nil, fmt.Errorf("reading %s: %w", who, err)
	case !ok:
		return "", nil, fmt.Errorf("%s does not exist: Secret %s has no key %s: add that key", who, where, from.Key)
	default:
		return string(bytes.TrimSpace(value)), &secret, nil
	}
}

// describeWebhook describes a webhook's destination in messages.
func describeWebhook(w *v1beta1.Webhook) string {
	if from := w.URLFrom; from != nil {
		return fmt.Sprintf("the URL in Secret %s (%s)", from.Name, from.Key)
	}
	return destinationOf(w)
}

// destinationOf is the destination that shares call slots: a host, or a key of a
// Secret, because the Secret is read only when the call starts.
func destinationOf(w *v1beta1.Webhook) string {
	if from := w.URLFrom; from != nil {
		return "secret " + from.Name + "/" + from.Key
	}
	target, err := hooks.ParseURL(w.URL)
	if err != nil {
		return "the URL"
	}
	return target.Host
}
