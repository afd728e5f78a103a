package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// emptyHome hides the kubeconfig of the machine.
func emptyHome(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
}

func TestConnectionFlagsReachTheAPIServer(t *testing.T) {
	emptyHome(t)
	var first http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first == nil {
			first = r.Header
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	r := (&harness{t: t}).run(t.Context(), "nodegroup", "list", "--server", server.URL, "--as", "jane", "--as-group", "ops", "--as-group", "dev")
	if r.code != ExitFailed || first.Get("Impersonate-User") != "jane" || !slices.Equal(first.Values("Impersonate-Group"), []string{"ops", "dev"}) {
		t.Errorf("exit code %d, header %v: %s", r.code, first, r.err)
	}
}

func TestRequestTimeout(t *testing.T) {
	emptyHome(t)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	start := time.Now()
	r := (&harness{t: t}).run(t.Context(), "nodegroup", "list", "--server", silent.URL, "--request-timeout", "50ms")
	if r.code != ExitFailed || !strings.Contains(r.err, "The cluster does not answer") || time.Since(start) > 10*time.Second {
		t.Errorf("exit code %d after %s: %s", r.code, time.Since(start), r.err)
	}
	r = (&harness{t: t}).run(t.Context(), "nodegroup", "list", "--request-timeout", "soon")
	if r.code != ExitUsage || !strings.Contains(r.err, "write a duration such as 30s") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
