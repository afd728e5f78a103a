package sqs_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)

// message is a message as EventBridge sends it.
type message struct {
	id, detailType, instance, detail string
	account, region                  string
	age                              time.Duration
}

func (m message) String() string {
	return fmt.Sprintf(`{"version":"0","id":%q,"detail-type":%q,"source":"aws.ec2","account":%q,"time":%q,"region":%q,`+
		`"resources":["arn:aws:ec2:eu-west-1b:instance/%[6]s"],"detail":{"instance-id":%[6]q%s}}`,
		m.id, m.detailType, cmp.Or(m.account, account), time.Now().Add(-m.age).UTC().Format(time.RFC3339),
		cmp.Or(m.region, region), m.instance, m.detail)
}

func spot(id, instance string) message {
	return message{id: id, detailType: "EC2 Spot Instance Interruption Warning", instance: instance, detail: `,"instance-action":"terminate"`}
}

func rebalance(id, instance string) message {
	return message{id: id, detailType: "EC2 Instance Rebalance Recommendation", instance: instance}
}

func state(id, instance, word string) message {
	return message{id: id, detailType: "EC2 Instance State-change Notification", instance: instance, detail: fmt.Sprintf(`,"state":%q`, word)}
}

// nodes is a NodeIndex to which nodes can be added.
type nodes struct {
	mu    sync.Mutex
	known map[string]*corev1.Node
	asked int
}

func (n *nodes) add(instance string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]*corev1.Node{}
	}
	n.known[instance] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + instance}}
}

func (n *nodes) NodeByInstance(_ context.Context, instance string) (*corev1.Node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return n.known[instance], nil
}

// calls counts calls to SQS.
type calls struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *calls) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[name]++
}

func (c *calls) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[name]
}

type countedAPI struct {
	sqs.API
	calls *calls
}

func (a countedAPI) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, o ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	a.calls.add("receive")
	return a.API.ReceiveMessage(ctx, in, o...)
}

func (a countedAPI) DeleteMessageBatch(ctx context.Context, in *awssqs.DeleteMessageBatchInput, o ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	a.calls.add("delete")
	return a.API.DeleteMessageBatch(ctx, in, o...)
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text = append(l.text, args)
	}, funcr.Options{})
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}

func (l *lines) with(parts ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, line := range l.text {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			count++
		}
	}
	return count
}
