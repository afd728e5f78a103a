//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// A platform team's policy refuses every change of the nodes of one pool. EC2 reclaims such a node. Each pod
// is asked to leave by its last call, and a person reads which policy refuses.
func TestPolicyThatRefusesTheCordonCostsNoGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := r.launch(1)[0]
	r.runOn(in, "web", 30)
	pods := r.podsOn(in)
	r.denyNodeChanges(in)

	r.reclaim(in)
	var deadline time.Time
	r.until("status to name the policy", 10*time.Second, func(ctx context.Context) (bool, error) {
		record, err := r.record(ctx, in.ID)
		if err != nil || record == nil || record.Status.Deadline == nil {
			return false, err
		}
		deadline = record.Status.Deadline.Time.Time
		c := meta.FindStatusCondition(record.Status.Conditions, v1beta1.ConditionRequestsAccepted)
		return c != nil && c.Reason == v1beta1.ReasonNodeWriteRefused && strings.Contains(c.Message, platformNodes), fmt.Errorf("%+v", record.Status.Conditions)
	})
	r.until("Events about node and record to name the policy", 10*time.Second, func(ctx context.Context) (bool, error) {
		var all eventsv1.EventList
		if err := r.client.List(ctx, &all); err != nil {
			return false, err
		}
		about := map[string]bool{}
		for _, e := range all.Items {
			if e.Reason == v1beta1.ReasonNodeWriteRefused && e.Type == corev1.EventTypeWarning && strings.Contains(e.Note, platformNodes) {
				about[e.Regarding.Kind] = true
			}
		}
		return about["Node"] && about["Interruption"], fmt.Errorf("%v", about)
	})
	if n := r.metric("lifeboat_refused_writes_total", `"node"`); n < 1 {
		t.Errorf("%v refused writes are counted", n)
	}
	if out, _ := r.cli("status"); !strings.Contains(out, platformNodes) {
		t.Errorf("lifeboat status does not name the policy:\n%s", out)
	}
	if out, _ := r.cli("doctor"); !strings.Contains(out, "write-refused") || !strings.Contains(out, "BROKEN") || !strings.Contains(out, platformNodes) {
		t.Errorf("lifeboat doctor does not name the policy:\n%s", out)
	}
	for _, pod := range pods {
		lastCall := deadline.Add(-time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second)
		r.until("pod "+pod.Name+" to be asked by its last call", time.Until(lastCall)+time.Second, func(ctx context.Context) (bool, error) {
			var now corev1.Pod
			err := r.client.Get(ctx, client.ObjectKeyFromObject(&pod), &now)
			if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
				return true, nil
			}
			return err == nil && now.DeletionTimestamp != nil, err
		})
	}
}

// platformNodes is the name of the policy.
const platformNodes = "platform-nodes"

// denyNodeChanges makes the API server refuse each change of a node but not of its status.
func (r *rig) denyNodeChanges(in ec2.Instance) {
	r.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: platformNodes}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"nodes"}},
			},
		}}},
		Validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf("object.metadata.name != '%s'", in.PrivateDNSName), Message: "only the platform team changes these nodes", Reason: new(metav1.StatusReasonForbidden),
		}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: platformNodes}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: platformNodes, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	r.apply(policy, binding)
	r.until("changes of the node to be refused", time.Minute, func(ctx context.Context) (bool, error) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: in.PrivateDNSName}}
		err := r.client.Patch(ctx, n, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"example.com/tried":"yes"}}}`)), client.DryRunAll)
		return apierrors.IsForbidden(err), err
	})
}
