package interruption

import (
	"context"
	"strings"
	"testing"
	"time"

	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/elb"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/deregistration"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// balanced is a region whose only instance is a target of a group, interrupted, with a substitute for
// the AWS Load Balancer Controller.
type balanced struct {
	*region
	targets  string
	instance string
	// lag is how long the substitute needs after a node was labelled; negative: forever.
	lag      time.Duration
	labelled time.Time
	// states are the states of the target when a pod was asked to stop, by pod.
	states map[string]string
	// last is when the last pod was asked to stop.
	last time.Time
}

func asIs(*balanced) {}

// inBalanced interrupts a node with two pods. wait is the policy's waitForDeregistration.
func inBalanced(t *testing.T, wait, lag time.Duration, prepare, play func(*balanced)) {
	t.Helper()
	inRegion(t, emu.Group{Desired: 1}, 2, 2, func(r *region) {
		b := &balanced{region: r, instance: r.server.States.AutoScaling.Members()[0].InstanceID, lag: lag, states: map[string]string{}}
		var err error
		if b.targets, err = r.server.States.ELB.Create("web", elb.TypeInstance, 30080); err != nil {
			t.Fatal(err)
		}
		if err := r.server.States.ELB.Register(b.targets, elb.Target{ID: b.instance}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		binding := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "elbv2.k8s.aws/v1beta1", "kind": "TargetGroupBinding", "metadata": map[string]any{"name": "web", "namespace": "default"},
			"spec": map[string]any{"targetGroupARN": b.targets, "targetType": "instance"},
		}}
		policy := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1beta1.InterruptionPolicySpec{
			Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Strategy: v1beta1.StrategyEvict, Replacement: v1beta1.ReplacementNone}},
		}}
		if wait > 0 {
			policy.Spec.WaitForDeregistration = &metav1.Duration{Duration: wait}
		}
		in := recordOf(spot())
		in.Name, in.Spec.InstanceID = b.instance, b.instance
		in.Spec.Notices[0].Time, in.Spec.Notices[0].ReceivedTime = metav1.Now(), metav1.NowMicro()
		in.Spec.Notices[0].Deadline = notice.At(time.Now().Add(2*time.Minute), v1beta1.DeadlineHard)
		for _, err := range []error{r.client.Create(t.Context(), binding), r.client.Create(t.Context(), policy), r.client.Create(t.Context(), in)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		config := emulatortest.Config(r.server)
		config.RetryMaxAttempts = 1
		watcher := deregistration.New(deregistration.Options{Reader: r.client, Health: elbv2.NewFromConfig(config), Wake: func(string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changed = true
		}})
		r.loop.Targets = watcher
		ctx, stop := context.WithCancel(context.Background()) // of the bubble
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = watcher.Start(ctx)
		}()
		defer func() { // also if the test ends early
			stop()
			<-ended
		}()
		prepare(b)
		for range 55 {
			b.step()
		}
		play(b)
	})
}

// step advances by two seconds.
func (b *balanced) step() {
	b.t.Helper()
	health, err := b.server.States.ELB.Health(b.targets, elb.Target{ID: b.instance})
	if err != nil {
		b.t.Fatal(err)
	}
	b.tick()
	for name := range b.asked {
		if b.states[name] == "" {
			b.states[name], b.last = health[0].State, b.now
		}
	}
	var nodes corev1.NodeList
	if err := b.client.List(b.t.Context(), &nodes); err != nil {
		b.t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if _, excluded := n.Labels[v1beta1.LabelExcludeBalancers]; excluded && b.labelled.IsZero() {
			b.labelled = b.now
		}
	}
	if !b.labelled.IsZero() && b.lag >= 0 && !b.now.Before(b.labelled.Add(b.lag)) {
		if err := b.server.States.ELB.Deregister(b.targets, elb.Target{ID: b.instance}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// timeline returns the messages with a reason.
func (b *balanced) timeline(reason string) []string {
	b.t.Helper()
	var in v1beta1.Interruption
	if err := b.client.Get(b.t.Context(), types.NamespacedName{Name: b.instance}, &in); err != nil {
		b.t.Fatal(err)
	}
	var found []string
	for _, e := range in.Status.Timeline {
		if e.Reason == reason {
			found = append(found, e.Message)
		}
	}
	return found
}

func (b *balanced) wantStates(want string) {
	b.t.Helper()
	if len(b.states) != 2 {
		b.t.Fatalf("pods asked to stop: %v", b.states)
	}
	for name, state := range b.states {
		if state != want {
			b.t.Errorf("pod %s was asked to stop while its instance was %s, want %s", name, state, want)
		}
	}
}

func TestPodsWaitForDeregistration(t *testing.T) {
	t.Parallel()
	inBalanced(t, time.Minute, 10*time.Second, asIs, func(b *balanced) {
		b.wantStates(elb.Draining)
		if got := b.timeline(v1beta1.ReasonDeregistered); len(got) != 1 {
			t.Errorf("timeline: %v", got)
		}
	})
}

// The twin: without the policy's field, pods go while the instance is a target, and AWS is not asked.
func TestPodsDoNotWaitWithoutOptIn(t *testing.T) {
	t.Parallel()
	inBalanced(t, 0, 10*time.Second, asIs, func(b *balanced) {
		b.wantStates(elb.Healthy)
		if calls := b.server.Gate.Calls("elasticloadbalancing", "DescribeTargetHealth"); calls != 0 {
			t.Errorf("%d calls", calls)
		}
	})
}

// An instance that stays registered holds pods for the policy's time, and not past their last call.
func TestDeregistrationNeverComes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait, earliest, latest time.Duration
		timedOut               int
	}{
		"the policy's time is over": {wait: 30 * time.Second, earliest: 28 * time.Second, latest: 40 * time.Second, timedOut: 1},
		"their last call":           {wait: time.Hour, earliest: 70 * time.Second, latest: 82 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBalanced(t, c.wait, -1, asIs, func(b *balanced) {
				b.wantStates(elb.Healthy)
				if got := b.timeline(v1beta1.ReasonDeregistrationTimedOut); len(got) != c.timedOut {
					t.Errorf("timeline: %q, want %d entries", got, c.timedOut)
				}
				if after := b.last.Sub(b.labelled); after < c.earliest || after > c.latest {
					t.Errorf("the last pod was asked to stop %s after the cordon, want between %s and %s", after, c.earliest, c.latest)
				}
			})
		})
	}
}

// If AWS does not answer for as long as pods wait, the timeline says why, once.
func TestDeregistrationIsAskedAgain(t *testing.T) {
	t.Parallel()
	throttled := func(b *balanced) { b.server.Gate.Throttle("elasticloadbalancing", "DescribeTargetHealth", -1) }
	inBalanced(t, 30*time.Second, -1, throttled, func(b *balanced) {
		if got := b.timeline(v1beta1.ReasonDeregistrationUnknown); len(got) != 1 || !strings.Contains(got[0], "Throttling") {
			t.Errorf("timeline: %q", got)
		}
		b.wantStates(elb.Healthy)
		if after := b.last.Sub(b.labelled); after < 28*time.Second || after > 40*time.Second {
			t.Errorf("the last pod was asked to stop %s after the cordon, want about 30 s", after)
		}
	})
}

// If AWS refuses, pods do not wait, and the timeline says why, once.
func TestDeregistrationUnknown(t *testing.T) {
	t.Parallel()
	denied := func(b *balanced) { b.server.Gate.Deny("elasticloadbalancing", "DescribeTargetHealth") }
	inBalanced(t, time.Minute, -1, denied, func(b *balanced) {
		if got := b.timeline(v1beta1.ReasonDeregistrationUnknown); len(got) != 1 || !strings.Contains(got[0], "AccessDenied") {
			t.Errorf("timeline: %q", got)
		}
		b.wantStates(elb.Healthy)
		if after := b.last.Sub(b.labelled); after > 15*time.Second {
			t.Errorf("pods waited %s", after)
		}
	})
}
