package cloudtrail_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awstrail "github.com/aws/aws-sdk-go-v2/service/cloudtrail"
	"github.com/aws/aws-sdk-go-v2/service/cloudtrail/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/intake/apicall"
	"github.com/lifeboat-dev/lifeboat/internal/intake/cloudtrail"
	intakeec2 "github.com/lifeboat-dev/lifeboat/internal/intake/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// account is an emulated account with the group "workers", in a bubble.
type account struct {
	*polltest.World
	*testing.T
	server *emulator.Server
	cfg    aws.Config
	stops  []func()
}

// inAccount runs a test with an account in a bubble, whose clock begins at one start for EC2 too.
func inAccount(t *testing.T, test func(a *account)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{PendingFor: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { server.Work(ctx); close(done) }()
		a := &account{World: polltest.New(t), T: t, server: server, cfg: emulatortest.Config(server)}
		if err := server.States.AutoScaling.CreateGroup(emu.Group{Name: "workers", Max: 100}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, stop := range a.stops {
				stop()
			}
			cancel()
			<-done
		}()
		test(a)
	})
}

// launch launches an instance; group is empty: of no group.
func (a *account) launch(group string) string {
	a.Helper()
	made, err := a.server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1})
	if err != nil {
		a.Fatal(err)
	}
	time.Sleep(time.Second)
	if group != "" {
		if err := a.server.States.AutoScaling.Attach(group, made[0].ID, emu.InService); err != nil {
			a.Fatal(err)
		}
		a.server.States.EC2.SetSystemTags(made[0].ID, map[string]string{"aws:autoscaling:groupName": group})
	}
	return made[0].ID
}

// complete completes an action that is not active.
func (a *account) complete(group, instance string) {
	a.Helper()
	_, err := awsas.NewFromConfig(a.cfg).CompleteLifecycleAction(a.Context(), &awsas.CompleteLifecycleActionInput{
		AutoScalingGroupName: &group, LifecycleHookName: aws.String("kops-warmpool"), LifecycleActionResult: aws.String("CONTINUE"), InstanceId: &instance,
	})
	if err == nil || !strings.Contains(err.Error(), "No active Lifecycle Action found") {
		a.Fatalf("completing: %v", err)
	}
}

// start runs the source; the result stops it.
func (a *account) start() (stop func()) {
	source := cloudtrail.New(cloudtrail.NewAPI(a.cfg), intakeec2.NewAPI(a.cfg).InstancesWith, a.Recorder(), cloudtrail.Options{
		Reader: a.Kube, Nodes: a, Metrics: a.Metrics,
	})
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), a.Logger()))
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			a.Errorf("Run: %v", err)
		}
	})
	a.stops = append(a.stops, stop)
	return stop
}

// wait lets time pass for several rounds.
func wait() {
	time.Sleep(20 * time.Minute)
	synctest.Wait()
}

func TestRefusedCallIsRecordedOnce(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			inAccount(t, func(a *account) {
				id := a.launch("workers")
				a.AddNode(id)
				a.complete("workers", id)
				stop := a.start()
				wait()
				all := a.Notices(id)
				if len(all) != 1 {
					a.Fatalf("on record: %+v", all)
				}
				n := all[0]
				if n.Kind != notice.KindLifecycleActionFailure || n.Source != notice.SourceCloudTrail || n.EventTypeCode != "ValidationException" || len(n.ID) != 36 {
					a.Errorf("on record: %+v", n)
				}
				if restarts {
					stop()
					stop = a.start()
				}
				a.Spent()
				wait()
				if _, writes := a.Spent(); writes != 0 || len(a.Notices(id)) != 1 {
					a.Errorf("%d writes for what is known, on record %v", writes, a.IDs(id))
				}
				a.complete("workers", id)
				wait()
				if got := a.Notices(id); len(got) != 2 {
					a.Errorf("a second call: on record %+v", got)
				}
				stop()
			})
		})
	}
}

// With a trail the same call arrives by EventBridge too. CloudTrail's id of the call is the notice's.
func TestCallOfBothWaysCountsOnce(t *testing.T) {
	inAccount(t, func(a *account) {
		id := a.launch("workers")
		a.AddNode(id)
		a.complete("workers", id)
		out, err := awstrail.NewFromConfig(a.cfg).LookupEvents(a.Context(), nil)
		a.server.States.CloudTrail.SetDelay(0)
		if err != nil || len(out.Events) != 0 {
			a.Fatalf("%d events at once, %v", len(out.Events), err)
		}
		time.Sleep(time.Second)
		name := apicall.Name
		out, err = awstrail.NewFromConfig(a.cfg).LookupEvents(a.Context(), &awstrail.LookupEventsInput{
			LookupAttributes: []types.LookupAttribute{{AttributeKey: types.LookupAttributeKeyEventName, AttributeValue: &name}},
		})
		if err != nil || len(out.Events) != 1 {
			a.Fatalf("%+v, %v", out, err)
		}
		_, err = a.Recorder().Record(a.Context(), notice.Notice{InstanceID: id, Notice: v1beta1.Notice{
			ID: *out.Events[0].EventId, Kind: notice.KindLifecycleActionFailure, Source: notice.SourceQueue, Time: metav1.Now(),
		}})
		if err != nil {
			a.Fatal(err)
		}
		stop := a.start()
		wait()
		stop()
		if got := a.Notices(id); len(got) != 1 || got[0].Source != notice.SourceQueue {
			a.Errorf("on record: %+v", got)
		}
	})
}

// A caller with permissions for one group can name any instance.
func TestOnlyOwnInstancesCount(t *testing.T) {
	inAccount(t, func(a *account) {
		if err := a.server.States.AutoScaling.CreateGroup(emu.Group{Name: "theirs", Max: 1}); err != nil {
			a.Fatal(err)
		}
		own, bare, elsewhere := a.launch("workers"), a.launch(""), a.launch("workers")
		a.AddNode(own)
		a.AddNode(bare)
		a.complete("theirs", own)        // not its group
		a.complete("workers", bare)      // of no group
		a.complete("workers", elsewhere) // no node of this cluster
		stop := a.start()
		wait()
		for _, id := range []string{own, bare, elsewhere} {
			if got := a.Notices(id); len(got) != 0 {
				a.Errorf("on record of %s: %+v", id, got)
			}
		}
		a.AddNode(elsewhere)
		wait()
		stop()
		if got := a.Notices(elsewhere); len(got) != 1 {
			a.Errorf("of a node that registered later: %+v", got)
		}
	})
}

// AWS allows two requests a second for all callers, and 50 events a page.
func TestPagesAreReadSlowly(t *testing.T) {
	inAccount(t, func(a *account) {
		id := a.launch("workers")
		a.AddNode(id)
		a.complete("workers", id)
		other := a.launch("workers")
		for range 149 {
			a.complete("workers", other)
		}
		began := time.Now()
		a.server.States.CloudTrail.SetDelay(0)
		stop := a.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		if calls := a.server.Gate.Calls("cloudtrail", "LookupEvents"); calls != 3 || len(a.Notices(id)) != 1 {
			a.Errorf("%d requests in %s, on record %v", calls, time.Since(began), a.IDs(id))
		}
	})
}

func TestFailuresAreExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		fault func(a *account)
		want  string
	}{
		"denied":          {func(a *account) { a.server.Gate.Deny("cloudtrail", "LookupEvents") }, "grant cloudtrail:LookupEvents"},
		"throttled":       {func(a *account) { a.server.Gate.Throttle("cloudtrail", "LookupEvents", -1) }, "throttl"},
		"EC2 is denied":   {func(a *account) { a.server.Gate.Deny("ec2", "DescribeInstances") }, "grant ec2:DescribeInstances"},
		"the API is away": {func(a *account) { a.server.Gate.Fail("cloudtrail", "LookupEvents") }, "nothing if it is temporary"},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(a *account) {
				id := a.launch("workers")
				a.AddNode(id)
				a.complete("workers", id)
				tc.fault(a)
				stop := a.start()
				wait()
				if text := a.World.Log(); len(a.Notices(id)) != 0 || !strings.Contains(text, tc.want) {
					a.Errorf("on record %v, log:\n%s", a.IDs(id), text)
				}
				a.server.Gate.LiftAll()
				time.Sleep(2 * time.Hour) // throttling makes the poll slower
				synctest.Wait()
				a.complete("workers", id)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if len(a.Notices(id)) == 0 {
					a.Error("nothing is recorded after the fault")
				}
				stop()
			})
		})
	}
}
