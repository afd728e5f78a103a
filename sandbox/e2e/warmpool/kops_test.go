package warmpool

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// kops follows kOps (pkg/model/awsmodel, upup/pkg/fi/cloudup/awstasks, upup/pkg/fi/nodeup,
// nodeup/pkg/model). It creates the group, later its hook, and its warm pool. On a machine, user
// data installs nodeup at the first boot. nodeup runs at each boot until it has started the kubelet,
// and completes the hook.
type kops struct {
	// minor is the minor version of kOps 1. Up to 1.28 hook and pool are independent; from 1.29 on
	// the pool waits for the hook (pull request 16583).
	minor int
	// once: nodeup tries to complete the hook once, as issue 16582 describes. The source retries
	// every 30 s until AWS accepts it.
	once bool
	// observed: each group has a NodeGroup with management Observe, which names the hook of kOps.
	observed bool
}

const kopsHook = "kops-warmpool"

func (k kops) make(ctx context.Context, w *world, g group) error {
	if k.observed {
		if err := w.kube.Create(ctx, &v1beta1.NodeGroup{
			ObjectMeta: metav1.ObjectMeta{Name: g.name},
			Spec: v1beta1.NodeGroupSpec{
				Management: v1beta1.ManageNothing, Hooks: v1beta1.LifecycleHooks{Launch: &v1beta1.LifecycleHook{Name: kopsHook}},
			},
		}); err != nil {
			return err
		}
	}
	client := w.client()
	if _, err := client.CreateAutoScalingGroup(ctx, &awsas.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &g.name, MinSize: aws.Int32(g.size), MaxSize: aws.Int32(g.size + g.warm), VPCZoneIdentifier: aws.String(strings.Join(w.subnets(), ",")),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(templateName), Version: aws.String("$Default")},
	}); err != nil || g.warm == 0 {
		return err
	}
	if k.minor >= 29 {
		return errors.Join(k.hook(ctx, w, g), k.pool(ctx, w, g))
	}
	failed := make(chan error, 2)
	go func() { failed <- k.pool(ctx, w, g) }()
	go func() { failed <- k.hook(ctx, w, g) }()
	return errors.Join(<-failed, <-failed)
}

func (kops) pool(ctx context.Context, w *world, g group) error {
	sleep.For(ctx, w.between(0, time.Minute)) // kOps works through a task queue
	return retryThrottled(ctx, func() error {
		_, err := w.client().PutWarmPool(ctx, &awsas.PutWarmPoolInput{AutoScalingGroupName: &g.name, MinSize: aws.Int32(g.warm)})
		return err
	})
}

func (kops) hook(ctx context.Context, w *world, g group) error {
	sleep.For(ctx, w.between(0, time.Minute))
	return retryThrottled(ctx, func() error {
		_, err := w.client().PutLifecycleHook(ctx, &awsas.PutLifecycleHookInput{
			AutoScalingGroupName: &g.name, LifecycleHookName: aws.String(kopsHook), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
			DefaultResult: aws.String("ABANDON"), HeartbeatTimeout: aws.Int32(600),
		})
		return err
	})
}

// boot: user data runs only at the first boot, and installs the unit of nodeup. Later boots run the
// unit, until nodeup has started the kubelet; then they start the kubelet only.
func (k kops) boot(ctx context.Context, m *machine) {
	var d diskState
	m.disk.set(func(on *disk) { d, on.begun = on.diskState, true })
	switch {
	case d.joined:
		m.startKubelet()
		return
	case !d.begun:
		if !sleep.For(ctx, m.w.between(5*time.Second, 20*time.Second)) { // the download of nodeup
			return
		}
		m.disk.set(func(on *disk) { on.installed = true })
	case !d.installed:
		return // the power went off during the first boot, before the installation
	}
	for !k.nodeup(ctx, m) {
		if !sleep.For(ctx, 30*time.Second) {
			return
		}
	}
}

// nodeup runs once; false: it failed and must run again.
func (k kops) nodeup(ctx context.Context, m *machine) bool {
	client := awsas.NewFromConfig(m.w.config(m.cloud))
	member, err := client.DescribeAutoScalingInstances(ctx, &awsas.DescribeAutoScalingInstancesInput{InstanceIds: []string{m.id}})
	if err != nil {
		return false
	}
	warms, group := false, ""
	for _, in := range member.AutoScalingInstances {
		warms, group = strings.HasPrefix(aws.ToString(in.LifecycleState), "Warmed:"), aws.ToString(in.AutoScalingGroupName)
	}
	if !m.setUp(ctx) {
		return false
	}
	if !warms {
		m.disk.set(func(d *disk) { d.joined = true })
		m.startKubelet()
	}
	return group == "" || k.complete(ctx, m, client, group) == nil || k.once
}

// complete completes the hook if the group has it.
func (kops) complete(ctx context.Context, m *machine, client *awsas.Client, group string) error {
	hooks, err := client.DescribeLifecycleHooks(ctx, &awsas.DescribeLifecycleHooksInput{AutoScalingGroupName: &group, LifecycleHookNames: []string{kopsHook}})
	if err != nil || len(hooks.LifecycleHooks) == 0 {
		return err
	}
	_, err = client.CompleteLifecycleAction(ctx, &awsas.CompleteLifecycleActionInput{
		AutoScalingGroupName: &group, LifecycleHookName: aws.String(kopsHook), InstanceId: &m.id, LifecycleActionResult: aws.String("CONTINUE"),
	})
	return err
}
