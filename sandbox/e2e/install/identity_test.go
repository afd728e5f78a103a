//go:build e2e

package install

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/lifeboat-dev/lifeboat/emulator/sts"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

const (
	roleName = "lifeboat"
	stsPort  = "4567" // in the VPC
	// podIdentityAgent is where the EKS Pod Identity Agent listens on each node. The AWS SDK allows
	// plain HTTP to this address.
	podIdentityAgent = "169.254.170.23"
	// longestCall is how long a call can take after it was signed: a long poll of SQS.
	longestCall = 25 * time.Second
)

// lifetime makes lifeboatd renew credentials every few seconds: it does so five minutes before they
// expire.
const lifetime = 5*time.Minute + 6*time.Second

// The audiences of the tokens that EKS projects into pods (EKS User Guide, "Assign IAM roles to
// Kubernetes service accounts" and "Learn how EKS Pod Identity grants pods access").
const (
	irsaAudience        = "sts.amazonaws.com"
	podIdentityAudience = "pods.eks.amazonaws.com"
)

// identity exchanges the projected token of a pod for credentials of the emulated account, as STS and
// the EKS Pod Identity Agent do. The API server verifies the tokens.
type identity struct {
	w *world

	mu       sync.Mutex
	sessions map[string]session // by access key
	calls    int                // with one of them
	wrong    []error
}

// session are credentials that were issued for a token of an audience.
type session struct {
	audience, pod string
	until         time.Time
}

// newIdentity gives the role the permissions that the product asks for, and serves both exchanges to
// pods. From then on it follows all calls to the emulated AWS.
func newIdentity(w *world) *identity {
	w.t.Helper()
	i := &identity{w: w, sessions: map[string]session{}}
	permissions, err := json.Marshal(iam.Controller(w.Wiring(), false))
	if err != nil {
		w.t.Fatal(err)
	}
	state := w.AWS().States.IAM
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", i.assumeRole)
	mux.HandleFunc("GET /v1/credentials", i.podIdentity)
	server := httptest.NewServer(mux)
	w.t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	err = errors.Join(
		state.PutRole(roleName), state.PutRolePolicy(roleName, "lifeboat", string(permissions)),
		w.ExposeToPods(w.PodHost()+":"+stsPort, address), w.ExposeToPods(podIdentityAgent+":80", address),
	)
	if err != nil {
		w.t.Fatal(err)
	}
	w.AWS().Gate.Watch(i.called)
	return i
}

// called checks a call to the emulated AWS.
func (i *identity) called(r *wire.Request, failure *wire.Error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, known := i.sessions[r.AccessKey]
	if !known {
		return // by the test itself
	}
	i.calls++
	if time.Now().After(s.until.Add(longestCall)) {
		i.wrong = append(i.wrong, fmt.Errorf("%s %s with credentials that expired at %s", r.Service, r.Action, s.until))
	}
	if failure != nil {
		i.wrong = append(i.wrong, fmt.Errorf("%s %s: %w", r.Service, r.Action, failure))
	}
}

// issue returns credentials for a token, if it is one of the controller for this audience.
func (i *identity) issue(ctx context.Context, token, audience string) (sts.Credentials, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}}}
	if err := i.w.client.Create(ctx, review); err != nil {
		return sts.Credentials{}, err
	}
	want := "system:serviceaccount:" + iam.Namespace + ":" + iam.ServiceAccount
	if got := review.Status; !got.Authenticated || got.User.Username != want {
		return sts.Credentials{}, fmt.Errorf("the token is of %q (%s), want one of %s for %s", got.User.Username, got.Error, want, audience)
	}
	until := time.Now().Add(lifetime).Truncate(time.Second)
	arn := fmt.Sprintf("arn:aws:iam::%s:role/%s", i.w.State().Account, roleName)
	_, c := i.w.AWS().States.STS.AssumeRole(arn, "pod", until)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sessions[c.AccessKeyID] = session{audience, strings.Join(review.Status.User.Extra["authentication.kubernetes.io/pod-name"], " "), until}
	return c, nil
}

// assumeRole is AssumeRoleWithWebIdentity (AWS STS API Reference).
func (i *identity) assumeRole(w http.ResponseWriter, r *http.Request) {
	c, err := i.issue(r.Context(), r.FormValue("WebIdentityToken"), irsaAudience)
	if err != nil || r.FormValue("Action") != "AssumeRoleWithWebIdentity" {
		i.refuse(w, fmt.Errorf("%s: %w", r.FormValue("Action"), err))
		return
	}
	type credentials struct{ AccessKeyId, SecretAccessKey, SessionToken, Expiration string } // AWS's names
	err = xml.NewEncoder(w).Encode(struct {
		XMLName     xml.Name    `xml:"AssumeRoleWithWebIdentityResponse"`
		Credentials credentials `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}{Credentials: credentials{c.AccessKeyID, c.SecretAccessKey, c.SessionToken, c.Expiration.UTC().Format(time.RFC3339)}})
	if err != nil {
		i.refuse(w, err)
	}
}

// podIdentity is the endpoint of the EKS Pod Identity Agent.
func (i *identity) podIdentity(w http.ResponseWriter, r *http.Request) {
	c, err := i.issue(r.Context(), r.Header.Get("Authorization"), podIdentityAudience)
	if err != nil {
		i.refuse(w, err)
		return
	}
	err = json.NewEncoder(w).Encode(map[string]string{
		"AccessKeyId": c.AccessKeyID, "SecretAccessKey": c.SecretAccessKey, "Token": c.SessionToken,
		"Expiration": c.Expiration.UTC().Format(time.RFC3339),
	})
	if err != nil {
		i.refuse(w, err)
	}
}

func (i *identity) refuse(w http.ResponseWriter, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wrong = append(i.wrong, err)
	http.Error(w, err.Error(), http.StatusForbidden)
}

// renewed waits until a pod has renewed its credentials for tokens of an audience twice, and checks
// all calls until then.
func (i *identity) renewed(audience string) {
	i.w.t.Helper()
	i.w.until("credentials for "+audience+" to be renewed", func(context.Context) (bool, error) {
		issued := i.issued(audience)
		return slices.Max(append(slices.Collect(maps.Values(issued)), 0)) >= 3, fmt.Errorf("by pod: %v", issued)
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.w.t.Logf("FIGURES %d credentials were issued, and %d calls made with them", len(i.sessions), i.calls)
	for _, err := range i.wrong {
		i.w.t.Error(err)
	}
	i.wrong = nil
}

// issued counts the credentials for tokens of an audience by pod.
func (i *identity) issued(audience string) map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	byPod := map[string]int{}
	for _, s := range i.sessions {
		if s.audience == audience {
			byPod[s.pod]++
		}
	}
	return byPod
}
