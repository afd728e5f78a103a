package warmpool

import (
	"context"
	"fmt"
	"slices"
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

const templateName = "nodes"

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

// TestKopsLosesHealthyMachines shows that the replay reproduces the report with kOps 1.28: healthy
// machines are terminated, and machines without setup come into service.
func TestKopsLosesHealthyMachines(t *testing.T) {
	t.Parallel()
	kinds := []string{takenDown, tooEarly, unsettled}
	missing := func(found map[string]int) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return found[kind] == 0 })
	}
	if found := kopsFaults(t, kops{minor: 28, once: true}, nil, 20, missing); missing(found) {
		t.Errorf("the replay did not reproduce %q: %v", kinds, found)
	}
}

// TestKopsBesideObservingController plays kOps' own groups and boots, with Lifeboat's controller beside
// them. It has no agent on the machines, and changes nothing about the groups.
func TestKopsBesideObservingController(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kops{
		"1.28":                            {minor: 28, observed: true},
		"1.28, one try to answer":         {minor: 28, observed: true, once: true},
		"1.29 to 1.36":                    {minor: 36, observed: true},
		"1.29 to 1.36, one try to answer": {minor: 36, observed: true, once: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := kopsFaults(t, k, always, max(1, repetitions()/4), func(map[string]int) bool { return true })
			for _, kind := range []string{takenDown, joined} {
				if found[kind] > 0 {
					t.Errorf("%q happened %d times", kind, found[kind])
				}
			}
		})
	}
}

// kopsFaults plays the report several times while goOn says so, and counts the faults by kind.
func kopsFaults(t *testing.T, k kops, control func(context.Context, *world), times uint64, goOn func(map[string]int) bool) map[string]int {
	t.Helper()
	found := map[string]int{}
	seed := uint64(0)
	for ; seed < times && goOn(found); seed++ {
		synctest.Test(t, func(t *testing.T) {
			for _, f := range (scenario{way: k, groups: groups(), control: control}).play(t, seed) {
				found[f.kind]++
			}
		})
	}
	t.Logf("%d times: %v", seed, found)
	return found
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
func (s scenario) playWithoutFaults(t *testing.T, times uint64) {
	for seed := range times {
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
func repetitions() uint64 {
	if testing.Short() {
		return 2
	}
	return 20
}
