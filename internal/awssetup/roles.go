package awssetup

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// The roles of the rules. A role names the events that its rule matches.
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
	// Role names the events that the rule matches, for example spot-interruption.
	Role        string `json:"role,omitempty"`
	Description string `json:"description,omitempty"`
	// Pattern is the event pattern, in JSON.
	Pattern string `json:"pattern"`
	// Kinds are the kinds of notice that the rule delivers (package notice).
	Kinds []string `json:"kinds,omitempty"`
	// Needs is an additional requirement for the rule to match events; most rules
	// have none. A rule with a requirement is optional: without it the rule matches
	// nothing, which is not an error.
	Needs string `json:"needs,omitempty"`
}

// Optional reports whether the rule may match nothing without an error in the wiring.
func (r Rule) Optional() bool { return r.Needs != "" }

// role is the static part of a rule, and of its probe.
type role struct {
	Rule

	// detailType and detail are the values that make a probe match.
	detailType string
	detail     map[string]any
}

func (r role) rule(cluster string) Rule {
	rule := r.Rule
	rule.Name = RuleName(cluster, rule.Role)
	return rule
}

// roles returns the desired rules and the values of their probes. Each pattern is as
// narrow as its kinds allow, because every message costs a receive and a delete.
// Patterns contain no account or region: a rule receives only events of its own bus.
// Each pattern also accepts [notice.ProbeSource].
func roles() []role {
	return append(instanceRoles(), healthRole(), lifecycleRole(), resultRole(), failureRole())
}

// instanceRoles match EC2's own notices (EC2 User Guide, "Automate Amazon EC2 with
// EventBridge").
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
			// The second name is in EventBridge's list of events.
			Rule: Rule{
				Role: RoleRebalance, Description: "A spot instance is at elevated risk of interruption",
				Pattern: `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Instance Rebalance Recommendation","EC2 Spot Instance Rebalance Recommended"]}`,
				Kinds:   []string{notice.KindRebalanceRecommendation},
			},
			detailType: "EC2 Instance Rebalance Recommendation",
		},
		{
			// Excludes pending and running, which every launch sends.
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
			// Both have an older name, or another one in EventBridge's list of
			// events.
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

// healthRole matches events of services that can affect a node: EC2, EBS for volumes,
// and EKS for the control plane. An account receives a few of them per month. Events
// that name no instance of the cluster are reported and evict nothing.
//
// AWS sends public events to a backup region too (AWS Health User Guide, "Receiving
// public events in more than one region"). The pattern excludes these copies, which
// concern another region. Older events lack the field backupEvent. Booleans are
// strings in these events.
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

// lifecycleRole matches both directions: a launch names the instance that will join
// (EC2 Auto Scaling User Guide, "EventBridge event reference").
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

// resultRole matches terminations with their cause, which EC2's events do not
// contain. It also matches failed launches and terminations, which are only reported.
// It excludes successful launches: they are the most frequent, and concern no node
// yet.
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

// failureRole matches only refused completions: a record has an errorCode only if the
// call failed (CloudTrail User Guide, "CloudTrail record contents").
func failureRole() role {
	return role{
		Rule: Rule{
			Role: RoleLifecycleFailure, Description: "A caller tried to complete a lifecycle action and was denied",
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
