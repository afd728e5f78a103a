//go:build e2e

package chart_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lifeboat-dev/lifeboat/internal/kube/scrapeauth"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// tokenOf creates a ServiceAccount and returns a token of it.
func tokenOf(t *testing.T, name string) string {
	t.Helper()
	c := admin(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, account) })
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// serveMetrics serves metrics as the controller does, and returns their address.
func serveMetrics(t *testing.T, config *rest.Config) string {
	t.Helper()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := metricsserver.NewServer(scrapeauth.Secure(metricsserver.Options{BindAddress: "127.0.0.1:0"}), config, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	address := ""
	until(t, "the metrics to be served", func() (bool, error) {
		address = s.(interface{ GetBindAddr() string }).GetBindAddr()
		return address != "", nil
	})
	return address
}

func TestSecureMetricsNeedPermittedToken(t *testing.T) {
	c := admin(t)
	address := serveMetrics(t, as(t, chart.ControllerAccount, nil))
	prometheus, guest := tokenOf(t, "prometheus"), tokenOf(t, "guest")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus-lifeboat"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lifeboat-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "prometheus"}},
	}
	if err := c.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, binding) })
	insecure := &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	scrape := func(scheme, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+address+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := insecure.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, fmt.Sprint(string(body), err)
	}
	if code, body := scrape("https", prometheus); code != http.StatusInternalServerError {
		t.Errorf("without the permission to ask, %d %.200s: want 500", code, body)
	}
	for _, o := range render(t, with(t, "metrics: {secure: true}")).Objects {
		if strings.HasPrefix(o.GetKind(), "ClusterRole") && strings.HasPrefix(o.GetName(), "lifeboat-metrics") {
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { remove(t, o) })
		}
	}
	until(t, "a permitted scrape to succeed", func() (bool, error) {
		code, body := scrape("https", prometheus)
		if code != http.StatusOK {
			time.Sleep(time.Second) // the reviews are limited
		}
		return code == http.StatusOK, fmt.Errorf("%d %.200s", code, body)
	})
	for name, c := range map[string]struct {
		scheme, token string
		want          int
	}{
		"anonymous":              {"https", "", http.StatusUnauthorized},
		"a forged token":         {"https", "forged", http.StatusUnauthorized},
		"without the permission": {"https", guest, http.StatusForbidden},
		"without TLS":            {"http", prometheus, http.StatusBadRequest},
	} {
		if code, body := scrape(c.scheme, c.token); code != c.want {
			t.Errorf("%s: %d %.200s, want %d", name, code, body, c.want)
		}
	}
}
