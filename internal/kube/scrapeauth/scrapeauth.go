// Package scrapeauth lets only permitted clients read the metrics. It asks the API server
// who a bearer token belongs to, and whether that user may get /metrics.
//
// controller-runtime's own filter (metrics/filters) does the same by k8s.io/apiserver, which
// would make lifeboatd larger.
package scrapeauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Only if the chart's value metrics.secure is set:
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create,roleName=lifeboat-metrics
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create,roleName=lifeboat-metrics

const (
	// rememberAllowed and rememberRefused are how long an answer holds.
	rememberAllowed = time.Minute
	rememberRefused = 10 * time.Second
	// maxAnswers bounds the memory for answers.
	maxAnswers = 256
	// reviewsPerSecond and reviewBurst limit the requests to the API server, which anyone
	// who reaches the port can cause.
	reviewsPerSecond, reviewBurst = 2, 10
	reviewTimeout                 = 5 * time.Second
)

// Secure serves the metrics by TLS, with a certificate that the process signs itself, and
// only to permitted clients.
func Secure(o metricsserver.Options) metricsserver.Options {
	o.SecureServing = true
	o.FilterProvider = func(cluster *rest.Config, h *http.Client) (metricsserver.Filter, error) {
		reviews, err := client.New(cluster, client.Options{HTTPClient: h, Scheme: clientgoscheme.Scheme})
		if err != nil {
			return nil, fmt.Errorf("making the client for reviews: %w", err)
		}
		return (&Filter{Reviews: reviews, Now: time.Now}).Wrap, nil
	}
	return o
}

// Filter answers requests that a bearer token of the cluster permits, and refuses others.
type Filter struct {
	// Reviews creates TokenReviews and SubjectAccessReviews.
	Reviews client.Client
	// Now is the clock.
	Now func() time.Time

	once    sync.Once
	limit   flowcontrol.RateLimiter
	mu      sync.Mutex
	answers map[[sha256.Size]byte]answer
}

// answer is what a token may do.
type answer struct {
	status int
	until  time.Time
}

// Wrap returns a handler that lets only permitted requests through.
func (f *Filter) Wrap(log logr.Logger, next http.Handler) (http.Handler, error) {
	f.once.Do(func() {
		f.limit = flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewBurst)
		f.answers = map[[sha256.Size]byte]answer{}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := f.check(r)
		if err != nil {
			log.Error(err, "checking who reads the metrics")
		}
		if status == http.StatusOK {
			next.ServeHTTP(w, r)
			return
		}
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, http.StatusText(status), status)
	}), nil
}

// check returns 200 if the request may pass, or the status to refuse it with.
func (f *Filter) check(r *http.Request) (int, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !ok || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := sha256.Sum256([]byte(r.Method + " " + r.URL.Path + " " + token))
	f.mu.Lock()
	known, ok := f.answers[key]
	f.mu.Unlock()
	if ok && f.Now().Before(known.until) {
		return known.status, nil
	}
	if !f.limit.TryAccept() {
		return http.StatusServiceUnavailable, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	status, err := f.review(ctx, token, r.URL.Path, strings.ToLower(r.Method))
	if err != nil {
		return http.StatusInternalServerError, err
	}
	f.remember(key, status)
	return status, nil
}

// review asks the API server.
func (f *Filter) review(ctx context.Context, token, path, verb string) (int, error) {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := f.Reviews.Create(ctx, who); err != nil {
		return 0, fmt.Errorf("creating a TokenReview: %w", withoutToken(err, token))
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range who.Status.User.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Status.User.Username, UID: who.Status.User.UID, Groups: who.Status.User.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}
	if err := f.Reviews.Create(ctx, may); err != nil {
		return 0, fmt.Errorf("creating a SubjectAccessReview: %w", err)
	}
	if may.Status.Denied || !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// withoutToken returns an error that does not repeat the token.
func withoutToken(err error, token string) error {
	return errors.New(strings.ReplaceAll(err.Error(), token, "…"))
}

// remember keeps an answer. If there are too many, it forgets those that no longer hold, or
// else all.
func (f *Filter) remember(key [sha256.Size]byte, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	if len(f.answers) >= maxAnswers {
		for k, a := range f.answers {
			if !now.Before(a.until) {
				delete(f.answers, k)
			}
		}
	}
	if len(f.answers) >= maxAnswers {
		clear(f.answers)
	}
	holds := rememberRefused
	if status == http.StatusOK {
		holds = rememberAllowed
	}
	f.answers[key] = answer{status: status, until: now.Add(holds)}
}
