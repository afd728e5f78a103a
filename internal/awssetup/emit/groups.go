package emit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// Group is an Auto Scaling group whose hooks the template creates.
type Group struct {
	Name string
	// Hooks are the hooks that Lifeboat completes.
	Hooks []Hook
}

// Hook is a lifecycle hook.
type Hook struct {
	Name string
	// Terminating is true for a terminate hook, and false for a launch hook.
	Terminating bool
	Timeout     time.Duration
	// Abandons is true if the default result is ABANDON, and false for CONTINUE.
	Abandons bool
}

// hook is a hook with the field names of AWS's API (EC2 Auto Scaling API Reference,
// PutLifecycleHook).
type hook struct {
	Group      string `json:"autoScalingGroupName"`
	Name       string `json:"lifecycleHookName"`
	Transition string `json:"lifecycleTransition"`
	Timeout    int    `json:"heartbeatTimeout"`
	Result     string `json:"defaultResult"`

	// suffix distinguishes the two hooks of a group in resource names.
	suffix string
}

// hooks returns the hooks of all groups.
func (p Place) hooks() []hook {
	var all []hook
	for _, g := range p.Groups {
		for _, h := range g.Hooks {
			out := hook{Group: g.Name, Name: h.Name, Timeout: int(h.Timeout / time.Second), Transition: "autoscaling:EC2_INSTANCE_LAUNCHING", Result: "CONTINUE", suffix: "Launch"}
			if h.Terminating {
				out.Transition, out.suffix = "autoscaling:EC2_INSTANCE_TERMINATING", "Terminate"
			}
			if h.Abandons {
				out.Result = "ABANDON"
			}
			all = append(all, out)
		}
	}
	return all
}

// groupNames returns the names of the groups.
func (p Place) groupNames() []string {
	var names []string
	for _, g := range p.Groups {
		names = append(names, g.Name)
	}
	return names
}

// shortHash returns a part of a resource name that every tool accepts, for a group
// with any name.
func shortHash(group string) string {
	digest := sha256.Sum256([]byte(group))
	return hex.EncodeToString(digest[:5])
}

// cfnHook depends on the rule for its events, or on the subscription to the shared topic, so that no
// instance waits before the events arrive. CloudFormation adds the hook to an existing group. A hook of a group
// in the same template must be in its LifecycleHookSpecificationList.
func cfnHook(w awssetup.Wiring, h hook) (name string, resource object) {
	after := cfnSubscription
	if w.Topic == "" {
		rule, _ := w.Delivers(awssetup.RoleAutoScalingLifecycle)
		after = cfnName(rule.Role)
	}
	return h.suffix + "Hook" + shortHash(h.Group), object{
		"Type": "AWS::AutoScaling::LifecycleHook", "DependsOn": []string{after},
		"Properties": object{
			"AutoScalingGroupName": h.Group, "LifecycleHookName": h.Name, "LifecycleTransition": h.Transition,
			"HeartbeatTimeout": h.Timeout, "DefaultResult": h.Result,
		},
	}
}

// tfHook returns the hook as a separate resource, and as a part of the group. The
// provider creates hooks in aws_autoscaling_group before the group launches
// instances, and separate ones after the group and its warm pool. Both have the same
// name, so that they are the same hook.
func (t tf) tfHook(h hook) (name string, resource, initial object) {
	initial = object{
		"name": h.Name, "lifecycle_transition": h.Transition, "heartbeat_timeout": h.Timeout, "default_result": h.Result,
	}
	after := "aws_sns_topic_subscription." + t.label
	if t.w.Topic == "" {
		rule, _ := t.w.Delivers(awssetup.RoleAutoScalingLifecycle)
		after = "aws_cloudwatch_event_target." + label(rule.Name)
	}
	resource = object{"autoscaling_group_name": h.Group, "depends_on": []string{after}}
	for key, value := range initial {
		resource[key] = value
	}
	return t.label + "_" + map[string]string{"Launch": "launch", "Terminate": "terminate"}[h.suffix] + "_" + shortHash(h.Group), resource, initial
}

// initialHooks returns the hooks for initial_lifecycle_hook, by group.
func (t tf) initialHooks(all []hook) object {
	byGroup := object{}
	for _, h := range all {
		_, _, initial := t.tfHook(h)
		list, _ := byGroup[h.Group].([]any)
		byGroup[h.Group] = append(list, initial)
	}
	return byGroup
}
