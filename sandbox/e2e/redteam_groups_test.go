//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	emulated "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

const (
	// hookedGroup and warmGroup are under attack: both have Lifeboat's lifecycle hooks, and
	// warmGroup has a warm pool. genuineGroup terminates instances for real.
	hookedGroup, warmGroup, genuineGroup = "hooked", "warm", "scaled-in"
	// scaleInEvery is after how many attacks genuineGroup terminates an instance.
	scaleInEvery = 80
)

// seenMember is an instance of a group under attack at the beginning.
type seenMember struct {
	emulated.Member
	instance ec2.Instance
	node     types.UID // empty: a warm instance, which has no Node
}

// makeGroups creates the groups, and waits until their instances are nodes or warm.
func (r *redTeam) makeGroups() {
	r.t.Helper()
	for name, size := range map[string]struct{ desired, warm int }{hookedGroup: {2, 0}, warmGroup: {1, 1}, genuineGroup: {1, 0}} {
		st := scenario.GroupStatement{
			Name: name, Max: 10, Desired: size.desired, Type: "m5.large", Hooks: scenario.HooksBoth, Agent: scenario.AgentAnswers,
			LaunchTime: 5 * time.Minute, LeaveTime: 5 * time.Minute, Boot: 200 * time.Millisecond,
		}
		if size.warm > 0 {
			st.Warm, st.Pool = size.warm, scenario.PoolStopped
		}
		if err := scenario.MakeGroup(r.AWS().States, st); err != nil {
			r.t.Fatal(err)
		}
	}
	r.until("the groups to be complete", 2*time.Minute, func(ctx context.Context) (bool, error) {
		settled := r.settledMembers(ctx)
		return len(settled) == 5, fmt.Errorf("%d of 5 instances are in a lasting state: %+v", len(settled), r.groups().Members())
	})
	machines := awsec2.NewFromConfig(r.AWSConfig())
	for _, m := range r.settledMembers(r.t.Context()) {
		// So that IAM lets the controller terminate it.
		tags := []ec2types.Tag{{Key: aws.String(clusterTag), Value: aws.String("owned")}}
		if _, err := machines.CreateTags(r.t.Context(), &awsec2.CreateTagsInput{Resources: []string{m.InstanceID}, Tags: tags}); err != nil {
			r.t.Fatal(err)
		}
		if m.Group == genuineGroup {
			continue
		}
		r.members = append(r.members, m)
		switch {
		case m.node == "":
		case r.stolenMember.ID == "" && m.Group == hookedGroup:
			r.stolenMember = m.instance
		default:
			r.forged = append(r.forged, m.instance)
		}
	}
}

func (r *redTeam) groups() *emulated.State { return r.AWS().States.AutoScaling }

// settledMembers are the warm instances, and those in service whose nodes take pods.
func (r *redTeam) settledMembers(ctx context.Context) (all []seenMember) {
	instances := r.EC2().Instances()
	for _, m := range r.groups().Members() {
		i := slices.IndexFunc(instances, func(in ec2.Instance) bool { return in.ID == m.InstanceID })
		if i < 0 {
			continue
		}
		seen := seenMember{Member: m, instance: instances[i]}
		if m.State == emulated.InService {
			node, err := r.node(ctx, seen.instance)
			if err != nil || !nodeindex.Ready(node) || len(node.Spec.Taints) > 0 {
				continue
			}
			seen.node = node.UID
		} else if m.State != emulated.WarmedStopped {
			continue
		}
		all = append(all, seen)
	}
	return all
}

// groupForger may send messages to Lifeboat's queue. It forges what Auto Scaling says of the groups.
// Such a message can have a node drained, and must end, return or detach no instance.
func (r *redTeam) groupForger() attacker {
	st := r.State()
	forge := func(detailType string, detail func(rnd *rand.Rand, m seenMember) map[string]any) func(context.Context, *rand.Rand) error {
		return func(ctx context.Context, rnd *rand.Rand) error {
			m := r.members[rnd.IntN(len(r.members))]
			all := detail(rnd, m)
			all["AutoScalingGroupName"], all["EC2InstanceId"] = m.Group, m.InstanceID
			body, err := json.Marshal(map[string]any{
				"version": "0", "id": fmt.Sprint("forged-", rnd.Uint64()), "detail-type": detailType, "source": "aws.autoscaling", "account": st.Account,
				"region": st.Region, "time": time.Now().UTC().Format(time.RFC3339), "resources": []string{r.groups().GroupARN(m.Group)}, "detail": all,
			})
			if err != nil {
				return err
			}
			_, err = r.sqs.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &st.QueueURL, MessageBody: aws.String(string(body))})
			return err
		}
	}
	action := func(hook, transition string) func(*rand.Rand, seenMember) map[string]any {
		return func(rnd *rand.Rand, _ seenMember) map[string]any {
			return map[string]any{
				"LifecycleActionToken": fmt.Sprintf("87654321-4321-4321-4321-%012x", rnd.Uint32()), "LifecycleHookName": hook, "LifecycleTransition": transition,
				"Origin":      []string{"AutoScalingGroup", "WarmPool", "EC2"}[rnd.IntN(3)],
				"Destination": []string{"EC2", "WarmPool", "AutoScalingGroup"}[rnd.IntN(3)],
			}
		}
	}
	result := func(rnd *rand.Rand, _ seenMember) map[string]any {
		return map[string]any{
			"StatusCode": "InProgress", "Cause": "an instance was taken out of service in response to an EC2 health check",
			"Origin": "AutoScalingGroup", "Destination": []string{"EC2", "WarmPool"}[rnd.IntN(2)],
		}
	}
	return attacker{"forger of Auto Scaling", []act{
		{name: "forges a termination", do: forge("EC2 Instance-terminate Lifecycle Action", action(v1beta1.TerminateHook, string(emulated.Leaving)))},
		{name: "forges a termination of another hook", do: forge("EC2 Instance-terminate Lifecycle Action", action("other", string(emulated.Leaving)))},
		{name: "forges a launch", do: forge("EC2 Instance-launch Lifecycle Action", action(v1beta1.LaunchHook, string(emulated.Launching)))},
		{name: "forges the end of a termination", do: forge("EC2 Instance Terminate Successful", result)},
		{name: "forges a failed termination", do: forge("EC2 Instance Terminate Unsuccessful", result)},
		{name: "forges the end of a launch", do: forge("EC2 Instance Launch Successful", result)},
		{name: "forges a failed launch", do: forge("EC2 Instance Launch Unsuccessful", result)},
		{name: "forges the state of a warm instance", do: func(ctx context.Context, rnd *rand.Rand) error {
			m := r.members[rnd.IntN(len(r.members))]
			states := []string{"running", "stopping", "stopped", "shutting-down", "terminated"}
			body := envelope(fmt.Sprint("forged-", rnd.Uint64()), stateChange, st.Account, st.Region, time.Now(),
				map[string]string{"instance-id": m.InstanceID, "state": states[rnd.IntN(len(states))]})
			_, err := r.sqs.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &st.QueueURL, MessageBody: &body})
			return err
		}},
	}}
}

// roleOnGroups are what the controller's role tries on groups, and its policy must refuse.
func (r *redTeam) roleOnGroups(groups *autoscaling.Client) map[string]func(context.Context, *rand.Rand) error {
	member := func(rnd *rand.Rand) seenMember { return r.members[rnd.IntN(len(r.members))] }
	return map[string]func(context.Context, *rand.Rand) error{
		"terminates an instance of a group": func(ctx context.Context, rnd *rand.Rand) error {
			_, err := groups.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
				InstanceId: aws.String(member(rnd).InstanceID), ShouldDecrementDesiredCapacity: aws.Bool(rnd.IntN(2) == 0),
			})
			return err
		},
		"empties a group": func(ctx context.Context, rnd *rand.Rand) error {
			_, err := groups.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String(member(rnd).Group), DesiredCapacity: aws.Int32(0)})
			return err
		},
		"changes a group": func(ctx context.Context, rnd *rand.Rand) error {
			_, err := groups.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(member(rnd).Group), MaxSize: aws.Int32(0)})
			return err
		},
		"deletes a group": func(ctx context.Context, rnd *rand.Rand) error {
			_, err := groups.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(member(rnd).Group), ForceDelete: aws.Bool(true)})
			return err
		},
		"deletes a warm pool": func(ctx context.Context, _ *rand.Rand) error {
			_, err := groups.DeleteWarmPool(ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: aws.String(warmGroup), ForceDelete: aws.Bool(true)})
			return err
		},
		"deletes a lifecycle hook": func(ctx context.Context, rnd *rand.Rand) error {
			_, err := groups.DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{
				AutoScalingGroupName: aws.String(member(rnd).Group), LifecycleHookName: aws.String(v1beta1.TerminateHook),
			})
			return err
		},
		"marks an instance of a group as unhealthy": func(ctx context.Context, rnd *rand.Rand) error {
			_, err := groups.SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{InstanceId: aws.String(member(rnd).InstanceID), HealthStatus: aws.String("Unhealthy")})
			return err
		},
		"detaches an instance from another cluster's group": func(ctx context.Context, rnd *rand.Rand) error {
			_, err := groups.DetachInstances(ctx, &autoscaling.DetachInstancesInput{
				AutoScalingGroupName: aws.String("databases"), InstanceIds: []string{member(rnd).InstanceID}, ShouldDecrementDesiredCapacity: aws.Bool(true),
			})
			return err
		},
	}
}

// scaleInOne has the genuine group replace its instance, and checks that the pods leave with their
// full grace and that Lifeboat then answers the hook.
func (r *redTeam) scaleInOne() {
	r.t.Helper()
	var in ec2.Instance
	r.until("the group to have an instance in service", 2*time.Minute, func(ctx context.Context) (bool, error) {
		for _, m := range r.settledMembers(ctx) {
			if m.Group == genuineGroup {
				in = m.instance
				return true, nil
			}
		}
		return false, fmt.Errorf("its instances are %+v", r.groups().Members())
	})
	r.scaledIn = append(r.scaledIn, in)
	r.endGenuinely(in, func() {
		if _, err := r.groups().TerminateMember([]string{in.ID}, false); err != nil {
			r.t.Fatal(err)
		}
	})
	r.until("Lifeboat to answer the hook of "+in.ID, 2*time.Minute, func(context.Context) (bool, error) {
		for _, f := range r.groups().Firings() {
			if f.InstanceID == in.ID && f.Transition == emulated.Leaving {
				return f.By == emulated.ByAnswer && f.Result == emulated.Continue, fmt.Errorf("it is %+v", f)
			}
		}
		return false, errors.New("the hook does not hold it")
	})
}

// checkGroups checks that each instance of the attacked groups is where it was, that its Node is the
// same, and that only genuine terminations held an instance. No hook was abandoned or timed out.
func (r *redTeam) checkGroups() {
	r.t.Helper()
	for _, was := range r.members {
		is, ok := r.groups().Member(was.InstanceID)
		if !ok || is.State != was.State || is.Unhealthy {
			r.t.Errorf("instance %s was %s in group %s, and is %+v", was.InstanceID, was.State, was.Group, is)
		}
		if was.node == "" {
			continue
		}
		if node, err := r.node(r.t.Context(), was.instance); err != nil || node.UID != was.node {
			r.t.Errorf("the Node of %s was deleted: %v", was.InstanceID, err)
		}
	}
	for _, m := range r.groups().Members() {
		known := slices.ContainsFunc(r.members, func(was seenMember) bool { return was.InstanceID == m.InstanceID })
		if m.Group != genuineGroup && !known {
			r.t.Errorf("group %s launched %s", m.Group, m.InstanceID)
		}
	}
	ended := map[emulated.HookExecutionEnd]int{}
	for _, f := range r.groups().Firings() {
		ended[f.By]++
		genuine := slices.ContainsFunc(r.scaledIn, func(in ec2.Instance) bool { return in.ID == f.InstanceID })
		if f.Transition == emulated.Leaving && !genuine {
			r.t.Errorf("a termination of %s began, although its group did not end it: %+v", f.InstanceID, f)
		}
		if f.Result == emulated.Abandon || f.By == emulated.ByTimeout {
			r.t.Errorf("a hook was not answered with CONTINUE: %+v", f)
		}
	}
	r.t.Logf("%d instances of groups were scaled in; hooks ended: %v", len(r.scaledIn), ended)
}
