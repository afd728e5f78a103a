package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
)

// What the sandbox's first nodes are.
const (
	nodeImage = "ami-0123456789abcdef0" // the emulator takes any
	nodeType  = types.InstanceTypeM5Large
	nodeZones = "abc"
)

// launch launches spot instances in the sandbox's EC2 and waits until all of
// them are nodes that are Ready.
func (s *session) launch(ctx context.Context, count int) error {
	progress := terminal.NewProgress(s.err)
	defer progress.Stop()
	progress.Step("launching %d spot instances", count)
	cfg, _, err := s.awsConfig(ctx)
	if err != nil {
		return err
	}
	api := ec2.NewFromConfig(cfg)
	wanted := map[string]bool{}
	for i := range count {
		out, err := api.RunInstances(ctx, &ec2.RunInstancesInput{
			ImageId: aws.String(nodeImage), InstanceType: nodeType,
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			Placement:             &types.Placement{AvailabilityZone: aws.String(cfg.Region + string(nodeZones[i%len(nodeZones)]))},
			InstanceMarketOptions: &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot},
		})
		if err != nil {
			return awsError{fmt.Errorf("launching an instance: %w", err)}
		}
		for _, instance := range out.Instances {
			wanted[aws.ToString(instance.InstanceId)] = true
		}
	}
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return c.awaitReady(ctx, wanted, progress)
}

// nodePatience is more than a machine with much else to do takes for all of them.
const nodePatience = 5 * time.Minute

func (c cluster) awaitReady(ctx context.Context, wanted map[string]bool, progress *terminal.Progress) error {
	patience := time.After(nodePatience)
	for {
		nodes, err := c.nodes(ctx)
		if err != nil {
			return err
		}
		ready := 0
		for i := range nodes {
			if id, _ := instanceOf(&nodes[i]); wanted[id] && nodeindex.Ready(&nodes[i]) {
				ready++
			}
		}
		if ready == len(wanted) {
			return nil
		}
		progress.Step("waiting for nodes: %d of %d are ready", ready, len(wanted))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience:
			return fmt.Errorf("%d of %d nodes are ready after %s: the sandbox's log, sandbox.log in its directory, says why", ready, len(wanted), nodePatience)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
