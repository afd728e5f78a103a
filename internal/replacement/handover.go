package replacement

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Ends reports whether what a notice says ends the instance, so that its
// NodeClaim is given over: a reboot, or a moment without power, does not.
func Ends(n v1alpha1.Notice) bool {
	return n.InstanceAction != notice.ActionReboot && n.InstanceAction != notice.ActionMaintain
}

// HandoverAt is when a doomed NodeClaim is given over to Karpenter although pods
// are still leaving: when the grace of all is over, since Karpenter does not wait
// for those that tolerate its taint (kubernetes-sigs/karpenter, pkg/utils/pod,
// IsDrainable). Zero: never.
func HandoverAt(d *v1alpha1.Deadline, margin time.Duration) time.Time {
	if !isHard(d) {
		return time.Time{}
	}
	return d.Time.Add(-margin)
}

// HandoverDue reports whether a doomed NodeClaim is to be given over to Karpenter:
// no pod is left that had to leave, or all were asked to stop and their time is
// over.
func HandoverDue(plan drain.Plan, d *v1alpha1.Deadline, margin time.Duration, now time.Time) bool {
	if plan.Empty() {
		return true
	}
	at := HandoverAt(d, margin)
	return !at.IsZero() && !now.Before(at) &&
		!slices.ContainsFunc(plan.Left(), func(v drain.Verdict) bool { return v.Step != drain.StepLeaving })
}

// Tightened returns what the termination annotation of a doomed NodeClaim is to
// be, and whether it has to be changed: to a hard deadline, never to a later time
// than stands there.
func Tightened(c *Claim, d *v1alpha1.Deadline) (string, bool) {
	if !isHard(d) {
		return "", false
	}
	at := d.Time.UTC().Truncate(time.Second)
	if stands := c.Termination(); !stands.IsZero() && !stands.After(at) {
		return "", false
	}
	return at.Format(time.RFC3339), true
}

// Place is where the cluster is on AWS.
type Place struct{ Account, Region string }

// Message returns a notice as EventBridge would have put it on Karpenter's queue,
// and whether Karpenter makes anything of it that the deletion of the NodeClaim
// does not tell it: it keeps for some minutes from launching what is being
// reclaimed (Karpenter documentation, "Interruption").
func Message(n v1alpha1.Notice, instanceID, zone string, p Place) (string, bool) {
	detail := map[string]string{"instance-id": instanceID, "instance-action": "terminate"}
	var typ string
	switch n.Kind {
	case notice.KindSpotInterruption:
		typ = "EC2 Spot Instance Interruption Warning"
		if n.InstanceAction != "" {
			detail["instance-action"] = n.InstanceAction
		}
	case notice.KindCapacityReservationInterruption:
		typ = "EC2 Capacity Reservation Instance Interruption Warning"
		if n.Deadline != nil {
			detail["instance-termination-time"] = n.Deadline.Time.UTC().Format(time.RFC3339)
		}
	default:
		return "", false
	}
	at := n.Time.Time
	if at.IsZero() {
		at = n.ReceivedTime.Time
	}
	text, err := json.Marshal(map[string]any{
		"version": "0", "id": n.ID, "detail-type": typ, "source": "aws.ec2", "account": p.Account, "region": p.Region,
		"time": at.UTC().Format(time.RFC3339), "resources": []string{fmt.Sprintf("arn:aws:ec2:%s:instance/%s", zone, instanceID)},
		"detail": detail,
	})
	return string(text), err == nil
}
