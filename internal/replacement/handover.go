package replacement

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Ends reports whether the event of a notice ends the instance, so that its
// NodeClaim is handed over. A reboot or host maintenance does not.
func Ends(n v1beta1.Notice) bool {
	return n.InstanceAction != notice.ActionReboot && n.InstanceAction != notice.ActionMaintain
}

// HandoverAt is when to delete an interrupted NodeClaim although pods are still
// terminating: when all grace periods are over. Karpenter does not wait for
// pods that tolerate its taint (kubernetes-sigs/karpenter, pkg/utils/pod,
// IsDrainable). Zero: never.
func HandoverAt(d *v1beta1.Deadline, margin time.Duration) time.Time {
	if !isHard(d) {
		return time.Time{}
	}
	return d.Time.Add(-margin)
}

// HandoverDue reports whether to hand an interrupted NodeClaim to Karpenter: no
// pod is left that must leave, or all were asked to stop and their time is
// over.
func HandoverDue(plan drain.Plan, d *v1beta1.Deadline, margin time.Duration, now time.Time) bool {
	if plan.Empty() {
		return true
	}
	at := HandoverAt(d, margin)
	return !at.IsZero() && !now.Before(at) &&
		!slices.ContainsFunc(plan.Left(), func(v drain.Verdict) bool { return v.Step != drain.StepLeaving })
}

// Tightened returns the termination annotation of an interrupted NodeClaim, and
// whether it must be changed: to the hard deadline, never to a later time than
// the current value, nor than the NodeClaim's terminationGracePeriod allows.
// Karpenter computes that end only if the annotation does not exist
// (kubernetes-sigs/karpenter, pkg/controllers/nodeclaim/lifecycle).
func Tightened(c *Claim, d *v1beta1.Deadline, now time.Time) (string, bool) {
	if !isHard(d) {
		return "", false
	}
	at := d.Time.UTC().Truncate(time.Second)
	if end := c.graceEnd(now).UTC().Truncate(time.Second); c.TerminationGracePeriod != nil && end.Before(at) {
		at = end
	}
	if stands := c.Termination(); !stands.IsZero() && !stands.After(at) {
		return "", false
	}
	return at.Format(time.RFC3339), true
}

// graceEnd is when the terminationGracePeriod of a NodeClaim ends that is
// deleted already, or now.
func (c *Claim) graceEnd(now time.Time) time.Time {
	if c.TerminationGracePeriod == nil {
		return time.Time{}
	}
	if c.Deleting {
		now = c.DeletionTime
	}
	return now.Add(*c.TerminationGracePeriod)
}

// Place is the AWS account and region of the cluster.
type Place struct{ Account, Region string }

// Message returns a notice in the form of EventBridge's message on Karpenter's
// queue. It returns false if the deletion of the NodeClaim tells Karpenter
// everything. The message makes Karpenter avoid the reclaimed capacity for some
// minutes (Karpenter documentation, "Interruption").
func Message(n v1beta1.Notice, instanceID, zone string, p Place) (string, bool) {
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
