package mutate

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// asDeleted is the pod when its deletion is requested, or nil if it is not.
func asDeleted(t *testing.T, was *corev1.Pod, grace *int64, refuse error) (deleted *corev1.Pod, answer Answer, err error) {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(was.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if refuse != nil {
				return refuse
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			deleted = &corev1.Pod{}
			return c.Get(ctx, client.ObjectKeyFromObject(o), deleted)
		},
	}).Build()
	answer, err = Disrupt(t.Context(), c, was, grace, "deleted at its last call", time.Unix(1_800_000_000, 0))
	return deleted, answer, err
}

// running is a running pod with the condition that the cache keeps.
func running() *corev1.Pod {
	p := pod()
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return p
}

func disruption(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if isDisruption(p.Status.Conditions[i]) {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func TestDeletionSaysWhyFirst(t *testing.T) {
	five, none := int64(5), int64(0)
	for name, tc := range map[string]struct {
		grace *int64
		phase corev1.PodPhase
	}{
		"with its own grace":   {nil, corev1.PodRunning},
		"with a shorter grace": {&five, corev1.PodRunning},
		"of a gone instance":   {&none, corev1.PodFailed},
	} {
		deleted, answer, err := asDeleted(t, running(), tc.grace, nil)
		if err != nil || !answer.Asked || deleted == nil {
			t.Fatalf("%s: answer %+v, error %v", name, answer, err)
		}
		c := disruption(deleted)
		if c == nil || c.Reason != "DeletionByLifeboat" || c.Message != "Lifeboat: deleted at its last call" || deleted.Status.Phase != tc.phase {
			t.Errorf("%s: phase %s, condition %+v", name, deleted.Status.Phase, c)
		}
		if len(deleted.Status.Conditions) != 2 {
			t.Errorf("%s: other conditions are lost: %+v", name, deleted.Status.Conditions)
		}
	}
}

func TestReasonOfAnotherDisruptionStays(t *testing.T) {
	was := running()
	was.Status.Conditions = append(was.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"})
	two := int64(2)
	deleted, _, err := asDeleted(t, was, &two, nil)
	if err != nil || disruption(deleted).Reason != "EvictionByEvictionAPI" {
		t.Errorf("condition %+v, error %v", disruption(deleted), err)
	}
}

// At last call nothing but the deletion itself counts. Where the instance is gone, a status that could
// not be written is written first: no kubelet would ever end the pod's phase.
func TestRefusedStatusPreventsNoDeletion(t *testing.T) {
	none := int64(0)
	for name, refuse := range map[string]error{
		"rbac":    apierrors.NewForbidden(pods, "a", errors.New("rbac")),
		"webhook": denied(http.StatusInternalServerError),
		"other":   apierrors.NewConflict(pods, "a", errors.New("uid")),
		"gone":    apierrors.NewNotFound(pods, "a"),
		"outage":  errors.New("connection refused"),
	} {
		if deleted, answer, err := asDeleted(t, running(), nil, refuse); err != nil || !answer.Asked || deleted == nil {
			t.Errorf("%s at last call: answer %+v, error %v", name, answer, err)
		}
		deleted, answer, err := asDeleted(t, running(), &none, refuse)
		if later := name == "outage"; (err != nil) != later || answer.Asked == later || (deleted == nil) != later {
			t.Errorf("%s, the instance is gone: answer %+v, error %v", name, answer, err)
		}
	}
}

func TestSlowStatusPreventsNoDeletion(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(running()).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			<-ctx.Done() // a slow webhook
			return ctx.Err()
		},
	}).Build()
	if answer, err := Disrupt(t.Context(), c, running(), nil, "why", time.Unix(1_800_000_000, 0)); err != nil || !answer.Asked {
		t.Errorf("answer %+v, error %v", answer, err)
	}
}
