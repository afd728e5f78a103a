package emit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

// Group is an Auto Scaling group whose hooks the template puts.
type Group struct {
	Name string
	// Hooks are those that Lifeboat answers.
	Hooks []Hook
}

// Hook is a lifecycle hook.
type Hook struct {
	Name string
	// Terminating tells a hook of terminations from one of launches.
	Terminating bool
	Timeout     time.Duration
	// Abandons tells whether no answer means ABANDON; otherwise it is CONTINUE.
	Abandons bool
}

// hook is a hook in the words of AWS's API (EC2 Auto Scaling API Reference,
// PutLifecycleHook).
type hook struct {
	Group      string `json:"autoScalingGroupName"`
	Name       string `json:"lifecycleHookName"`
	Transition string `json:"lifecycleTransition"`
	Timeout    int    `json:"heartbeatTimeout"`
	Result     string `json:"defaultResult"`

	// suffix tells the two hooks of a group apart in names.
	suffix string
}

// hooks are the hooks of all groups of a place.
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

// groupNames are the names of the groups of a place.
func (p Place) groupNames() []string {
	var names []string
	for _, g := range p.Groups {
		names = append(names, g.Name)
	}
	return names
}

// short is a name that any tool takes, for a group that may be called anything.
func short(group string) string {
	digest := sha256.Sum256([]byte(group))
	return hex.EncodeToString(digest[:5])
}

// cfnHook comes after the rule that hears of it, so that nothing is held before.
// CloudFormation puts a hook of a group that is there already; one of a group in
// the same template has to stand in its LifecycleHookSpecificationList.
func cfnHook(h hook) (name string, resource object) {
	return h.suffix + "Hook" + short(h.Group), object{
		"Type": "AWS::AutoScaling::LifecycleHook", "DependsOn": []string{cfnName(wiring.RoleAutoScalingLifecycle)},
		"Properties": object{
			"AutoScalingGroupName": h.Group, "LifecycleHookName": h.Name, "LifecycleTransition": h.Transition,
			"HeartbeatTimeout": h.Timeout, "DefaultResult": h.Result,
		},
	}
}

// tfHook is the hook as a resource of its own, and as it stands in the group
// itself: the provider puts those of aws_autoscaling_group before the group
// launches anything, and any other after it, and after its warm pool. Both have one
// name, so that the one puts the other in its place.
func (t tf) tfHook(h hook) (name string, resource, initial object) {
	initial = object{
		"name": h.Name, "lifecycle_transition": h.Transition, "heartbeat_timeout": h.Timeout, "default_result": h.Result,
	}
	resource = object{"autoscaling_group_name": h.Group, "depends_on": []string{"aws_cloudwatch_event_target." + label(wiring.RuleName(t.w.Cluster, wiring.RoleAutoScalingLifecycle))}}
	for key, value := range initial {
		resource[key] = value
	}
	return t.label + "_" + map[string]string{"Launch": "launch", "Terminate": "terminate"}[h.suffix] + "_" + short(h.Group), resource, initial
}

// initialHooks are the hooks for initial_lifecycle_hook: of each group the same,
// unless they were declared otherwise.
func (t tf) initialHooks(all []hook) object {
	byGroup := object{}
	for _, h := range all {
		_, _, initial := t.tfHook(h)
		list, _ := byGroup[h.Group].([]any)
		byGroup[h.Group] = append(list, initial)
	}
	return byGroup
}
