package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// The properties of the sandbox's first nodes.
const (
	nodeImage = "ami-0123456789abcdef0" // the emulator accepts any
	nodeType  = types.InstanceTypeM5Large
	nodeZones = "abc"
)

// launch launches spot instances in the sandbox's EC2 and waits until all of
// them are nodes that are Ready.
func (s *session) launch(ctx context.Context, state sandbox.State, count int, tags []types.Tag) error {
	progress := terminal.NewProgress(s.err)
	defer progress.Stop()
	progress.Step("launching %d spot instances", count)
	api := ec2.NewFromConfig(awsConfig(state))
	wanted := map[string]bool{}
	for i := range count {
		out, err := api.RunInstances(ctx, &ec2.RunInstancesInput{
			ImageId: aws.String(nodeImage), InstanceType: nodeType,
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			Placement:             &types.Placement{AvailabilityZone: aws.String(state.Region + string(nodeZones[i%len(nodeZones)]))},
			InstanceMarketOptions: &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot},
			TagSpecifications:     []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags}},
		})
		if err != nil {
			return fmt.Errorf("launching an instance: %w", err)
		}
		for _, instance := range out.Instances {
			wanted[aws.ToString(instance.InstanceId)] = true
		}
	}
	c, err := s.connect(state)
	if err != nil {
		return err
	}
	return awaitReady(ctx, c, wanted, progress)
}

// awsConfig is the configuration for the sandbox's AWS. It ignores the user's own AWS
// configuration.
func awsConfig(state sandbox.State) aws.Config {
	return awshttp.Use(aws.Config{
		Region:       state.Region,
		BaseEndpoint: aws.String(state.AWSEndpoint),
		Credentials:  awshttp.StaticCredentials(state.AccessKeyID, state.SecretAccessKey),
	})
}

// connect makes a client of a sandbox's cluster.
type connect func(state sandbox.State) (client.Client, error)

func connectKubernetes(state sandbox.State) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", state.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster %s: %w", config.Host, err)
	}
	return c, nil
}

// nodePatience is long enough for all nodes on a busy machine.
const nodePatience = 5 * time.Minute

func awaitReady(ctx context.Context, c client.Client, wanted map[string]bool, progress *terminal.Progress) error {
	giveUp := time.After(nodePatience)
	for {
		nodes, err := listNodes(ctx, c)
		if err != nil {
			return err
		}
		ready := 0
		for i := range nodes {
			if wanted[nodeindex.InstanceID(&nodes[i])] && nodeindex.Ready(&nodes[i]) {
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
		case <-giveUp:
			return fmt.Errorf("%d of %d nodes are ready after %s: see sandbox.log in the directory of the sandbox", ready, len(wanted), nodePatience)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// patience is the timeout of one request to the cluster.
const patience = 15 * time.Second

func listNodes(ctx context.Context, c client.Client) ([]corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all corev1.NodeList
	if err := c.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return all.Items, nil
}
