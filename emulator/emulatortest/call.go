package emulatortest

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Call is a request to an emulated service as its clients put it on the wire, for
// services whose SDK is not worth a dependency.
type Call struct {
	// Service is the signing name, and Region what the request is signed for: us-east-1
	// if empty.
	Service, Region string
	// Target is the X-Amz-Target of AWS JSON 1.1. Without one, a call with a body is a
	// form of the Query protocol, and one with a path a GET of REST-JSON.
	Target string
	Path   string
	Body   string
}

// Do makes the call, and returns the status and the body of the answer.
func (c Call) Do(t testing.TB, url string) (status int, body string) {
	t.Helper()
	method, contentType := http.MethodPost, "application/x-www-form-urlencoded; charset=utf-8"
	switch {
	case c.Target != "":
		contentType = "application/x-amz-json-1.1"
	case c.Body == "":
		method, contentType = http.MethodGet, ""
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url+cmp.Or(c.Path, "/"), strings.NewReader(c.Body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.Target != "" {
		req.Header.Set("X-Amz-Target", c.Target)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIATEST/20260511/"+cmp.Or(c.Region, "us-east-1")+"/"+c.Service+
		"/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := HTTPClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
