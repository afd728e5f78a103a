package policystatus_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/policystatus"
)

// world is a cluster with one policy. It counts writes.
type world struct {
	client  client.Client
	loop    *policystatus.Controller
	patches int
	fails   error // what the API server says to a patch
}

func newWorld(t *testing.T, p *v1beta1.InterruptionPolicy) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(p).WithStatusSubresource(p).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				w.patches++
				if w.fails != nil {
					return w.fails
				}
				return c.SubResource(sub).Patch(ctx, o, patch, opts...)
			},
		}).Build()
	w.loop = policystatus.New(w.client)
	return w
}

func (w *world) read(t *testing.T) *v1beta1.InterruptionPolicy {
	t.Helper()
	p := &v1beta1.InterruptionPolicy{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "p"}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// pass reads the policy and reconciles once.
func (w *world) pass(t *testing.T) error {
	t.Helper()
	result, err := w.loop.Reconcile(t.Context(), w.read(t))
	if !result.IsZero() {
		t.Errorf("it wants to be called again: %+v", result)
	}
	return err
}

func named(generation int64, kinds ...string) *v1beta1.InterruptionPolicy {
	return &v1beta1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: generation},
		Spec:       v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{Kinds: kinds, Action: v1beta1.ActionDrain}}},
	}
}

func TestPolicyReportsAccepted(t *testing.T) {
	lost := named(5, "*")
	lost.Spec.Nodes.NodePools = []string{""}
	for _, c := range []struct {
		name   string
		policy *v1beta1.InterruptionPolicy
		want   metav1.Condition
	}{
		{"a good one", named(3, "*"), metav1.Condition{
			Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Valid", Message: "in force", ObservedGeneration: 3,
		}},
		{"a wrong one", named(4), metav1.Condition{
			Type: "Accepted", Status: metav1.ConditionFalse, Reason: "Invalid", ObservedGeneration: 4,
			Message: `not in force: rule 1: it has no kinds: write AutoScalingTermination, CapacityBlockExpiration, CapacityReservationInterruption, HealthIssue, InstanceStateChange, InstanceStatus, LifecycleActionFailure, RebalanceRecommendation, ScheduledChange, SpotInterruption, Requested, or "*" for all; until it is corrected, the built-in defaults rule on the nodes that it selects: they need approval, except where the instance goes in any case`,
		}},
		{"a wrong selector", lost, metav1.Condition{
			Type: "Accepted", Status: metav1.ConditionFalse, Reason: "Invalid", ObservedGeneration: 5,
			Message: "not in force: nodes.nodePools has an empty name: write the name of a Karpenter NodePool, or remove the entry" +
				"; until it is corrected, it selects no node, and other policies and the built-in defaults rule",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.policy)
			for range 2 { // the second finds it done
				if err := w.pass(t); err != nil {
					t.Fatal(err)
				}
			}
			got := w.read(t).Status.Conditions
			if diff := cmp.Diff([]metav1.Condition{c.want}, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if w.patches != 1 {
				t.Errorf("%d patches, want 1", w.patches)
			}
		})
	}
}

func TestCorrectedPolicyIsAccepted(t *testing.T) {
	w := newWorld(t, named(1, "SpotInteruption"))
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := w.read(t)
	p.Spec.Rules[0].Kinds = []string{"SpotInterruption"}
	if err := w.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if got := w.read(t).Status.Conditions; len(got) != 1 || got[0].Status != metav1.ConditionTrue || got[0].Message != "in force" {
		t.Errorf("conditions %+v", got)
	}
}

// TestManyProblemsAreTruncatedInCondition: the API server takes 32,768 characters.
func TestManyProblemsAreTruncatedInCondition(t *testing.T) {
	p := named(1)
	rule := v1beta1.Rule{Action: v1beta1.ActionDrain}
	for range 32 {
		rule.Kinds = append(rule.Kinds, strings.Repeat("ü", 63))
	}
	p.Spec.Rules = nil
	for range 32 {
		p.Spec.Rules = append(p.Spec.Rules, rule)
	}
	w := newWorld(t, p)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if got := w.read(t).Status.Conditions; len(got) != 1 || len([]rune(got[0].Message)) != 32768 || !strings.HasSuffix(got[0].Message, "goes in any case") {
		t.Errorf("%d conditions; the message has %d characters", len(got), len([]rune(got[0].Message)))
	}
}

func TestAPIServerErrors(t *testing.T) {
	resource := schema.GroupResource{Group: "lifeboat.dev", Resource: "interruptionpolicies"}
	down := errors.New("the API server is away")
	for _, c := range []struct {
		name       string
		says, want error
	}{
		{"an error is one", down, down},
		{"a conflict is tried again", apierrors.NewConflict(resource, "p", down), apierrors.NewConflict(resource, "p", down)},
		{"a policy that was deleted meanwhile is ignored", apierrors.NewNotFound(resource, "p"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, named(1, "*"))
			w.fails = c.says
			err := w.pass(t)
			if (err == nil) != (c.want == nil) || err != nil && !strings.Contains(err.Error(), "setting the condition Accepted: "+c.want.Error()) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
