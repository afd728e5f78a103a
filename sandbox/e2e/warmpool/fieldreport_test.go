package warmpool

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	hookName     = "lifeboat-launch"
	templateName = "nodes"
)

// groups are the nine of the report, three of them with a warm pool.
func groups() []group {
	var all []group
	for i := range 9 {
		g := group{name: fmt.Sprintf("nodes-%d", i), size: 1}
		if i%3 == 0 {
			g.warm = 2
		}
		all = append(all, g)
	}
	return all
}

// scenario is one replay of the report.
type scenario struct {
	way    way
	groups []group
	// control runs the controller, or parts of it; nil: no controller.
	control func(ctx context.Context, w *world)
	// trouble starts when instances leave the warm pools; nil: no fault.
	trouble func(ctx context.Context, w *world)
}

// untilPools is the time for groups to settle before instances leave their pools.
const untilPools = 15 * time.Minute

// play creates the groups at once and lets them settle. Then each group with a warm pool grows by
// one instance from it. It returns the faults.
func (s scenario) play(t *testing.T, seed uint64) []fault {
	t.Helper()
	w := newWorld(t, seed, s.way)
	w.template()
	w.cloud.Gate.Limit("autoscaling", wire.AnyAction, 4, 12) // some calls are throttled
	judge := &judge{w: w, groups: s.groups}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.running.Go(func() {
		for sleep.For(ctx, 3*time.Second) {
			judge.look()
		}
	})
	if s.control != nil {
		w.running.Go(func() { s.control(ctx, w) })
	}
	began := time.Now()
	failed := make(chan error, len(s.groups))
	for _, g := range s.groups {
		go func() { failed <- retryThrottled(ctx, func() error { return s.way.make(ctx, w, g) }) }()
	}
	for range s.groups {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	sleep.For(ctx, time.Until(began.Add(untilPools)))
	client := w.client()
	for _, g := range s.groups {
		if g.warm == 0 {
			continue
		}
		sleep.For(ctx, w.between(0, 20*time.Second))
		if err := retryThrottled(ctx, func() error {
			_, err := client.SetDesiredCapacity(ctx, &awsas.SetDesiredCapacityInput{AutoScalingGroupName: &g.name, DesiredCapacity: aws.Int32(g.size + 1)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	last := untilPools
	if s.trouble != nil {
		w.running.Go(func() { s.trouble(ctx, w) })
		last *= 2
	}
	sleep.For(ctx, last)
	return judge.end(s.control != nil)
}

// retryThrottled retries a call that may be throttled.
func retryThrottled(ctx context.Context, do func() error) error {
	var err error
	for range 60 {
		if err = do(); err == nil || !strings.Contains(err.Error(), "Throttling") {
			return err
		}
		sleep.For(ctx, 3*time.Second)
	}
	return err
}

// wanted is the number of instances that a group must have in service at the end.
func (g group) wanted() int32 {
	if g.warm > 0 {
		return g.size + 1
	}
	return g.size
}

func makeTemplate(_ context.Context, w *world) error {
	_, err := w.cloud.States.EC2.CreateTemplate(templateName, "", "", ec2.TemplateData{ImageID: ec2.ImageID(ec2.X86), InstanceType: "m5.large"}, nil)
	return err
}

// subnets returns the IDs of the account's subnets.
func (w *world) subnets() []string {
	var ids []string
	for _, s := range w.cloud.States.EC2.Subnets() {
		ids = append(ids, s.ID)
	}
	return ids
}

// TestHookCreatedAfterGroupLosesMachines shows that the replay reproduces the report: with kOps'
// order of creation, healthy machines are terminated, or machines without setup come into service.
func TestHookCreatedAfterGroupLosesMachines(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			for _, f := range (scenario{way: kops{}, groups: groups()}).play(t, seed) {
				found[f.kind]++
			}
		})
	}
	t.Logf("20 times: %v", found)
	for _, kind := range []string{takenDown, joined, tooEarly, unsettled} {
		if found[kind] == 0 {
			t.Errorf("the replay did not reproduce %q: %v", kind, found)
		}
	}
}

// TestNineGroupsCreatedAtOnce replays the report with Lifeboat. No instance is in service without
// setup, no healthy instance is terminated, no node joins while its instance warms.
func TestNineGroupsCreatedAtOnce(t *testing.T) {
	t.Parallel()
	scenario{way: lifeboat{}, groups: groups(), control: always}.playWithoutFaults(t, repetitions())
}

// TestAgentsWithoutController checks that the agents complete the hooks without the controller.
func TestAgentsWithoutController(t *testing.T) {
	t.Parallel()
	scenario{way: lifeboat{}, groups: groups()}.playWithoutFaults(t, max(2, repetitions()/10))
}

// TestControllerWithoutAgents checks groups without a warm pool. In a pool, only an agent knows
// what its machine has completed.
func TestControllerWithoutAgents(t *testing.T) {
	t.Parallel()
	cold := groups()
	for i := range cold {
		cold[i].warm = 0
	}
	scenario{way: lifeboat{silent: true}, groups: cold, control: always}.playWithoutFaults(t, max(2, repetitions()/10))
}

// playWithoutFaults plays a scenario with several seeds, and fails for any fault.
func (s scenario) playWithoutFaults(t *testing.T, times int) {
	for seed := range uint64(times) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, f := range s.play(t, seed) {
					t.Error(f)
				}
			})
		})
	}
}

func always(ctx context.Context, w *world) { w.control(ctx) }

// repetitions is the number of seeds for each scenario.
func repetitions() int {
	if testing.Short() {
		return 6
	}
	return 100
}
