package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

const (
	floodSize = 500
	batchSize = 10 // SQS allows no more
	copies    = 5
)

// messages are faults of the queue.
func messages() []Fault {
	return []Fault{
		{Name: "flood-queue", Text: fmt.Sprintf("%d messages arrive: unreadable, of other kinds, and about instances of others", floodSize), Part: PartLifeboat, apply: flooding},
		{Name: "repeat-notices", Text: fmt.Sprintf("the spot warnings of all Interruptions arrive %d times again", copies), Part: PartLifeboat, apply: repeating},
	}
}

func flooding(ctx context.Context, b *broken) error {
	state, err := b.state()
	if err != nil {
		return err
	}
	var bodies []string
	for range floodSize {
		bodies = append(bodies, junk(b.rand, state))
	}
	return b.send(ctx, state.QueueURL, bodies)
}

// junk is a message that moves no pod.
func junk(r *rand.Rand, state sandboxstate.State) string {
	id := fmt.Sprintf("i-%017x", r.Uint64())
	switch r.IntN(4) {
	case 0:
		return "{not json"
	case 1:
		return envelope(state, id, "EC2 Something Else", time.Now(), map[string]string{"instance-id": id})
	case 2:
		return envelope(state, id, "EC2 Instance State-change Notification", time.Now(), map[string]string{"instance-id": id, "state": "stopping"})
	default:
		return envelope(state, id, "EC2 Spot Instance Interruption Warning", time.Now(), map[string]string{"instance-id": id, "instance-action": "terminate"})
	}
}

// repeating sends the warnings again, with their ids and their times, in another order.
func repeating(ctx context.Context, b *broken) error {
	state, err := b.state()
	if err != nil {
		return err
	}
	var records v1beta1.InterruptionList
	if err := b.kube.List(ctx, &records); err != nil {
		return fmt.Errorf("listing the Interruptions: %w", err)
	}
	var bodies []string
	for i := range records.Items {
		for _, n := range records.Items[i].Spec.Notices {
			if n.Kind != notice.KindSpotInterruption {
				continue
			}
			body := envelope(state, n.ID, "EC2 Spot Instance Interruption Warning", n.ReceivedTime.Time, map[string]string{
				"instance-id": records.Items[i].Spec.InstanceID, "instance-action": "terminate",
			})
			for range copies {
				bodies = append(bodies, body)
			}
		}
	}
	b.rand.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
	return b.send(ctx, state.QueueURL, bodies)
}

// envelope writes a message as EventBridge delivers it.
func envelope(state sandboxstate.State, id, detailType string, at time.Time, detail map[string]string) string {
	text, err := json.Marshal(map[string]any{
		"version": "0", "id": id, "detail-type": detailType, "source": "aws.ec2", "account": state.Account,
		"time": at.UTC().Format(time.RFC3339), "region": state.Region, "resources": []string{}, "detail": detail,
	})
	if err != nil {
		panic(err) // a map of strings always marshals
	}
	return string(text)
}

func (t *Target) send(ctx context.Context, url string, bodies []string) error {
	for len(bodies) > 0 {
		n := min(batchSize, len(bodies))
		in := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for i, body := range bodies[:n] {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(body)})
		}
		out, err := t.sqs.SendMessageBatch(ctx, in)
		if err == nil && len(out.Failed) > 0 {
			err = fmt.Errorf("%d of %d were refused: %s", len(out.Failed), n, aws.ToString(out.Failed[0].Message))
		}
		if err != nil {
			return fmt.Errorf("sending messages: %w", err)
		}
		bodies = bodies[n:]
	}
	return nil
}
