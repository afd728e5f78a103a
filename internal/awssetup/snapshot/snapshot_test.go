package snapshot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

func TestFromAttributes(t *testing.T) {
	got := snapshot.FromAttributes(map[string]string{
		"QueueArn": "arn:aws:sqs:eu-west-1:210987654321:q", "MessageRetentionPeriod": "300", "VisibilityTimeout": "x",
		"SqsManagedSseEnabled": "true", "ApproximateNumberOfMessages": "3", "Policy": "{}",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:210987654321:d","maxReceiveCount":"4"}`,
	})
	want := snapshot.Queue{
		ARN: "arn:aws:sqs:eu-west-1:210987654321:q", Name: "q", Known: true, PolicyKnown: true, Policy: "{}",
		Retention: 5 * time.Minute, ManagedSSE: true, Waiting: 3,
		DeadLetterARN: "arn:aws:sqs:eu-west-1:210987654321:d", MaxReceives: 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := snapshot.FromAttributes(map[string]string{"RedrivePolicy": "{"}); got.DeadLetterARN != "" {
		t.Errorf("a broken redrive policy names %s", got.DeadLetterARN)
	}
}

func TestBuses(t *testing.T) {
	for bus, want := range map[string]bool{
		"": true, "default": true, "arn:aws:events:eu-west-1:210987654321:event-bus/default": true,
		"mine": false, "arn:aws:events:eu-west-1:210987654321:event-bus/mine": false,
	} {
		if got := (snapshot.Rule{Bus: bus}).OnDefaultBus(); got != want {
			t.Errorf("%q is the default bus: %v", bus, got)
		}
	}
}

func TestPartsOfARNs(t *testing.T) {
	const arn = "arn:aws:sqs:eu-west-1:210987654321:q"
	if snapshot.Part(arn, 3) != "eu-west-1" || snapshot.Part(arn, 4) != "210987654321" || snapshot.Part("q", 3) != "" || snapshot.Part(arn, 9) != "" {
		t.Error("takes ARNs apart wrongly")
	}
	if snapshot.Name(arn) != "q" || snapshot.Name("https://sqs/1/q") != "q" || snapshot.Name("q") != "q" {
		t.Error("names wrongly")
	}
}
