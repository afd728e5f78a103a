package clusterdns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func resolver(t *testing.T, lookup Lookup) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go Serve(conn, lookup)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

func TestServiceNames(t *testing.T) {
	t.Parallel()
	no := false
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}
	}
	r := resolver(t, Services(fake.NewClientset(
		&corev1.Service{ObjectMeta: meta("web", nil), Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7"}},
		&corev1.Service{ObjectMeta: meta("db", nil), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&corev1.Service{ObjectMeta: meta("idle", nil), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: meta("db-1", map[string]string{discoveryv1.LabelServiceName: "db"}),
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.244.0.3"}},
				{Addresses: []string{"10.244.0.4"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}},
				{Addresses: []string{"fd00::3"}},
			},
		},
	)))
	for name, want := range map[string][]string{
		"web.shop.svc.cluster.local.":                     {"10.96.0.7"},
		"db.shop.svc.cluster.local.":                      {"10.244.0.3"}, // only Ready endpoints
		"idle.shop.svc.cluster.local.":                    nil,
		"web.other.svc.cluster.local.":                    nil,
		"web.shop.svc.lifeboat-system.svc.cluster.local.": nil, // with a search domain appended
		"example.com.":                                    nil,
		"sqs.us-east-1.amazonaws.com.svc.cluster.local.":  nil,
	} {
		got, err := r.LookupHost(t.Context(), name)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
		var dns *net.DNSError
		if want == nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
			t.Errorf("%s: error %v, want that it does not exist", name, err)
		}
	}
}

func TestUnreadableQueriesGetNoAnswer(t *testing.T) {
	t.Parallel()
	lookup := func(context.Context, string, string) ([]netip.Addr, bool, error) { return nil, true, nil }
	if got, err := answer(t.Context(), []byte("GET / HTTP/1.1"), lookup); err == nil {
		t.Errorf("the answer is %x", got)
	}
}

func TestFailedLookupIsServerFailure(t *testing.T) {
	t.Parallel()
	r := resolver(t, func(context.Context, string, string) ([]netip.Addr, bool, error) {
		return nil, false, errors.New("no API server")
	})
	var dns *net.DNSError
	if _, err := r.LookupHost(t.Context(), "web.shop.svc.cluster.local."); !errors.As(err, &dns) || !dns.IsTemporary {
		t.Errorf("error %v, want a temporary one", err)
	}
}
