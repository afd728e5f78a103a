package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func runCheck(ctx context.Context, args ...string) error {
	cmd := root()
	cmd.SetArgs(append([]string{"check"}, args...))
	cmd.SetOut(&strings.Builder{})
	return cmd.ExecuteContext(ctx)
}

func TestCheckWaitsForStatusOK(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	if err := runCheck(t.Context(), "--url", server.URL); err != nil || asked.Load() != 2 {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
}

func TestCheckFailsWithLastError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if err := runCheck(t.Context(), "--url", server.URL, "--timeout", "50ms"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want the status in it", err)
	}
	if err := runCheck(t.Context()); err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("without a URL: %v", err)
	}
}
