package wiring

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// The roles of the rules: what each is there to hear.
const (
	RoleSpotInterruption     = "spot-interruption"
	RoleRebalance            = "rebalance"
	RoleStateChange          = "state-change"
	RoleHealth               = "health"
	RoleCapacity             = "capacity"
	RoleAutoScalingLifecycle = "autoscaling-lifecycle"
	RoleAutoScalingResult    = "autoscaling-result"
	RoleLifecycleFailure     = "lifecycle-failure"
)

// Rule is an EventBridge rule whose target is the queue.
type Rule struct {
	Name string `json:"name"`
	// Role is what the rule is there to hear, such as spot-interruption.
	Role        string `json:"role,omitempty"`
	Description string `json:"description,omitempty"`
	// Pattern is the event pattern, in JSON.
	Pattern string `json:"pattern"`
	// Kinds are the kinds of notice that it brings (package notice).
	Kinds []string `json:"kinds,omitempty"`
	// Needs is what has to be there besides for it to hear anything; empty for
	// most. A rule that needs something is optional: where that is not there, it
	// is silent and nothing is wrong.
	Needs string `json:"needs,omitempty"`
}

// Optional reports whether the rule may be silent with nothing being wrong.
func (r Rule) Optional() bool { return r.Needs != "" }

// role is the hand-written half of a rule, and of its probe.
type role struct {
	Rule

	// detailType and detail are what a probe has to have to be matched.
	detailType string
	detail     map[string]any
}

func (r role) rule(cluster string) Rule {
	rule := r.Rule
	rule.Name = RuleName(cluster, rule.Role)
	return rule
}

// roles are the rules that Lifeboat wants, and what a probe of each looks like.
// Every pattern is as narrow as the kinds it brings allow, since each message
// costs a receive and a delete, and holds no account or region: a rule hears
// those of its own bus only. Each accepts [notice.ProbeSource] beside AWS's own source.
func roles() []role {
	return append(instanceRoles(), healthRole(), lifecycleRole(), resultRole(), failureRole())
}

// instanceRoles are about EC2's own notices (EC2 User Guide, "Automate Amazon EC2
// with EventBridge").
func instanceRoles() []role {
	return []role{
		{
			Rule: Rule{
				Role: RoleSpotInterruption, Description: "EC2 takes a spot instance back, in two minutes",
				Pattern: `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`,
				Kinds:   []string{notice.KindSpotInterruption},
			},
			detailType: "EC2 Spot Instance Interruption Warning",
		},
		{
			// The second name is that of EventBridge's list of events.
			Rule: Rule{
				Role: RoleRebalance, Description: "A spot instance is at elevated risk of interruption",
				Pattern: `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Instance Rebalance Recommendation","EC2 Spot Instance Rebalance Recommended"]}`,
				Kinds:   []string{notice.KindRebalanceRecommendation},
			},
			detailType: "EC2 Instance Rebalance Recommendation",
		},
		{
			// Without pending and running, which every launch brings.
			Rule: Rule{
				Role: RoleStateChange, Description: "An instance is stopping or going, or has gone",
				Pattern: `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Instance State-change Notification"],` +
					`"detail":{"state":["stopping","stopped","shutting-down","terminated"]}}`,
				Kinds: []string{notice.KindInstanceStateChange},
			},
			detailType: "EC2 Instance State-change Notification",
			detail:     map[string]any{"state": notice.StateStopping},
		},
		{
			// Both have an older name, or another one in EventBridge's list of events.
			Rule: Rule{
				Role: RoleCapacity, Description: "Capacity that was reserved or lent is taken back, or a Capacity Block ends",
				Pattern: `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Capacity Reservation Instance Interruption Warning",` +
					`"EC2 Interruptible Capacity Reservation Instance Interruption Warning",` +
					`"Capacity Block Reservation Expiration Warning","Capacity Block Expiration Warning"]}`,
				Kinds: []string{notice.KindCapacityReservationInterruption, notice.KindCapacityBlockExpiration},
			},
			detailType: "EC2 Capacity Reservation Instance Interruption Warning",
		},
	}
}

// healthRole hears of the services whose trouble reaches a node: EC2, the volumes
// behind claims, and the control plane. An account gets a handful of these in a
// month. Those that name no instance of the cluster (incidents of a whole region,
// most account notifications) are reported and evict nothing.
//
// Public events are sent to a second region too, as a backup (AWS Health User
// Guide, "Receiving public events in more than one region"). Such copies are about
// another region and are left out; older events do not have the field. What is
// true or false there is a string.
func healthRole() role {
	return role{
		Rule: Rule{
			Role: RoleHealth, Description: "AWS Health: scheduled changes, issues and notifications of EC2, EBS and EKS",
			Pattern: `{"source":["aws.health","lifeboat.dev"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2","EBS","EKS"],` +
				`"eventTypeCategory":["scheduledChange","issue","accountNotification"],"backupEvent":["false",{"exists":false}]}}`,
			Kinds: []string{notice.KindScheduledChange, notice.KindHealthIssue},
		},
		detailType: "AWS Health Event",
		detail:     map[string]any{"service": "EC2", "eventTypeCategory": "scheduledChange", "backupEvent": "false"},
	}
}

// lifecycleRole hears of both directions: a launch says which instance is about
// to join (EC2 Auto Scaling User Guide, "EventBridge event reference").
func lifecycleRole() role {
	return role{
		Rule: Rule{
			Role: RoleAutoScalingLifecycle, Description: "An Auto Scaling group waits for a lifecycle hook: an instance is going or coming",
			Pattern: `{"source":["aws.autoscaling","lifeboat.dev"],"detail-type":["EC2 Instance-terminate Lifecycle Action","EC2 Instance-launch Lifecycle Action"]}`,
			Kinds:   []string{notice.KindAutoScalingTermination},
		},
		detailType: "EC2 Instance-terminate Lifecycle Action",
		detail:     map[string]any{fieldGroup: probeGroup},
	}
}

// resultRole brings what was terminated, with the cause, which EC2 does not say,
// and what a group failed to do, which is only reported. It leaves out launches
// that went well: they are the most, and concern no node yet.
func resultRole() role {
	return role{
		Rule: Rule{
			Role: RoleAutoScalingResult, Description: "An Auto Scaling group has terminated an instance, or could not launch or terminate one",
			Pattern: `{"source":["aws.autoscaling","lifeboat.dev"],"detail-type":["EC2 Instance Terminate Successful",` +
				`"EC2 Instance Terminate Unsuccessful","EC2 Instance Launch Unsuccessful"]}`,
			Kinds: []string{notice.KindInstanceStateChange},
		},
		detailType: "EC2 Instance Terminate Successful",
		detail:     map[string]any{fieldGroup: probeGroup},
	}
}

// failureRole hears of refused completions only: a record has an errorCode exactly
// if the call failed (CloudTrail User Guide, "CloudTrail record contents").
func failureRole() role {
	return role{
		Rule: Rule{
			Role: RoleLifecycleFailure, Description: "Somebody tried to complete a lifecycle action and was refused",
			Pattern: `{"source":["aws.autoscaling","lifeboat.dev"],"detail-type":["AWS API Call via CloudTrail"],` +
				`"detail":{"eventSource":["autoscaling.amazonaws.com"],"eventName":["CompleteLifecycleAction"],"errorCode":[{"exists":true}]}}`,
			Kinds: []string{notice.KindLifecycleActionFailure},
			Needs: "a CloudTrail trail that records management events",
		},
		detailType: "AWS API Call via CloudTrail",
		detail: map[string]any{
			"eventSource": "autoscaling.amazonaws.com", "eventName": "CompleteLifecycleAction", "errorCode": "LifeboatProbe",
		},
	}
}
