package sqs

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/apicall"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// lifecycle is a lifecycle action, in the detail of an EventBridge message or in Auto Scaling's
// own message (Auto Scaling User Guide, "EventBridge event reference"). Messages of
// 2020 lack origin and destination.
type lifecycle struct {
	Token       string `json:"LifecycleActionToken"`
	Group       string `json:"AutoScalingGroupName"`
	Hook        string `json:"LifecycleHookName"`
	Instance    string `json:"EC2InstanceId"`
	Time        string `json:"Time"`
	Origin      string `json:"Origin"`
	Destination string `json:"Destination"`
}

const warmPool = "WarmPool"

// lifecycle reads a lifecycle action. The resources name only the group.
func (e *envelope) lifecycle() (lifecycle, error) {
	var l lifecycle
	if err := e.into(&l); err != nil {
		return l, err
	}
	if e.Source == autoScaling {
		e.Time = l.Time
	}
	id, ok := instanceIn(l.Instance)
	if !ok {
		return l, unreadable("detail.EC2InstanceId", "%s is no instance id: expected i- and 8 to 17 hexadecimal digits", quote(l.Instance))
	}
	l.Instance = id
	return l, nil
}

// readTerminating: the group terminates the instance, and waits for the hook. The message does
// not have the timeout. An instance that returns to the warm pool is stopped, or at least out of
// service; one that is deleted from the pool has no pods.
func readTerminating(e *envelope) (decoded, error) {
	l, err := e.lifecycle()
	switch {
	case err != nil:
		return decoded{}, err
	case l.Origin == warmPool:
		return decoded{unconcern: "the instance is deleted from its warm pool, where it runs no pods", ordinary: true, scaling: l.Group}, nil
	}
	n, err := e.about(l.Instance, notice.KindAutoScalingTermination)
	if err != nil {
		return decoded{}, err
	}
	n.InstanceAction = notice.ActionTerminate
	n.LifecycleHook = &v1beta1.LifecycleHookInvocation{Group: notice.Cut(l.Group, 255), Name: notice.Cut(l.Hook, 255)}
	// The action is the same with and without EventBridge.
	if token := strings.TrimSpace(l.Token); token != "" && len(token) <= maxID {
		n.ID, n.Subject, n.LifecycleHook.Token = token, token, token
	}
	does := "terminates the instance"
	if l.Destination == warmPool {
		n.InstanceAction, does = notice.ActionReturn, "takes the instance back into its warm pool"
	}
	n.Description = fmt.Sprintf("Auto Scaling group %s %s and waits for its hook %s", n.LifecycleHook.Group, does, n.LifecycleHook.Name)
	d := one(n)
	d.scaling = l.Group
	return d, nil
}

// readLaunching: a launch interrupts no node.
func readLaunching(e *envelope) (decoded, error) {
	l, err := e.lifecycle()
	if err != nil {
		return decoded{}, err
	}
	where := "into service"
	if l.Destination == warmPool {
		where = "into the warm pool"
	}
	return decoded{unconcern: "an instance is launched " + where + "; the launch controller answers its hook", ordinary: true, scaling: l.Group}, nil
}

// result is Auto Scaling's message after an action.
type result struct {
	Group       string `json:"AutoScalingGroupName"`
	Instance    string `json:"EC2InstanceId"`
	Message     string `json:"StatusMessage"`
	Cause       string `json:"Cause"`
	Destination string `json:"Destination"`
}

// readTerminated: the instance is gone; the cause has the reason.
func readTerminated(e *envelope) (decoded, error) {
	var r result
	if err := e.into(&r); err != nil {
		return decoded{}, err
	}
	if r.Destination == warmPool {
		return decoded{unconcern: "the instance went back to its warm pool", ordinary: true, scaling: r.Group}, nil
	}
	id, ok := instanceIn(r.Instance)
	if !ok {
		return decoded{}, unreadable("detail.EC2InstanceId", "%s is no instance id: expected i- and 8 to 17 hexadecimal digits", quote(r.Instance))
	}
	n, err := e.about(id, notice.KindInstanceStateChange)
	if err != nil {
		return decoded{}, err
	}
	n.InstanceState = notice.StateTerminated
	n.Deadline = notice.At(n.Time.Time, v1beta1.DeadlineHard)
	n.Description = fmt.Sprintf("Auto Scaling group %s has terminated the instance", notice.Cut(r.Group, 255))
	if r.Cause != "" {
		n.Description += ": " + notice.Cut(r.Cause, 700)
	}
	d := one(n)
	d.scaling = r.Group
	return d, nil
}

// readScalingFailure: an action of the group failed; no node is affected.
func readScalingFailure(e *envelope) (decoded, error) {
	var r result
	if err := e.into(&r); err != nil {
		return decoded{}, err
	}
	return decoded{unconcern: fmt.Sprintf("Auto Scaling group %s failed: %s", quote(r.Group), quote(r.Message)), scaling: r.Group}, nil
}

func readLaunched(e *envelope) (decoded, error) {
	var r result
	if e.into(&r) != nil {
		r.Group = "" // not used for launches
	}
	return decoded{unconcern: "an instance was launched", ordinary: true, scaling: r.Group}, nil
}

// readTrail: CloudTrail's record of a refused call that completes a lifecycle action. Its records
// arrive minutes late (AWS CloudTrail User Guide). A drill names no real group.
func readTrail(e *envelope) (decoded, error) {
	var call apicall.Record
	if err := e.into(&call); err != nil {
		return decoded{}, err
	}
	refusal, unconcern, ordinary := call.Refusal()
	if unconcern != "" {
		return decoded{unconcern: unconcern, ordinary: ordinary}, nil
	}
	n, err := e.about(refusal.Instance, notice.KindLifecycleActionFailure)
	if err != nil {
		return decoded{}, err
	}
	refusal.Fill(&n.Notice)
	if n.Drill {
		return one(n), nil
	}
	return decoded{groups: []group{{filter: apicall.FilterGroup, value: refusal.Group, notice: n}}}, nil
}
