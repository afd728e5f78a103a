package awssetup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// failingEntries is an EventBridge that answers with status 200 and failed entries.
type failingEntries struct{ *eventbridge.Client }

// PutTargets fails in its answer.
func (failingEntries) PutTargets(context.Context, *eventbridge.PutTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.PutTargetsOutput, error) {
	return &eventbridge.PutTargetsOutput{FailedEntryCount: 1, FailedEntries: []ebtypes.PutTargetsResultEntry{{
		TargetId: aws.String("lifeboat-queue"), ErrorCode: aws.String("ConcurrentModificationException"), ErrorMessage: aws.String("try again"),
	}}}, nil
}

// RemoveTargets fails in its answer.
func (failingEntries) RemoveTargets(context.Context, *eventbridge.RemoveTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.RemoveTargetsOutput, error) {
	return &eventbridge.RemoveTargetsOutput{FailedEntryCount: 1, FailedEntries: []ebtypes.RemoveTargetsResultEntry{{
		TargetId: aws.String("lifeboat-queue"), ErrorCode: aws.String("ConcurrentModificationException"), ErrorMessage: aws.String("try again"),
	}}}, nil
}

func TestFailedEntriesAreRetriedByNextPlan(t *testing.T) {
	a := newAccount(t)
	_, err := awssetup.Apply(t.Context(), awssetup.Clients{SQS: a.queues, Events: failingEntries{a.rules}}, a.w)
	var call *awssetup.CallError
	if !errors.As(err, &call) || call.Permission != "events:PutTargets" ||
		err.Error() != "rule lifeboat-prod-spot-interruption: writing the rule's target: ConcurrentModificationException: try again" {
		t.Fatalf("error = %v", err)
	}
	plan := a.plan(t, awssetup.Options{})
	if got := lines(plan)[0]; got != "update lifeboat-prod-spot-interruption, Target.Arn:  -> "+a.w.QueueARN()+", Target.DeadLetterConfig.Arn:  -> "+a.w.DeadLetterARN() {
		t.Errorf("the next plan begins with: %s", got)
	}
	applied, _ := a.apply(t, plan)
	a.checkDelivery(t, applied.QueueURL)

	teardown := awssetup.Teardown(a.w, a.observe(t), awssetup.Options{})
	if _, err := teardown.Apply(t.Context(), awssetup.Clients{SQS: a.queues, Events: failingEntries{a.rules}}, func(awssetup.Change) {}); !errors.As(err, &call) || call.Permission != "events:RemoveTargets" {
		t.Errorf("error = %v", err)
	}
}

// denied is an SQS client without the permission to read attributes.
type denied struct{ *sqs.Client }

// GetQueueAttributes is refused.
func (denied) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return nil, errors.New("access denied")
}

func TestErrorsNameThePermission(t *testing.T) {
	a := newAccount(t)
	must(awssetup.Apply(t.Context(), a.clients, a.w))(t)
	_, err := awssetup.Observe(t.Context(), awssetup.Clients{SQS: denied{a.queues}, Events: a.rules}, a.w)
	var call *awssetup.CallError
	if !errors.As(err, &call) || call.Permission != "sqs:GetQueueAttributes" || err.Error() != "queue lifeboat-prod: reading the queue's attributes: access denied" {
		t.Errorf("error = %v", err)
	}
}

func TestObservePagesThroughManyRules(t *testing.T) {
	a := newAccount(t)
	for i := range 120 {
		must(a.server.States.Events.PutRule(events.RuleInput{
			Name: "lifeboat-prod-" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Pattern: `{"source":["x"]}`,
		}))(t)
	}
	must(awssetup.Apply(t.Context(), a.clients, a.w))(t)
	if got := len(a.observe(t).Rules); got != 8 {
		t.Errorf("observed %d rules, want 8", got)
	}
}
