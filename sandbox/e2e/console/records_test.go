//go:build e2e

package console

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// hostile is text from the cluster that must stay text.
const hostile = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`

// record returns an interruption as the controller writes it 20 s after the notice.
func record(name, node string, noticed time.Time) *v1beta1.Interruption {
	at := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noticed.Add(d)) }
	asked, call, grace := metav1.NewTime(noticed.Add(14*time.Second)), metav1.NewTime(noticed.Add(80*time.Second)), int64(30)
	gone := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noticed.Add(time.Duration(seconds) * time.Second)}
	}
	start, ready := at(time.Second), at(13*time.Second)
	entry := func(d time.Duration, reason, text string) v1beta1.TimelineEntry {
		return v1beta1.TimelineEntry{Time: at(d), Reason: reason, Message: text}
	}
	condition := func(typ, reason, message string, status metav1.ConditionStatus, d time.Duration) metav1.Condition {
		return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noticed.Add(d))}
	}
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.InterruptionSpec{InstanceID: name, NodeName: node, Notices: []v1beta1.Notice{{
			ID: "n1", Kind: "SpotInterruption", Source: "sqs", Time: metav1.NewTime(noticed), ReceivedTime: at(0), Description: "EC2 terminates the instance",
		}}},
		Status: v1beta1.InterruptionStatus{
			Phase: v1beta1.PhaseDraining, Kind: "SpotInterruption", NodeName: node, LastNoticeID: "n1",
			Decision: &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "web", Rule: "spot", Message: `policy "web", rule "spot": drain the node, replacement first`},
			Deadline: &v1beta1.Deadline{Time: metav1.NewTime(noticed.Add(2 * time.Minute)), Type: v1beta1.DeadlineHard},
			Timeline: []v1beta1.TimelineEntry{
				entry(0, v1beta1.ReasonNoticeReceived, "SpotInterruption from sqs"), entry(time.Second, v1beta1.ReasonCordoned, "cordoned, and a replacement is requested"),
				entry(13*time.Second, v1beta1.ReasonReplacementReady, "the replacement is Ready"),
				entry(14*time.Second, v1beta1.ReasonEvicted, "its replacement is ready, so it goes now (3 pods: shop/web-1, shop/web-2, shop/cart-7)"),
				entry(18*time.Second, v1beta1.ReasonPodTerminated, "left shop/web-1 (4s of 30s grace)"), entry(20*time.Second, v1beta1.ReasonPodTerminated, "left shop/web-2 (6s of 30s grace)"),
			},
			Conditions: []metav1.Condition{
				condition(v1beta1.ConditionCordoned, "Cordoned", "", metav1.ConditionTrue, time.Second),
				condition(v1beta1.ConditionReady, "Draining", "2 pods are still on the node", metav1.ConditionFalse, 0),
			},
			Drain: &v1beta1.DrainStatus{
				StartTime: &start, PodCounts: v1beta1.PodCounts{Total: 4, Moved: 2, Leaving: 1, Waiting: 1},
				Pods: []v1beta1.PodStatus{
					{Namespace: "shop", Name: "cart-7", UID: "c", State: "Leaving", Message: "its replacement is ready, so it goes now", EvictionTime: &asked, GraceSeconds: &grace, LastCallTime: &call},
					{Namespace: "shop", Name: "web-1", UID: "a", State: "Left", Message: "its replacement is ready, so it goes now", EvictionTime: &asked, DepartureTime: gone(18), GraceSeconds: &grace},
					{Namespace: "shop", Name: "web-2", UID: "b", State: "Left", Message: "its replacement is ready, so it goes now", EvictionTime: &asked, DepartureTime: gone(20), GraceSeconds: &grace},
					{Namespace: "shop", Name: "db-0", UID: "d", State: "Waiting", Message: "waits for the PodDisruptionBudget shop/db, which allows no disruption", LastCallTime: &call},
				},
				Replacement: &v1beta1.ReplacementStatus{Phase: v1beta1.ReplacementReady, Reason: "Ready", Message: "its node is Ready", NodeName: "ip-10-0-7-7.ec2.internal", StartTime: &start, OrderTime: &start, ReadyTime: &ready},
			},
		},
	}
}

// over makes a record one of the history.
func over(in *v1beta1.Interruption, after time.Duration) *v1beta1.Interruption {
	noticed := in.Spec.Notices[0].ReceivedTime.Time
	in.Status.Phase = v1beta1.PhaseCompleted
	recordtest.Complete(in, noticed.Add(after), "n1")
	in.Status.Drain.PodCounts = v1beta1.PodCounts{Total: 4, Moved: 4}
	for i := range in.Status.Drain.Pods {
		p := &in.Status.Drain.Pods[i]
		switch p.State = v1beta1.PodLeft; p.Name {
		case "cart-7":
			p.DepartureTime = &metav1.Time{Time: noticed.Add(24 * time.Second)}
		case "db-0":
			p.EvictionTime, p.DepartureTime = &metav1.Time{Time: noticed.Add(80 * time.Second)}, &metav1.Time{Time: noticed.Add(99 * time.Second)}
			p.GraceSeconds, p.Overridden = in.Status.Drain.Pods[0].GraceSeconds, "PodDisruptionBudget shop/db"
		}
	}
	in.Status.Timeline = append(in.Status.Timeline,
		v1beta1.TimelineEntry{Time: metav1.NewMicroTime(noticed.Add(24 * time.Second)), Reason: v1beta1.ReasonPodTerminated, Message: "left shop/cart-7 (10s of 30s grace)"},
		v1beta1.TimelineEntry{Time: metav1.NewMicroTime(noticed.Add(80 * time.Second)), Reason: v1beta1.ReasonProtectionOverridden, Message: "shop/db-0 its last call: the PodDisruptionBudget shop/db allows no disruption"},
		v1beta1.TimelineEntry{Time: metav1.NewMicroTime(noticed.Add(99 * time.Second)), Reason: v1beta1.ReasonPodTerminated, Message: "left shop/db-0 (19s of 30s grace)"},
	)
	for i := range in.Status.Conditions {
		if c := &in.Status.Conditions[i]; c.Type == v1beta1.ConditionReady {
			c.Status, c.Message = metav1.ConditionTrue, "4 of 4 pods moved, 0 lost"
		}
	}
	in.Status.Conditions = append(in.Status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionDrained, Status: metav1.ConditionTrue, Reason: "Drained", LastTransitionTime: metav1.NewTime(noticed.Add(99 * time.Second)),
	})
	return in
}

// write creates records with their status, and deletes them after the test.
func (r *rig) write(t *testing.T, all ...*v1beta1.Interruption) {
	t.Helper()
	for _, in := range all {
		status := in.Status
		if err := r.client.Create(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		in.Status = status
		if err := r.client.Status().Update(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		// The context of the test has ended.
		if err := r.client.DeleteAllOf(context.Background(), &v1beta1.Interruption{}); err != nil {
			t.Error(err)
		}
	})
}

// change changes the status of a record.
func (r *rig) change(t *testing.T, name string, change func(*v1beta1.InterruptionStatus)) {
	t.Helper()
	in := &v1beta1.Interruption{}
	if err := r.client.Get(t.Context(), client.ObjectKey{Name: name}, in); err != nil {
		t.Fatal(err)
	}
	change(&in.Status)
	if err := r.client.Status().Update(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
