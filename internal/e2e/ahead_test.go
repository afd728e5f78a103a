//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// TestANodeIsCordonedAheadOfItsRecord: while no record can be made the node of a spot warning
// is cordoned all the same, and stays so when the message comes again; once a record can be
// made it goes on from there.
func TestANodeIsCordonedAheadOfItsRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := r.launch(1)[0]
	r.settled(in)
	allow := r.denyRecords()
	r.say("again and again", spotWarning, in, map[string]string{"instance-action": "terminate"})
	r.untilCordoned(in)
	if record, err := r.record(t.Context(), in.ID); record != nil || err != nil {
		t.Fatalf("there is a record %v, or it cannot be read: %v", record, err)
	}
	before := r.untilTold(in)
	r.until("the message to be handed back twice", 2*time.Minute, func(context.Context) (bool, error) {
		n := r.metric("lifeboat_received_messages_total", `outcome="failed"`)
		return n >= 2, fmt.Errorf("%v were", n)
	})
	if diff := cmp.Diff(before, r.visible(in)); diff != "" {
		t.Errorf("the node did not stay as it was: %s", diff)
	}
	allow()
	r.reaches(in.ID, v1alpha1.PhaseDrained, 2*time.Minute)
}

// TestANodeWhoseRecordNeverComesIsPutBack: its message is gone before a record could be made.
func TestANodeWhoseRecordNeverComesIsPutBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := r.launch(1)[0]
	before := r.settled(in)
	r.denyRecords()
	r.say("never", stateChange, in, map[string]string{"state": "stopping"})
	r.untilCordoned(in)
	if err := r.AWS().States.SQS.Purge(path.Base(r.State().QueueURL)); err != nil {
		t.Fatal(err)
	}
	r.until("the node to be put back", 3*time.Minute, func(context.Context) (bool, error) {
		diff := cmp.Diff(before, r.visible(in))
		return diff == "", errors.New(diff)
	})
}

// say sends a notice of an instance, now and once.
func (r *rig) say(id, detailType string, in ec2.Instance, detail map[string]string) {
	r.t.Helper()
	st := r.State()
	detail["instance-id"] = in.ID
	r.send(envelope(id, detailType, st.Account, st.Region, time.Now(), detail))
}

// untilTold returns what is visible of a cordoned node once Kubernetes' own taint, with the
// time, is there too.
func (r *rig) untilTold(in ec2.Instance) map[string]any {
	r.t.Helper()
	r.until("the node to be tainted by Kubernetes too", time.Minute, func(ctx context.Context) (bool, error) {
		node, err := r.node(ctx, in)
		return err == nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }), err
	})
	return r.visible(in)
}

func (r *rig) untilCordoned(in ec2.Instance) {
	r.t.Helper()
	r.until("the node to be cordoned", time.Minute, func(ctx context.Context) (bool, error) {
		node, err := r.node(ctx, in)
		return err == nil && action.IsMarked(node, action.MarkDoomed), err
	})
}

// denyRecords has the API server refuse to make Interruptions until the function that it
// returns is called.
func (r *rig) denyRecords() (allow func()) {
	r.t.Helper()
	name, no := "no-records", "it is tested what happens without"
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"interruptions"}},
			},
		}}},
		Validations: []admissionv1.Validation{{Expression: "false", Message: no, Reason: new(metav1.StatusReasonForbidden)}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	r.apply(policy, binding)
	denied := func(ctx context.Context) (bool, error) {
		in := &v1alpha1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000001"}}
		in.Spec = v1alpha1.InterruptionSpec{InstanceID: in.Name, NodeName: "none", Notices: []v1alpha1.Notice{{
			ID: "a", Kind: notice.KindRebalanceRecommendation, Source: notice.SourceQueue, Time: metav1.Now(), ReceivedTime: metav1.NowMicro(),
		}}}
		err := r.client.Create(ctx, in, client.DryRunAll)
		return apierrors.IsForbidden(err), err
	}
	r.until("records to be refused", time.Minute, denied)
	return func() {
		r.t.Helper()
		if err := r.client.Delete(r.t.Context(), binding); err != nil {
			r.t.Fatal(err)
		}
		r.until("records to be taken", time.Minute, func(ctx context.Context) (bool, error) {
			no, err := denied(ctx)
			return !no, err
		})
	}
}
