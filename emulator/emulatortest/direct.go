package emulatortest

import (
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// Direct hands requests to a handler in the goroutine that makes them. No port is
// opened, so that it works in a bubble of testing/synctest.
type Direct struct {
	Handler http.Handler
	// Pass has a request take place, or fails in place of it; nil: all take place.
	Pass func(request func() error) error
}

// RoundTrip implements http.RoundTripper.
func (d Direct) RoundTrip(r *http.Request) (*http.Response, error) {
	var reply *http.Response
	request := func() error {
		if err := r.Context().Err(); err != nil {
			return err
		}
		if r.Body == nil {
			r.Body = http.NoBody // as a server has it
		}
		recorder := httptest.NewRecorder()
		d.Handler.ServeHTTP(recorder, r)
		if err := r.Context().Err(); err != nil {
			return err
		}
		reply = recorder.Result()
		return nil
	}
	pass := d.Pass
	if pass == nil {
		pass = func(request func() error) error { return request() }
	}
	if err := pass(request); err != nil {
		return nil, err
	}
	return reply, nil
}

// Do makes a request, as SDKs want it done.
func (d Direct) Do(r *http.Request) (*http.Response, error) { return d.RoundTrip(r) }

// Config is the configuration of an SDK whose calls go straight to a server.
func Config(server *emulator.Server) aws.Config {
	return ConfigOver(server, Direct{Handler: server.Handler()})
}

// ConfigOver is that of one whose calls go over a transport.
func ConfigOver(server *emulator.Server, over http.RoundTripper) aws.Config {
	return aws.Config{
		Region: server.Region(), HTTPClient: &http.Client{Transport: over},
		Credentials: awshttp.StaticCredentials("AKIATEST", "secret"),
	}
}
