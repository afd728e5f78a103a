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

// story is what is played.
type story struct {
	way    way
	groups []group
	// control runs what of the controller is to run; nil: none.
	control func(ctx context.Context, w *world)
	// trouble begins once instances are taken out of the pools; nil: none.
	trouble func(ctx context.Context, w *world)
}

// untilPools is how long groups have to settle before instances are taken out of
// their pools.
const untilPools = 15 * time.Minute

// play makes the groups at once, lets them settle, then has those with a warm
// pool grow by one instance out of it, and returns what must not have happened.
func (s story) play(t *testing.T, seed uint64) []fault {
	t.Helper()
	w := newWorld(t, seed, s.way)
	w.template()
	w.cloud.Gate.Limit("autoscaling", wire.AnyAction, 4, 12) // calls are throttled now and then
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
		go func() { failed <- patiently(ctx, func() error { return s.way.make(ctx, w, g) }) }()
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
		if err := patiently(ctx, func() error {
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

// patiently does what may be throttled.
func patiently(ctx context.Context, do func() error) error {
	var err error
	for range 60 {
		if err = do(); err == nil || !strings.Contains(err.Error(), "Throttling") {
			return err
		}
		sleep.For(ctx, 3*time.Second)
	}
	return err
}

// wanted is how many instances of a group are to serve in the end.
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

// subnets are those of the account.
func (w *world) subnets() []string {
	var ids []string
	for _, s := range w.cloud.States.EC2.Subnets() {
		ids = append(ids, s.ID)
	}
	return ids
}

// TestTheHookAfterTheGroup shows that the report can be played: groups made the
// way that kOps makes them lose healthy machines, or have some serve that were
// never set up.
func TestTheHookAfterTheGroup(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			for _, f := range (story{way: kops{}, groups: groups()}).play(t, seed) {
				found[f.kind]++
			}
		})
	}
	t.Logf("20 times: %v", found)
	for _, kind := range []string{takenDown, joined, tooEarly, unsettled} {
		if found[kind] == 0 {
			t.Errorf("of the failures of the report, none is %q: %v", kind, found)
		}
	}
}

// TestNineGroupsAtOnce plays the report the way that Lifeboat does it: none serves
// that was not set up, none is taken down that is healthy, none joins while it
// warms.
func TestNineGroupsAtOnce(t *testing.T) {
	t.Parallel()
	story{way: lifeboat{}, groups: groups(), control: always}.wellFor(t, repetitions())
}

// TestTheAgentsAlone does without the controller: hooks are answered all the same.
func TestTheAgentsAlone(t *testing.T) {
	t.Parallel()
	story{way: lifeboat{}, groups: groups()}.wellFor(t, max(2, repetitions()/10))
}

// TestTheControllerAlone does without the agents' answers, for groups without a
// warm pool: what a machine in a pool has done, only its agent knows.
func TestTheControllerAlone(t *testing.T) {
	t.Parallel()
	cold := groups()
	for i := range cold {
		cold[i].warm = 0
	}
	story{way: lifeboat{silent: true}, groups: cold, control: always}.wellFor(t, max(2, repetitions()/10))
}

// wellFor plays a story again and again, and nothing goes wrong.
func (s story) wellFor(t *testing.T, times int) {
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

// repetitions is how many seeds a story is played with.
func repetitions() int {
	if testing.Short() {
		return 6
	}
	return 100
}
