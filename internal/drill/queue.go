package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"k8s.io/apimachinery/pkg/util/uuid"

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
		return "", fmt.Errorf("finding the queue %s: %w", name, err)
	}
	return aws.ToString(out.QueueUrl), nil
}

// Notice is a message in AWS's format. Kind, Target, Time and ID are required. The
// Kind's Takes lists which other fields it uses.
type Notice struct {
	Place Place
	// Kind is the Name of one of [Kinds].
	Kind   string
	Target Target
	// Time is the time at which AWS would have sent it.
	Time time.Time
	// ID is the envelope's id; EventBridge uses UUIDs.
	ID string
	// Drill marks the message as a drill. One drill may send several messages.
	Drill string

	// Action is the action on the instance; by default terminate.
	Action string
	// State is the new state of the instance; by default stopping.
	State string
	// Code is the code of a Health event, for example [DefaultScheduledCode].
	Code string
	// Begins is the time of the change: the start of a scheduled change, the end of
	// lent capacity, or the time from which a block's instances terminate.
	Begins time.Time
	// Closed means that the change is over or cancelled.
	Closed bool
	// Subject is the ARN of the Health event that the message updates; by default
	// that of a new event.
	Subject string
	// Group is the Auto Scaling group; by default [DefaultGroup].
	Group string
}

// NewID returns an id in the format of EventBridge's envelopes.
func NewID() string {
	return string(uuid.NewUUID())
}

// envelope is EventBridge's envelope, with the fields in AWS's order (EventBridge
// User Guide, "AWS service event metadata").
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

// Body returns the message as EventBridge delivers it to a queue. The error means
// that the kind is not one of [Kinds].
func (n Notice) Body() (string, error) {
	kind, err := FindKind(n.Kind)
	if err != nil {
		return "", fmt.Errorf("encoding a notice: %w", err)
	}
	e := envelope{Version: "0", ID: n.ID, Account: n.Place.Account, Time: stamp(n.Time), Region: n.Place.Region}
	kind.detail(&n, &e)
	body, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encoding a notice: %w", err)
	}
	return string(body), nil
}

func (n *Notice) action() string {
	if n.Action == "" {
		return notice.ActionTerminate
	}
	return n.Action
}

// zoneARN is the unusual ARN of spot interruptions and rebalance recommendations: it
// has the availability zone in place of the region, and neither the account nor its
// colon (EC2 User Guide, "Spot Instance interruption notices").
func (n *Notice) zoneARN() string {
	zone := n.Target.Zone
	if zone == "" {
		zone = n.Place.Region + "a" // unused, but AWS always sends a zone
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
		return "", fmt.Errorf("sending to the queue %s: %w", queueURL, err)
	}
	return aws.ToString(out.MessageId), nil
}
