package aws

import (
	"context"
	"fmt"
	"sync"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

const (
	// permitDescribe is the IAM action that Describe needs.
	permitDescribe = "ec2:DescribeInstances"
	// batchWait is how long the first call of a batch waits for others. In a storm many
	// instances are described at the same time, and EC2 throttles calls.
	batchWait = 50 * time.Millisecond
	// maxBatch is EC2's limit for the values of a filter (EC2 User Guide, "Find your Amazon
	// EC2 resources", "Filtering considerations").
	maxBatch = 200
)

// batch is one request for several instances.
type batch struct {
	ids   map[string]bool
	done  chan struct{} // closed once found and err are set
	found map[string]cloud.Instance
	err   error
}

// batcher joins calls of Describe that come at the same time.
type batcher struct {
	mu   sync.Mutex
	open *batch
}

// Describe returns an instance, or nil if EC2 does not know it: EC2 forgets terminated instances
// after about an hour. The instance is a filter, because EC2 rejects a call with an unknown id.
func (c *Cloud) Describe(ctx context.Context, instanceID string) (*cloud.Instance, error) {
	b := c.join(instanceID)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.done:
	}
	if b.err != nil {
		return nil, fmt.Errorf("describing instance %s: %w", instanceID, b.err)
	}
	if i, ok := b.found[instanceID]; ok {
		return &i, nil
	}
	return nil, nil
}

// join adds an instance to the open batch, or begins one.
func (c *Cloud) join(instanceID string) *batch {
	c.batches.mu.Lock()
	defer c.batches.mu.Unlock()
	if b := c.batches.open; b != nil && len(b.ids) < maxBatch {
		b.ids[instanceID] = true
		return b
	}
	b := &batch{ids: map[string]bool{instanceID: true}, done: make(chan struct{})}
	c.batches.open = b
	time.AfterFunc(batchWait, func() { c.send(b) })
	return b
}

// send closes the batch and makes the request. The request belongs to several callers, so it has
// its own time limit.
func (c *Cloud) send(b *batch) {
	c.batches.mu.Lock()
	if c.batches.open == b {
		c.batches.open = nil
	}
	c.batches.mu.Unlock()
	defer close(b.done)
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	b.found, b.err = c.describeAll(ctx, b.ids)
}

func (c *Cloud) describeAll(ctx context.Context, ids map[string]bool) (map[string]cloud.Instance, error) {
	in := &awsec2.DescribeInstancesInput{Filters: []types.Filter{{Name: awssdk.String("instance-id")}}, MaxResults: awssdk.Int32(1000)}
	for id := range ids {
		in.Filters[0].Values = append(in.Filters[0].Values, id)
	}
	found, spot := map[string]cloud.Instance{}, []string{}
	for { // a page may be empty although others follow
		out, err := c.describe(ctx, in)
		if err != nil {
			return nil, classifyDescribe(err)
		}
		for _, r := range out.Reservations {
			for i := range r.Instances {
				read := readInstance(&r.Instances[i])
				found[read.ID] = read
				if r.Instances[i].InstanceLifecycle == types.InstanceLifecycleTypeSpot {
					spot = append(spot, read.ID)
				}
			}
		}
		if in.NextToken = out.NextToken; awssdk.ToString(in.NextToken) == "" {
			return found, c.addSpotStatus(ctx, spot, found)
		}
	}
}

// addSpotStatus adds the status of the spot requests of these instances. Without the permission
// for it, the instances are described without.
func (c *Cloud) addSpotStatus(ctx context.Context, ids []string, found map[string]cloud.Instance) error {
	if len(ids) == 0 {
		return nil
	}
	in := &awsec2.DescribeSpotInstanceRequestsInput{
		Filters: []types.Filter{{Name: awssdk.String("instance-id"), Values: ids}}, MaxResults: awssdk.Int32(1000),
	}
	for {
		out, err := c.requests(ctx, in)
		if awshttp.IsDenied(err) {
			return nil
		}
		if err != nil {
			return classifyDescribe(err)
		}
		for i := range out.SpotInstanceRequests {
			r := &out.SpotInstanceRequests[i]
			if instance, ok := found[awssdk.ToString(r.InstanceId)]; ok && r.Status != nil {
				instance.SpotStatus = awssdk.ToString(r.Status.Code)
				found[instance.ID] = instance
			}
		}
		if in.NextToken = out.NextToken; awssdk.ToString(in.NextToken) == "" {
			return nil
		}
	}
}

func readInstance(in *types.Instance) cloud.Instance {
	out := cloud.Instance{ID: awssdk.ToString(in.InstanceId), DNSName: awssdk.ToString(in.PrivateDnsName)}
	if in.State != nil {
		out.State = string(in.State.Name)
	}
	add := func(address *string) {
		if a := awssdk.ToString(address); a != "" {
			out.Addresses = append(out.Addresses, a)
		}
	}
	add(in.PrivateIpAddress)
	for _, n := range in.NetworkInterfaces {
		if primary := awssdk.ToString(n.PrivateIpAddress); primary != awssdk.ToString(in.PrivateIpAddress) {
			add(n.PrivateIpAddress)
		}
		for _, ip := range n.Ipv6Addresses {
			add(ip.Ipv6Address)
		}
	}
	return out
}

func classifyDescribe(err error) error {
	err = awshttp.Stable(err)
	switch {
	case awshttp.IsDenied(err):
		return &cloud.DeniedError{Err: err, Fix: "allow " + permitDescribe + ": `lifeboat aws iam` prints the policy"}
	case awshttp.IsBusy(err):
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return err
}
