package scrapeauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/kube/scrapeauth"
)

// apiServer answers reviews: the token prometheus is permitted, the token guest is not.
type apiServer struct {
	reviews int
	fails   error
}

func (a *apiServer) client() client.Client {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			a.reviews++
			switch r := o.(type) {
			case *authenticationv1.TokenReview:
				r.Status.Authenticated = r.Spec.Token == "prometheus" || r.Spec.Token == "guest"
				r.Status.User.Username = r.Spec.Token
			case *authorizationv1.SubjectAccessReview:
				a := r.Spec.NonResourceAttributes
				r.Status.Allowed = r.Spec.User == "prometheus" && a.Path == "/metrics" && a.Verb == "get"
			}
			return a.fails
		},
	}).Build()
}

func handlerOf(t *testing.T, a *apiServer, now *time.Time) http.Handler {
	t.Helper()
	f := &scrapeauth.Filter{Reviews: a.client(), Now: func() time.Time { return *now }}
	h, err := f.Wrap(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func scrape(h http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, http.NoBody)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	h.ServeHTTP(w, r)
	return w
}

func TestScrapeNeedsPermittedToken(t *testing.T) {
	now := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	for _, c := range []struct {
		name, method, path, authorization string
		fails                             error
		want                              int
	}{
		{"a permitted token", "GET", "/metrics", "Bearer prometheus", nil, http.StatusOK},
		{"no token", "GET", "/metrics", "", nil, http.StatusUnauthorized},
		{"an empty token", "GET", "/metrics", "Bearer ", nil, http.StatusUnauthorized},
		{"a password", "GET", "/metrics", "Basic cHJvbWV0aGV1cw==", nil, http.StatusUnauthorized},
		{"an unknown token", "GET", "/metrics", "Bearer forged", nil, http.StatusUnauthorized},
		{"a token without the permission", "GET", "/metrics", "Bearer guest", nil, http.StatusForbidden},
		{"another verb", "POST", "/metrics", "Bearer prometheus", nil, http.StatusForbidden},
		{"another path", "GET", "/debug", "Bearer prometheus", nil, http.StatusForbidden},
		{"no answer of the API server", "GET", "/metrics", "Bearer prometheus", errors.New("away"), http.StatusInternalServerError},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := scrape(handlerOf(t, &apiServer{fails: c.fails}, &now), c.method, c.path, c.authorization)
			if w.Code != c.want || (w.Body.String() == "metrics") != (c.want == http.StatusOK) {
				t.Errorf("got %d %q, want %d", w.Code, w.Body, c.want)
			}
		})
	}
}

func TestFloodOfTokensCausesFewReviews(t *testing.T) {
	now := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	a := &apiServer{}
	h := handlerOf(t, a, &now)
	if w := scrape(h, "GET", "/metrics", "Bearer prometheus"); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	for i := range 5000 {
		scrape(h, "GET", "/metrics", fmt.Sprint("Bearer forged-", i))
	}
	if a.reviews > 100 {
		t.Errorf("5000 forged tokens caused %d reviews", a.reviews)
	}
	before := a.reviews
	if w := scrape(h, "GET", "/metrics", "Bearer prometheus"); w.Code != http.StatusOK || a.reviews != before {
		t.Errorf("%d, %d more reviews: the permitted scrape must not wait for the flood", w.Code, a.reviews-before)
	}
}

func TestPermissionIsAskedAgainAfterMinute(t *testing.T) {
	now := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	a := &apiServer{}
	h := handlerOf(t, a, &now)
	for i, want := range []int{2, 2, 4} {
		if scrape(h, "GET", "/metrics", "Bearer prometheus"); a.reviews != want {
			t.Errorf("scrape %d: %d reviews, want %d", i, a.reviews, want)
		}
		now = now.Add(31 * time.Second)
	}
}
