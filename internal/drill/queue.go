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

// Notice is a message that says what AWS would say. Kind, Target, Time and ID
// have to be set; what of the rest has a meaning, the Kind's Takes says.
type Notice struct {
	Place Place
	// Kind is one of [Kinds], by its Name.
	Kind   string
	Target Target
	// Time is when AWS would have issued it.
	Time time.Time
	// ID is the envelope's id; EventBridge uses UUIDs.
	ID string
	// Drill marks the message as a drill. One drill may send several messages.
	Drill string

	// Action is what is done to the instance: terminate unless it is set.
	Action string
	// State is the state that the instance enters: stopping unless it is set.
	State string
	// Code is Health's code, such as [DefaultScheduledCode].
	Code string
	// Begins is when it is done: the start of a scheduled change, the end of
	// lent capacity, the moment from which a block's instances are terminated.
	Begins time.Time
	// Closed says that it is over, or was called off.
	Closed bool
	// Subject is the ARN of the Health event that the message updates; one of
	// the drill's own unless it is set.
	Subject string
	// Group is the Auto Scaling group: [DefaultGroup] unless it is set.
	Group string
}

// NewID returns an id as EventBridge gives to envelopes.
func NewID() string {
	return uuid.NewString()
}

// envelope is EventBridge's, with its fields in the order that AWS writes
// them (EventBridge User Guide, "AWS service event metadata").
type envelope struct {
	Version    string `json:"version"`
	ID         string `json:"id"`
	DetailType string `json:"detail-type"`
	Source     string `json:"source"`
	Account    string `json:"account"`
	Time       string `json:"time"`
	Region     string `json:"region"`
	Resources  any    `json:"resources"` // []string, or a string
	Detail     any    `json:"detail"`
}

const sourceEC2 = "aws.ec2"

// Body returns the message as EventBridge delivers it to a queue. The error
// says that the kind is none of [Kinds].
func (n Notice) Body() (string, error) {
	kind, err := FindKind(n.Kind)
	if err != nil {
		return "", fmt.Errorf("writing a notice: %w", err)
	}
	e := envelope{Version: "0", ID: n.ID, Account: n.Place.Account, Time: stamp(n.Time), Region: n.Place.Region}
	kind.detail(&n, &e)
	body, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("writing a notice: %w", err)
	}
	return string(body), nil
}

func (n *Notice) action() string {
	if n.Action == "" {
		return notice.ActionTerminate
	}
	return n.Action
}

// zoneARN is the odd ARN of spot interruptions and rebalance recommendations:
// the availability zone stands where the region belongs, and the account and
// its colon are missing (EC2 User Guide, "Spot Instance interruption notices").
func (n *Notice) zoneARN() string {
	zone := n.Target.Zone
	if zone == "" {
		zone = n.Place.Region + "a" // nobody reads it, but there always is one
	}
	return strings.Join([]string{"arn", n.Place.partition(), "ec2", zone, "instance/" + n.Target.InstanceID}, ":")
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
