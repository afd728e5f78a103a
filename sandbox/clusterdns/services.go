package clusterdns

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Services looks Services up in a cluster: their own address, or for headless ones those of their
// Ready endpoints.
func Services(c kubernetes.Interface) Lookup {
	return func(ctx context.Context, namespace, name string) ([]netip.Addr, bool, error) {
		service, err := c.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("reading the Service: %w", err)
		}
		if service.Spec.ClusterIP != corev1.ClusterIPNone {
			address, err := netip.ParseAddr(service.Spec.ClusterIP)
			return []netip.Addr{address}, err == nil, nil
		}
		slices, err := c.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=" + name,
		})
		if err != nil {
			return nil, false, fmt.Errorf("listing the Service's endpoints: %w", err)
		}
		addresses := ready(slices.Items)
		return addresses, len(addresses) > 0, nil
	}
}

func ready(slices []discoveryv1.EndpointSlice) []netip.Addr {
	var out []netip.Addr
	for _, s := range slices {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
					out = append(out, a)
				}
			}
		}
	}
	return out
}
