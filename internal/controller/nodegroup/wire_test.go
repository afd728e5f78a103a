package nodegroup

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// TestOverHTTP runs the real controller and watch against a group of an
// emulated account.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: &url, HTTPClient: emulatortest.HTTPClient(t),
		Credentials: awshttp.StaticCredentials("AKIATEST", "secret"),
	}
	groups := server.States.AutoScaling
	groups.SetTiming(autoscaling.Timing{Evaluate: time.Millisecond, Launch: time.Millisecond, Settle: time.Millisecond})
	if _, err := server.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, declared(deleting, func(g *v1beta1.NodeGroup) {
		g.Spec.LaunchTemplate.Version, g.Spec.Subnets = "$Latest", []string{server.States.EC2.Subnets()[0].ID}
		g.Spec.WarmPool = &v1beta1.WarmPool{State: "Stopped", MinSize: 1}
		two := int32(2)
		g.Spec.WarmPool.MaxPreparedCapacity = &two
	}))
	watcher, err := groupcache.New(groupcache.Options{
		API: groupcache.NewAPI(cfg), Reader: w.client, Interval: 20 * time.Millisecond,
		Names: func(context.Context) ([]string, error) { return []string{"workers"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watcher.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the watch: %v", err)
		}
	})
	counting := &counted{AWS: nodegroup.NewAPI(cfg)}
	w.loop.Watch, w.loop.AWS, w.loop.Clock = watcher, counting, time.Now

	until := func(what string, is func(*v1beta1.NodeGroup) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			w.pass()
			if g := w.object(); is(g) {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("never: %s: %+v", what, g)
			}
		}
	}
	until("two instances held on their way", func(g *v1beta1.NodeGroup) bool {
		return g.Status.PendingActions == 2 && g.Status.Instances.Joining == 1 && g.Status.Instances.Warming == 1
	})
	answer := func(hook string) {
		if g, ok := watcher.Group("workers"); ok {
			for _, m := range g.Members {
				_ = groups.Complete(autoscaling.Ref{Group: "workers", Hook: hook, InstanceID: m.InstanceID}, autoscaling.Continue) // it may not be held yet
			}
		}
	}
	until("one in service and one warm", func(g *v1beta1.NodeGroup) bool {
		answer("lifeboat-launch")
		return g.Status.Instances.InService == 1 && g.Status.Instances.Warm == 1 && g.Status.PendingActions == 0
	})
	wants(t, w.object(), v1beta1.ConditionReady, isTrue, reasonLookedAt, "")
	if len(w.object().Status.Unhooked) > 0 || len(w.object().Status.Findings) > 0 {
		t.Errorf("%+v", w.object().Status)
	}
	// The watch and the direct read agree, so there are no repeated reads.
	o, err := counting.AWS.Observe(ctx, "workers", time.Now())
	group, _ := watcher.Group("workers")
	if err != nil || differ(o, group) {
		t.Errorf("%v: the look says %+v, the watch %+v", err, o, group)
	}
	// The group is deleted only after it was scaled to zero.
	w.delete()
	w.pass()
	if slices.Contains(counting.steps, "delete group") {
		t.Fatalf("did %v", counting.steps)
	}
	if err := groups.Update("workers", func(g *autoscaling.Group) error { g.Min = 0; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := groups.SetDesired("workers", 0, false); err != nil {
		t.Fatal(err)
	}
	until("the group to be gone, and the object with it", func(g *v1beta1.NodeGroup) bool {
		answer("lifeboat-terminate")
		return g == nil
	})
	if !slices.Contains(counting.steps, "drop warm pool") || !slices.Contains(counting.steps, "delete group") {
		t.Errorf("did %v", counting.steps)
	}
}

// counted counts the applied steps.
type counted struct {
	AWS
	steps []string
}

func (c *counted) Apply(ctx context.Context, w nodegroup.Wanted, s nodegroup.Step) error {
	c.steps = append(c.steps, s.String())
	return c.AWS.Apply(ctx, w, s)
}
