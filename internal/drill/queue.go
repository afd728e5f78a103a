package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// QueueAPI writes to queues. *sqs.Client implements it.
type QueueAPI interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// FindQueue returns the URL of the queue with this name.
func FindQueue(ctx context.Context, api QueueAPI, name string) (string, error) {
	out, err := api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
	if err != nil {
		return "", fmt.Errorf("looking for the queue %s: %w", name, err)
	}
	return aws.ToString(out.QueueUrl), nil
}

// Notice is a message that says what EventBridge would say.
type Notice struct {
	Place Place
	// Kind is notice.KindSpotInterruption or
	// notice.KindRebalanceRecommendation.
	Kind   string
	Target Target
	// Time is when EC2 would have issued it.
	Time time.Time
	// ID is the envelope's id; EventBridge uses UUIDs.
	ID string
}

// NewID returns an id as EventBridge gives to envelopes.
func NewID() string {
	return uuid.NewString()
}

// envelope is EventBridge's, with its fields in the order that AWS writes
// them (EventBridge User Guide, "AWS service event metadata").
type envelope struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     detail   `json:"detail"`
}

type detail struct {
	InstanceID     string `json:"instance-id"`
	InstanceAction string `json:"instance-action,omitempty"`
}

// Body returns the message as EventBridge delivers it to a queue.
func (n Notice) Body() (string, error) {
	e := envelope{
		Version: "0",
		ID:      n.ID,
		Source:  "aws.ec2",
		Account: n.Place.Account,
		Time:    n.Time.UTC().Format(time.RFC3339),
		Region:  n.Place.Region,
		Detail:  detail{InstanceID: n.Target.InstanceID},
	}
	switch n.Kind {
	case notice.KindSpotInterruption:
		e.DetailType = "EC2 Spot Instance Interruption Warning"
		e.Detail.InstanceAction = "terminate"
	case notice.KindRebalanceRecommendation:
		e.DetailType = "EC2 Instance Rebalance Recommendation"
	default:
		return "", fmt.Errorf("writing a notice: EventBridge has no message for kind %s that could be written here", n.Kind)
	}
	e.Resources = []string{n.zoneARN()}
	body, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("writing a notice: %w", err)
	}
	return string(body), nil
}

// zoneARN is the odd ARN of these two kinds: the availability zone stands
// where the region belongs, and the account and its colon are missing (EC2 User Guide, "Spot
// Instance interruption notices").
func (n Notice) zoneARN() string {
	zone := n.Target.Zone
	if zone == "" {
		zone = n.Place.Region + "a" // nobody reads it, but there always is one
	}
	partition := n.Place.Partition
	if partition == "" {
		partition = "aws"
	}
	return strings.Join([]string{"arn", partition, "ec2", zone, "instance/" + n.Target.InstanceID}, ":")
}

// Send writes the notice into a queue and returns the message's id.
func (n Notice) Send(ctx context.Context, api QueueAPI, queueURL string) (string, error) {
	body, err := n.Body()
	if err != nil {
		return "", err
	}
	out, err := api.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(queueURL), MessageBody: aws.String(body)})
	if err != nil {
		return "", fmt.Errorf("writing into the queue %s: %w", queueURL, err)
	}
	return aws.ToString(out.MessageId), nil
}
