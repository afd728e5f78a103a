//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// TestNodeIsUntouchedUntilRecordExists denies creating Interruptions. The spot warning must stay in
// the queue and the node unchanged. Once creating is allowed, the node is drained.
func TestNodeIsUntouchedUntilRecordExists(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := r.launch(1)[0]
	before := r.settled(in)
	allow := r.denyRecords()
	r.say("denied", spotWarning, in, map[string]string{"instance-action": "terminate"})
	r.until("the message to be handed back twice", 2*time.Minute, func(context.Context) (bool, error) {
		n := r.metric("lifeboat_received_messages_total", `outcome="failed"`)
		return n >= 2, fmt.Errorf("%v denied", n)
	})
	if record, err := r.record(t.Context(), in.ID); record != nil || err != nil {
		t.Fatalf("record %v, error %v, want neither", record, err)
	}
	if diff := cmp.Diff(before, r.visible(in)); diff != "" {
		t.Errorf("the node changed before the record exists: %s", diff)
	}
	allow()
	r.reaches(in.ID, v1beta1.PhaseDrained, 2*time.Minute)
}

// say sends a notice about an instance straight to the queue.
func (r *rig) say(id, detailType string, in ec2.Instance, detail map[string]string) {
	r.t.Helper()
	st := r.State()
	detail["instance-id"] = in.ID
	r.send(envelope(id, detailType, st.Account, st.Region, time.Now(), detail))
}

// denyRecords makes the API server reject creating Interruptions until the returned function is
// called.
func (r *rig) denyRecords() (allow func()) {
	r.t.Helper()
	name, no := "no-records", "it is tested what happens without"
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{v1beta1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"interruptions"}},
			},
		}}},
		Validations: []admissionv1.Validation{{Expression: "false", Message: no, Reason: new(metav1.StatusReasonForbidden)}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	r.apply(policy, binding)
	denied := func(ctx context.Context) (bool, error) {
		in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000001"}}
		in.Spec = v1beta1.InterruptionSpec{InstanceID: in.Name, NodeName: "none", Notices: []v1beta1.Notice{{
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
