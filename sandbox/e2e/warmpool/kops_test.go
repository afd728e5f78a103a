package warmpool

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsimds "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// kops follows kOps 1.28: it creates the group, later its hook and its warm pool. A program runs
// once per boot. It sets the machine up, starts the kubelet unless the instance warms, and
// completes the hook (kops: upup/pkg/fi/cloudup/awstasks, upup/pkg/fi/nodeup; issue 16582).
type kops struct{}

func (kops) make(ctx context.Context, w *world, g group) error {
	client := w.client()
	if _, err := client.CreateAutoScalingGroup(ctx, &awsas.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &g.name, MinSize: aws.Int32(g.size), MaxSize: aws.Int32(g.size + g.warm), VPCZoneIdentifier: aws.String(strings.Join(w.subnets(), ",")),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(templateName), Version: aws.String("$Default")},
	}); err != nil {
		return err
	}
	pool := func() error {
		sleep.For(ctx, w.between(0, time.Minute)) // kOps works through a task queue
		_, err := client.PutWarmPool(ctx, &awsas.PutWarmPoolInput{AutoScalingGroupName: &g.name, MinSize: aws.Int32(g.warm)})
		return err
	}
	hook := func() error {
		sleep.For(ctx, w.between(0, time.Minute))
		_, err := client.PutLifecycleHook(ctx, &awsas.PutLifecycleHookInput{
			AutoScalingGroupName: &g.name, LifecycleHookName: aws.String(hookName), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
			DefaultResult: aws.String("ABANDON"), HeartbeatTimeout: aws.Int32(600),
		})
		return err
	}
	if g.warm == 0 {
		return nil
	}
	failed := make(chan error, 2)
	go func() { failed <- pool() }()
	go func() { failed <- hook() }()
	return errors.Join(<-failed, <-failed)
}

// boot: user data runs only at the first boot, and installs the program that runs at each boot.
func (kops) boot(ctx context.Context, m *machine) {
	first := false
	m.disk.set(func(d *disk) { first, d.begun = !d.begun, true })
	if !first && !m.disk.isDone() {
		return // the power went off during the first boot, before the installation
	}
	for !nodeup(ctx, m) {
		if !sleep.For(ctx, 30*time.Second) {
			return
		}
	}
}

// nodeup runs once; false: it failed and must run again.
func nodeup(ctx context.Context, m *machine) bool {
	target, err := m.target(ctx)
	if err != nil || !m.setUp(ctx) {
		return false
	}
	if !strings.HasPrefix(target, "Warmed:") {
		m.startKubelet()
		sleep.For(ctx, joinsIn)
	}
	client := awsas.NewFromConfig(m.w.config(m.cloud))
	member, err := client.DescribeAutoScalingInstances(ctx, &awsas.DescribeAutoScalingInstancesInput{InstanceIds: []string{m.id}})
	if err != nil || len(member.AutoScalingInstances) == 0 {
		return err == nil
	}
	name := member.AutoScalingInstances[0].AutoScalingGroupName
	hooks, err := client.DescribeLifecycleHooks(ctx, &awsas.DescribeLifecycleHooksInput{AutoScalingGroupName: name, LifecycleHookNames: []string{hookName}})
	if err != nil || len(hooks.LifecycleHooks) == 0 {
		return err == nil // without a hook there is nothing to complete
	}
	_, err = client.CompleteLifecycleAction(ctx, &awsas.CompleteLifecycleActionInput{
		AutoScalingGroupName: name, LifecycleHookName: aws.String(hookName), InstanceId: &m.id, LifecycleActionResult: aws.String("CONTINUE"),
	})
	return err == nil
}

// target reads the target lifecycle state; empty if the metadata has none.
func (m *machine) target(ctx context.Context) (string, error) {
	out, err := m.imds().GetMetadata(ctx, &awsimds.GetMetadataInput{Path: "autoscaling/target-lifecycle-state"})
	var answered *smithyhttp.ResponseError
	if errors.As(err, &answered) && answered.HTTPStatusCode() == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(out.Content)
	return string(text), errors.Join(err, out.Content.Close())
}
