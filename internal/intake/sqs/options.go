package sqs

import (
	"cmp"
	"context"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

// Options configure a Source. Zero values are the defaults.
type Options struct {
	// Receivers is how many long polls are open while the queue is quiet; 4. MaxReceivers
	// is how many while batches are busy; 16, or Receivers if that is more.
	Receivers, MaxReceivers int
	// ConcurrentWrites bounds the writes to the API server in flight; 64. Urgent notices
	// go first.
	ConcurrentWrites int
	// Wait is how long SQS keeps a long poll open, in whole seconds; 20 s, which is also
	// the maximum.
	Wait time.Duration
	// Visibility is the visibility timeout of received messages, in whole seconds; 10 s.
	// It is renewed while a message is being processed, so it is what a crash costs.
	Visibility time.Duration
	// MaxReceives is after how many receives the notice of an instance without a Node is
	// dropped; 5, which takes about two minutes, or three and a half with a soft deadline.
	// A redrive policy with a lower maxReceiveCount lowers it.
	MaxReceives int
	// Instances returns the ids of the instances that match a filter of EC2's
	// DescribeInstances, by value of the filter: for notices that name only a Capacity Block
	// or a host, or whose group must be the instance's. Nil: such notices are ignored.
	Instances func(ctx context.Context, filter string, values []string) (map[string][]string, error)
	// GroupNews is called with each Auto Scaling group that a message is about, so that
	// the group is polled sooner. It must not block. Nil: not called.
	GroupNews func(group string)
	// Metrics count what is received; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

func (o Options) complete() Options {
	o.Receivers = cmp.Or(max(o.Receivers, 0), 4)
	o.MaxReceivers = max(cmp.Or(max(o.MaxReceivers, 0), 16), o.Receivers)
	o.ConcurrentWrites = cmp.Or(max(o.ConcurrentWrites, 0), 64)
	o.MaxReceives = cmp.Or(max(o.MaxReceives, 0), 5)
	o.Visibility = cmp.Or(max(o.Visibility, 0), 10*time.Second)
	if o.Wait <= 0 || o.Wait > longestWait {
		o.Wait = longestWait
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	return o
}
