package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// scale sets the desired capacity of a group.
func (e *awsAccount) scale(group string, desired int) {
	e.t.Helper()
	if err := e.server.States.AutoScaling.SetDesired(group, desired, false); err != nil {
		e.t.Fatal(err)
	}
}

// in waits until a group has an instance in a state, and returns its id.
func (e *awsAccount) in(group, state string) string {
	e.t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		for _, m := range e.server.States.AutoScaling.Members() {
			if m.Group == group && string(m.State) == state {
				return m.InstanceID
			}
		}
	}
	e.t.Fatalf("no instance of %s came to be %s", group, state)
	return ""
}

// receivedGroups waits until the queue delivers a launch hook message of a group. It
// returns the groups with messages.
func (e *awsAccount) receivedGroups(group string) map[string]bool {
	e.t.Helper()
	groups := map[string]bool{}
	url := e.url + "/123456789012/lifeboat-prod"
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until) && !groups[group]; {
		out, err := e.queues.ReceiveMessage(e.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			e.t.Fatal(err)
		}
		for _, m := range out.Messages {
			for _, name := range []string{"nodes-a", "others"} {
				if strings.Contains(*m.Body, `"AutoScalingGroupName":"`+name+`"`) && strings.Contains(*m.Body, "Lifecycle Action") {
					groups[name] = true
				}
			}
		}
	}
	return groups
}

// With an emulator that launches instances: the hooks hold launches, the rules
// deliver the messages of these groups only, and hooks that hold an instance
// are not deleted.
func TestAWSdHooksHoldLaunches(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	if _, err := e.server.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"others", "nodes-a"} {
		e.group(autoscaling.Group{Name: name, Max: 3, Template: ec2.TemplateRef{Name: "workers"}})
	}
	if err := e.server.States.AutoScaling.PutHook(autoscaling.Hook{Group: "others", Name: "theirs", Transition: autoscaling.Launching}); err != nil {
		t.Fatal(err)
	}
	e.want(e.aws("setup", "--yes", "--groups", "nodes-a"), ExitOK)

	e.scale("others", 1)
	e.in("others", "Pending:Wait")
	e.scale("nodes-a", 1)
	id := e.in("nodes-a", "Pending:Wait")
	if groups := e.receivedGroups("nodes-a"); !groups["nodes-a"] || groups["others"] {
		t.Errorf("the queue brings what these groups' hooks say: %v", groups)
	}
	r := e.aws("destroy", "--yes")
	e.want(r, ExitFailed)
	if !strings.Contains(r.out, id) {
		t.Errorf("it does not say which instance it waits for:\n%s", r.out)
	}
	if err := e.server.States.AutoScaling.Complete(autoscaling.Ref{Group: "nodes-a", Hook: "lifeboat-launch", InstanceID: id}, autoscaling.Continue); err != nil {
		t.Fatal(err)
	}
	e.in("nodes-a", "InService")
	e.want(e.aws("destroy", "--yes"), ExitOK)
	if hooks := e.hooks("nodes-a"); len(hooks) > 0 {
		t.Errorf("hooks that are left: %v", hooks)
	}
	if hooks := e.hooks("others"); len(hooks) != 1 {
		t.Errorf("hooks of others: %v", hooks)
	}
}
