package chaos

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// webhookTimeout is the API server's; it is below the delay of no fault.
	webhookTimeout = 10
	webhookDelay   = 3 * time.Second
	certificateDay = 24 * time.Hour
)

// webhook is a validating webhook that disturbs some requests.
type webhook struct {
	rules []registrationv1.RuleWithOperations
	// users is a CEL expression over the user name u that selects whose requests.
	users string
	delay time.Duration
	// refuse rejects the requests with this status.
	refuse *metav1.Status
}

const (
	lifeboatUsers  = `u.startsWith("system:serviceaccount:lifeboat-system:")`
	schedulerUser  = `u == "system:kube-scheduler"`
	controllerUser = `u == "system:kube-controller-manager" || u.startsWith("system:serviceaccount:kube-system:")`
)

// admissions are faults of admission webhooks. A refusing webhook for the scheduler or the controllers
// stops that part alone: the sandbox runs them in one process with the API server.
func admissions() []Fault {
	evictions := rule("", "pods/eviction", registrationv1.Create)
	nodes := rule("", "nodes", registrationv1.Update)
	status := rule("lifeboat.dev", "interruptions/status", registrationv1.Update)
	deletions := rule("", "pods", registrationv1.Delete)
	all := []registrationv1.RuleWithOperations{evictions, nodes, status, deletions}
	return []Fault{
		webhookFault("slow-admission", "a webhook delays all writes of lifeboatd by "+webhookDelay.String(), webhook{rules: all, users: lifeboatUsers, delay: webhookDelay}),
		webhookFault("refused-evictions", "a webhook rejects all evictions", webhook{
			rules: []registrationv1.RuleWithOperations{evictions}, users: "true", refuse: refusal(http.StatusForbidden, metav1.StatusReasonForbidden),
		}),
		webhookFault("failing-admission", "a webhook fails for all writes of lifeboatd", webhook{
			rules: all, users: lifeboatUsers, refuse: refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		}),
		webhookFault("stuck-scheduler", "the scheduler can bind no pod", webhook{
			rules: []registrationv1.RuleWithOperations{rule("", "pods/binding", registrationv1.Create)}, users: schedulerUser, refuse: refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		}),
		webhookFault("stuck-controllers", "the controllers can create no pod and change no status", webhook{
			rules: []registrationv1.RuleWithOperations{
				rule("", "pods", registrationv1.Create), rule("apps", "*/status", registrationv1.Update), rule("policy", "*/status", registrationv1.Update),
			}, users: controllerUser, refuse: refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		}),
	}
}

func rule(group, resource string, operation registrationv1.OperationType) registrationv1.RuleWithOperations {
	return registrationv1.RuleWithOperations{
		Operations: []registrationv1.OperationType{operation},
		Rule:       registrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}
}

func refusal(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "a fault of lifeboat sandbox chaos"}
}

func webhookFault(name, text string, w webhook) Fault {
	return Fault{Name: name, Text: text, Lasts: true, apply: func(ctx context.Context, b *broken) error { return w.install(ctx, b) }}
}

// install serves the webhook and registers it. If this process is killed, the API server ignores it.
func (w webhook) install(ctx context.Context, b *broken) error {
	certificate, ca, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return fmt.Errorf("opening a webhook: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(w.answer), ReadHeaderTimeout: requestTimeout}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	b.onUndo(func(context.Context) error { return server.Close() })
	config := &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "chaos-" + b.fault.Name + ".lifeboat.dev"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name:                    b.fault.Name + ".chaos.lifeboat.dev",
			ClientConfig:            registrationv1.WebhookClientConfig{URL: ptr.To("https://" + listener.Addr().String() + "/"), CABundle: ca},
			Rules:                   w.rules,
			MatchConditions:         []registrationv1.MatchCondition{{Name: "users", Expression: "[request.userInfo.username].exists(u, " + w.users + ")"}},
			FailurePolicy:           ptr.To(registrationv1.Ignore),
			SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](webhookTimeout),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	b.onUndo(func(ctx context.Context) error {
		return client.IgnoreNotFound(b.kube.Delete(ctx, &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: config.Name}}))
	})
	// A process that was killed may have left one.
	if err := client.IgnoreNotFound(b.kube.Delete(ctx, config.DeepCopy())); err != nil {
		return fmt.Errorf("removing an earlier webhook: %w", err)
	}
	if err := b.kube.Create(ctx, config); err != nil {
		return fmt.Errorf("registering a webhook: %w", err)
	}
	return nil
}

func (w webhook) answer(rw http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(rw, "this is no AdmissionReview", http.StatusBadRequest)
		return
	}
	if w.delay > 0 && !sleep.For(r.Context(), w.delay) {
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: w.refuse == nil, Result: w.refuse}
	review.Request = nil
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review) // the API server has gone
}

// selfSigned makes a certificate for loopback, and its PEM form.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lifeboat chaos"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateDay),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making a certificate: %w", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
