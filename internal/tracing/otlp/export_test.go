package otlp

import (
	"net/http"
	"net/http/httptest"
)

// UseTransport makes a client call a handler without a network, so that a test can use a bubble of
// synctest.
func (c *Client) UseTransport(h http.Handler) {
	c.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result(), nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
