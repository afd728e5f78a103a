package autoscaling_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/intake/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// account is an emulated account with groups, some of whose instances are
// nodes.
type account struct {
	*polltest.World
	t      *testing.T
	server *emulator.Server
	groups *emu.State
	api    groupcache.API
}

func newAccount(t *testing.T) *account {
	t.Helper()
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	return &account{World: polltest.New(t), t: t, server: server, groups: server.States.AutoScaling, api: groupcache.NewAPI(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	})}
}

func (a *account) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// group creates a group with one instance per given state.
func (a *account) group(name string, states ...emu.LifecycleState) []string {
	a.t.Helper()
	a.must(a.groups.CreateGroup(emu.Group{Name: name, Max: 9000}))
	return a.join(name, states...)
}

func (a *account) join(name string, states ...emu.LifecycleState) []string {
	a.t.Helper()
	var ids []string
	for _, state := range states {
		made, err := a.server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1})
		a.must(err)
		a.Until("it runs", func() bool {
			in, _ := a.server.States.EC2.Instance(made[0].ID)
			return in.State == ec2.Running
		})
		if name != "" {
			a.must(a.groups.Attach(name, made[0].ID, state))
		}
		ids = append(ids, made[0].ID)
	}
	return ids
}

func (a *account) nodes(ids []string, labels ...string) {
	a.t.Helper()
	for _, id := range ids {
		a.AddNode(id, labels...)
	}
}

// start runs the source and its watcher until the test ends or it is stopped.
func (a *account) start(interval time.Duration) (stop func()) {
	a.t.Helper()
	groups, err := groupcache.New(groupcache.Options{API: a.api, Reader: a.Kube, Interval: interval})
	a.must(err)
	source := autoscaling.New(groups, a.Recorder(), autoscaling.Options{Reader: a.Kube, Metrics: a.Metrics})
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), a.Logger()))
	ended := make(chan error, 2)
	go func() { ended <- groups.Start(ctx) }()
	go func() { ended <- source.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				a.t.Errorf("Run: %v", err)
			}
		}
	})
	a.t.Cleanup(stop)
	return stop
}

func (a *account) rounds(times int) {
	a.t.Helper()
	calls := func() int { return a.server.Gate.Calls("autoscaling", "DescribeAutoScalingGroups") }
	from := calls()
	a.Until(fmt.Sprintf("%d rounds", times), func() bool { return calls() >= from+times })
}

func TestTerminationLifecycle(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			a := newAccount(t)
			ids := a.group("workers", emu.InService, emu.InService)
			a.nodes(ids[:1])
			stop := a.start(10 * time.Millisecond)
			again := func() {
				if restarts {
					stop()
					stop = a.start(10 * time.Millisecond)
				}
			}
			a.must(a.groups.PutHook(emu.Hook{Name: "drain", Group: "workers", Transition: emu.Leaving, Heartbeat: 5 * time.Minute}))
			a.rounds(3)
			if got := a.IDs(ids[0]); got != nil {
				t.Errorf("on record in service: %v", got)
			}
			for _, id := range ids {
				a.must(a.groups.Attach("workers", id, "Terminating"))
			}
			a.Until("it is on record", func() bool { return len(a.Notices(ids[0])) == 1 })
			n := a.Notices(ids[0])[0]
			if n.Kind != notice.KindAutoScalingTermination || n.Source != notice.SourceAutoScaling || n.Deadline != nil || n.Subject != "workers/"+ids[0] {
				t.Errorf("on record: %+v", n)
			}
			again()
			a.must(a.groups.Attach("workers", ids[0], "Terminating:Wait"))
			a.Until("it has a deadline", func() bool { return a.Notices(ids[0])[0].Deadline != nil })
			n = a.Notices(ids[0])[0]
			if in := time.Until(n.Deadline.Time.Time); n.Deadline.Type != v1beta1.DeadlineSoft || in > 5*time.Minute || in < 4*time.Minute {
				t.Errorf("on record: %+v", n)
			}
			again()
			a.must(a.groups.Attach("workers", ids[0], emu.InService))
			a.Until("it is taken back", func() bool { return a.Notices(ids[0])[0].Withdrawn })
			again()
			a.must(a.groups.Attach("workers", ids[0], "Terminating:Proceed"))
			a.Until("it goes", func() bool {
				n := a.Notices(ids[0])[0]
				return !n.Withdrawn && n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineEstimated
			})
			a.rounds(2)
			a.Spent()
			a.rounds(20)
			if reads, writes := a.Spent(); reads+writes != 0 || a.Notices(ids[1]) != nil || len(a.Notices(ids[0])) != 1 {
				t.Errorf("%d reads and %d writes for what is known; on record of another cluster: %v", reads, writes, a.IDs(ids[1]))
			}
		})
	}
}

func TestLiveStates(t *testing.T) {
	a := newAccount(t)
	ids := a.group("workers", "Standby", "Warmed:Stopped", "Warmed:Terminating:Wait", "Detaching", "Pending:Wait", "Teleporting")
	a.nodes(ids)
	a.start(10 * time.Millisecond)
	a.rounds(10)
	for _, id := range ids {
		if got := a.Notices(id); got != nil {
			t.Errorf("on record: %+v", got)
		}
	}
}

func TestCallsDoNotGrowWithNodes(t *testing.T) {
	a := newAccount(t)
	for g := range 3 {
		states := make([]emu.LifecycleState, 60)
		for i := range states {
			states[i] = emu.InService
		}
		a.nodes(a.group(fmt.Sprintf("workers-%d", g), states...))
	}
	a.group("of-another-cluster", emu.InService)
	a.nodes(a.join("", "", ""))
	a.nodes(a.join("", "", ""), "karpenter.sh/nodepool", "default")
	a.start(10 * time.Millisecond)
	a.rounds(10)
	calls := a.server.Gate.AllCalls("autoscaling")
	if diff := cmp.Diff(map[string]int{"DescribeAutoScalingInstances": 4, "DescribeAutoScalingGroups": calls["DescribeAutoScalingGroups"]}, calls); diff != "" {
		t.Errorf("calls for 182 nodes, of which two are in no group (-want +got):\n%s\n%s", diff, a.Log())
	}
	// New instances of a known group are found in its list.
	late := a.join("workers-0", emu.InService, emu.InService)
	a.rounds(2)
	a.nodes(late)
	a.rounds(3)
	if got := a.server.Gate.Calls("autoscaling", "DescribeAutoScalingInstances"); got != 4 {
		t.Errorf("%d calls to learn of nodes that the list of their group tells of", got-4)
	}
	// An unknown group is looked up.
	fresh := a.group("workers-9", "Terminating")
	a.nodes(fresh)
	a.Until("it is on record", func() bool { return len(a.Notices(fresh[0])) == 1 })
	if got := a.server.Gate.Calls("autoscaling", "DescribeAutoScalingInstances"); got != 5 {
		t.Errorf("%d calls to learn of a new group", got-4)
	}
}

func TestManyGroups(t *testing.T) {
	a := newAccount(t)
	var ids []string
	for g := range 130 {
		ids = append(ids, a.group(fmt.Sprintf("g-%03d", g), "Terminating")...)
	}
	a.nodes(ids)
	a.start(time.Hour)
	a.Until("all are on record", func() bool { return len(a.Notices(ids[0])) == 1 && len(a.Notices(ids[129])) == 1 })
	want := map[string]int{"DescribeAutoScalingInstances": 3, "DescribeAutoScalingGroups": 2}
	if diff := cmp.Diff(want, a.server.Gate.AllCalls("autoscaling")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestDenied(t *testing.T) {
	for action, stillReported := range map[string]bool{
		"DescribeAutoScalingGroups": false, "DescribeAutoScalingInstances": false, "DescribeLifecycleHooks": true,
	} {
		t.Run(action, func(t *testing.T) {
			a := newAccount(t)
			ids := a.group("workers", "Terminating:Wait")
			a.nodes(ids)
			a.must(a.groups.PutHook(emu.Hook{Name: "drain", Group: "workers", Transition: emu.Leaving, Heartbeat: 5 * time.Minute}))
			a.server.Gate.Deny("autoscaling", action)
			a.start(10 * time.Millisecond)
			a.Until("it says what is missing", func() bool {
				return a.Said("cannot poll AWS, retrying", `"reason"="accessDenied"`, "grant autoscaling:"+action+" on") == 1
			})
			if stillReported {
				a.Until("it is received without a deadline", func() bool { return len(a.Notices(ids[0])) == 1 && a.Notices(ids[0])[0].Deadline == nil })
			}
			a.server.Gate.LiftAll()
			a.Until("it is received with its deadline, once it may ask", func() bool { return len(a.Notices(ids[0])) == 1 && a.Notices(ids[0])[0].Deadline != nil })
		})
	}
}

func TestThrottled(t *testing.T) {
	a := newAccount(t)
	ids := a.group("workers", "Terminating")
	a.nodes(ids)
	a.server.Gate.Throttle("autoscaling", "DescribeAutoScalingGroups", 4)
	a.start(10 * time.Millisecond)
	a.Until("it says so", func() bool { return a.Said("cannot poll AWS", `"reason"="throttled"`) == 1 })
	a.Until("it is on record", func() bool { return len(a.Notices(ids[0])) == 1 })
}
