package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pageSize is the number of objects per list call.
	pageSize = 500
	// pageTimeout limits the time of one list call.
	pageTimeout = 30 * time.Second
)

// Scan surveys a cluster. It holds one page of objects at a time. reader must not be
// a cache, which would hold all of them. A list that fails is part of the error, and the survey
// leaves out what would be wrong without it.
func Scan(ctx context.Context, reader client.Reader, o Options) (*Survey, error) {
	s := New(o)
	var failed error
	for _, list := range []func() error{
		func() error {
			return pages(ctx, reader, "nodes", func(l *corev1.NodeList) { each(l.Items, s.AddNode) })
		},
		func() error {
			err := pages(ctx, reader, "PodDisruptionBudgets", func(l *policyv1.PodDisruptionBudgetList) { each(l.Items, s.AddBudget) })
			s.noBudgets = err != nil
			return err
		},
		func() error {
			return pages(ctx, reader, "Services", func(l *corev1.ServiceList) { each(l.Items, s.AddService) })
		},
		func() error {
			return pages(ctx, reader, "webhooks", func(l *admissionv1.ValidatingWebhookConfigurationList) { each(l.Items, s.AddValidatingWebhooks) })
		},
		func() error {
			return pages(ctx, reader, "webhooks", func(l *admissionv1.MutatingWebhookConfigurationList) { each(l.Items, s.AddMutatingWebhooks) })
		},
		func() error {
			err := pages(ctx, reader, "Deployments", func(l *appsv1.DeploymentList) { each(l.Items, s.AddDeployment) })
			s.noDeployments = err != nil
			return err
		},
		func() error {
			return pages(ctx, reader, "StatefulSets", func(l *appsv1.StatefulSetList) { each(l.Items, s.AddStatefulSet) })
		},
		func() error {
			return pages(ctx, reader, "pods", func(l *corev1.PodList) { each(l.Items, s.AddPod) })
		},
	} {
		failed = errors.Join(failed, list())
	}
	return s, failed
}

func each[T any](items []T, add func(*T)) {
	for i := range items {
		add(&items[i])
	}
}

// listOf is a pointer to a list type, so that pages can create one.
type listOf[T any] interface {
	*T
	client.ObjectList
}

// pages lists page by page. If the continue token expires, the list continues from a
// newer state of the cluster, which the API server offers (Kubernetes documentation,
// "API Concepts", on retrieving large results sets in chunks).
func pages[T any, L listOf[T]](ctx context.Context, reader client.Reader, what string, use func(L)) error {
	next := ""
	for {
		into := L(new(T))
		limit, cancel := context.WithTimeout(ctx, pageTimeout)
		err := reader.List(limit, into, client.Limit(pageSize), client.Continue(next))
		cancel()
		if resumed := resumeToken(err); resumed != "" && resumed != next {
			next = resumed
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", what, err)
		}
		use(into)
		if next = into.GetContinue(); next == "" {
			return nil
		}
	}
}

// resumeToken returns the token with which an expired list can continue.
func resumeToken(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
