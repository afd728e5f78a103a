package ec2_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/intake/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// account is an emulated account, some of whose instances are nodes.
type account struct {
	*polltest.World
	t      *testing.T
	server *emulator.Server
	api    ec2.API
}

func newAccount(t *testing.T) *account {
	t.Helper()
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: emu.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	return &account{World: polltest.New(t), t: t, server: server, api: ec2.NewAPI(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	})}
}

// launch starts spot instances and waits until they run.
func (a *account) launch(count int, nodes int) []string {
	a.t.Helper()
	made, err := a.server.States.EC2.Launch(emu.LaunchInput{ImageID: "ami-0abc", Min: count, Max: count, Spot: &emu.SpotOptions{}})
	if err != nil {
		a.t.Fatal(err)
	}
	var ids []string
	for i, in := range made {
		ids = append(ids, in.ID)
		if i < nodes {
			a.AddNode(in.ID)
		}
	}
	a.Until("they run", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool {
			in, _ := a.server.States.EC2.Instance(id)
			return in.State != emu.Running
		})
	})
	return ids
}

// start runs the source until the test ends or it is stopped.
func (a *account) start(change ...func(*ec2.Options)) (stop func()) {
	a.t.Helper()
	o := ec2.Options{SpotInterval: 20 * time.Millisecond, StatusInterval: 20 * time.Millisecond, Threshold: time.Minute, Reader: a.Kube, Metrics: a.Metrics}
	for _, c := range change {
		c(&o)
	}
	source := ec2.New(a.api, a, a.Recorder(), o)
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), a.Logger()))
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			a.t.Errorf("Run: %v", err)
		}
	})
	a.t.Cleanup(stop)
	return stop
}

// poller waits until an action was called that many more times.
func (a *account) rounds(action string, times int) {
	a.t.Helper()
	from := a.server.Gate.Calls("ec2", action)
	a.Until(fmt.Sprintf("%s was called %d times", action, times), func() bool { return a.server.Gate.Calls("ec2", action) >= from+times })
}

func (a *account) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func TestMarkedSpotRequest(t *testing.T) {
	a := newAccount(t)
	ids := a.launch(2, 1)
	a.start()
	a.rounds("DescribeSpotInstanceRequests", 3)
	a.must(a.server.States.EC2.Interrupt(ids, emu.InterruptOptions{}))
	a.Until("it is on record", func() bool { return len(a.Notices(ids[0])) == 1 })
	n := a.Notices(ids[0])[0]
	in, _ := a.server.States.EC2.Instance(ids[0])
	if n.Kind != notice.KindSpotInterruption || n.Source != notice.SourceEC2 || n.InstanceAction != notice.ActionTerminate ||
		n.Deadline.Type != v1beta1.DeadlineHard || n.Deadline.Time.Sub(in.Notice.Deadline).Abs() > 2*time.Second || n.Subject != in.SpotRequestID {
		t.Errorf("on record: %+v; the instance's deadline is %s", n, in.Notice.Deadline)
	}
	a.Spent()
	a.rounds("DescribeSpotInstanceRequests", 20)
	if reads, writes := a.Spent(); reads+writes != 0 {
		t.Errorf("%d reads and %d writes for what is known, and for an instance of another cluster", reads, writes)
	}
	if a.Notices(ids[1]) != nil {
		t.Error("an instance of another cluster is on record")
	}
}

func TestScheduledEvents(t *testing.T) {
	for name, end := range map[string]func(a *account, id, event string) error{
		"completed": func(a *account, id, event string) error { return a.server.States.EC2.EndMaintenance(id, event, true) },
		"cancelled": func(a *account, id, event string) error { return a.server.States.EC2.EndMaintenance(id, event, false) },
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %t", name, restarts), func(t *testing.T) {
				a := newAccount(t)
				id := a.launch(1, 1)[0]
				stop := a.start()
				due := time.Now().Add(300 * time.Hour).UTC().Truncate(time.Second)
				event, err := a.server.States.EC2.ScheduleMaintenance(id, emu.Maintenance{Code: "instance-retirement", Description: "degraded", NotBefore: due})
				a.must(err)
				a.Until("it is on record", func() bool { return len(a.Notices(id)) == 1 })
				n := a.Notices(id)[0]
				if n.Kind != notice.KindScheduledChange || n.Deadline.Type != v1beta1.DeadlineSoft || !n.Deadline.Time.Time.Equal(due) ||
					n.Subject != event || n.InstanceAction != notice.ActionStop || n.Withdrawn {
					t.Errorf("on record: %+v", n)
				}
				if restarts {
					stop()
				}
				a.must(end(a, id, event))
				if restarts {
					a.start()
				}
				a.Until("it is taken back", func() bool { return a.Notices(id)[0].Withdrawn })
				a.Spent()
				a.rounds("DescribeInstanceStatus", 30)
				if _, writes := a.Spent(); writes != 0 || len(a.Notices(id)) != 1 {
					t.Errorf("%d writes later, on record: %v", writes, a.IDs(id))
				}
			})
		}
	}
}

func TestPastEventsAreNotRecorded(t *testing.T) {
	a := newAccount(t)
	id := a.launch(1, 1)[0]
	event, err := a.server.States.EC2.ScheduleMaintenance(id, emu.Maintenance{Code: "system-reboot", NotBefore: time.Now().Add(time.Hour)})
	a.must(err)
	a.must(a.server.States.EC2.EndMaintenance(id, event, true))
	a.start()
	a.rounds("DescribeInstanceStatus", 30)
	if got := a.IDs(id); got != nil {
		t.Errorf("on record: %v", got)
	}
}

func TestStatusChecks(t *testing.T) {
	a := newAccount(t)
	ids := a.launch(3, 3)
	since := time.Now().Add(-90 * time.Second)
	a.must(a.server.States.EC2.SetHealth(ids[0], emu.Health{System: "impaired", AttachedEBS: "impaired", ImpairedSince: since}))
	a.must(a.server.States.EC2.SetHealth(ids[1], emu.Health{Instance: "impaired", ImpairedSince: time.Now().Add(-30 * time.Second)}))
	stop := a.start()
	a.Until("both checks are on record", func() bool { return len(a.Notices(ids[0])) == 2 })
	a.rounds("DescribeInstanceStatus", 30)
	if a.Notices(ids[1]) != nil || a.Notices(ids[2]) != nil {
		t.Errorf("on record below the threshold: %v, and of one that is well: %v", a.IDs(ids[1]), a.IDs(ids[2]))
	}
	for _, n := range a.Notices(ids[0]) {
		if n.Kind != notice.KindInstanceStatus || n.Deadline != nil || !n.Time.Time.Equal(since.UTC().Truncate(time.Second)) {
			t.Errorf("on record: %+v", n)
		}
	}
	stop() // another replica leads from now on
	a.must(a.server.States.EC2.SetHealth(ids[0], emu.Health{AttachedEBS: "impaired", System: "insufficient-data", ImpairedSince: since}))
	stop = a.start()
	a.rounds("DescribeInstanceStatus", 60)
	for _, n := range a.Notices(ids[0]) {
		if n.Withdrawn {
			t.Errorf("taken back without being well: %+v", n)
		}
	}
	stop()
	a.must(a.server.States.EC2.SetHealth(ids[0], emu.Health{}))
	a.start()
	a.Until("both are taken back", func() bool {
		return !slices.ContainsFunc(a.Notices(ids[0]), func(n v1beta1.Notice) bool { return !n.Withdrawn })
	})
}

func TestStopDoesNotWithdrawScheduledEvents(t *testing.T) {
	a := newAccount(t)
	id := a.launch(1, 1)[0]
	_, err := a.server.States.EC2.ScheduleMaintenance(id, emu.Maintenance{Code: "instance-stop", NotBefore: time.Now().Add(time.Hour)})
	a.must(err)
	stop := a.start()
	a.Until("it is on record", func() bool { return len(a.Notices(id)) == 1 })
	stop()
	_, err = a.server.States.EC2.Terminate([]string{id})
	a.must(err)
	a.start()
	a.rounds("DescribeInstanceStatus", 40)
	if a.Notices(id)[0].Withdrawn {
		t.Error("an instance that does not run took it back")
	}
}

func TestDenied(t *testing.T) {
	a := newAccount(t)
	id := a.launch(1, 1)[0]
	a.server.Gate.Deny("ec2", "DescribeInstanceStatus")
	a.start()
	a.must(a.server.States.EC2.Interrupt([]string{id}, emu.InterruptOptions{}))
	a.Until("the spot interruption is on record", func() bool { return len(a.Notices(id)) == 1 })
	a.Until("it says what is missing", func() bool {
		return a.Said("cannot poll AWS, retrying", `"reason"="accessDenied"`, "grant ec2:DescribeInstanceStatus") == 1
	})
	a.rounds("DescribeInstanceStatus", 20)
	if got := a.Said("grant ec2:DescribeInstanceStatus"); got != 1 {
		t.Errorf("it logged that %d times in a moment, for four questions", got)
	}
	a.server.Gate.LiftAll()
	_, err := a.server.States.EC2.ScheduleMaintenance(id, emu.Maintenance{Code: "instance-stop", NotBefore: time.Now().Add(time.Hour)})
	a.must(err)
	a.Until("the other is, once it may ask", func() bool { return len(a.Notices(id)) == 2 })
}

func TestOutages(t *testing.T) {
	for name, fault := range map[string]func(*emulator.Server){
		"throttled":   func(s *emulator.Server) { s.Gate.Throttle("ec2", "DescribeSpotInstanceRequests", 8) },
		"unavailable": func(s *emulator.Server) { s.Gate.Fail("ec2", "DescribeSpotInstanceRequests") },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t)
			id := a.launch(1, 1)[0]
			fault(a.server)
			a.start()
			a.must(a.server.States.EC2.Interrupt([]string{id}, emu.InterruptOptions{}))
			a.Until("it says so", func() bool { return a.Said("cannot poll AWS, retrying", `"reason"="`+name+`"`) == 1 })
			a.server.Gate.Lift("ec2", "DescribeSpotInstanceRequests")
			a.Until("it is on record", func() bool { return len(a.Notices(id)) == 1 })
		})
	}
}

func TestCallsDoNotGrowWithAccount(t *testing.T) {
	a := newAccount(t)
	for range 3 {
		a.launch(500, 0)
	}
	ours := a.launch(1, 1)
	a.start(func(o *ec2.Options) { o.SpotInterval, o.StatusInterval = time.Hour, time.Hour })
	a.Until("all was asked", func() bool { return a.Said(`"AWS responds"`) == 5 })
	want := map[string]int{"DescribeSpotInstanceRequests": 1, "DescribeInstanceStatus": 4}
	if diff := cmp.Diff(want, a.server.Gate.AllCalls("ec2")); diff != "" {
		t.Errorf("calls in a round with 1,501 instances (-want +got):\n%s", diff)
	}
	if a.Notices(ours[0]) != nil {
		t.Errorf("on record: %v", a.IDs(ours[0]))
	}
}

func TestManyPages(t *testing.T) {
	a := newAccount(t)
	var ids []string
	for range 3 {
		ids = append(ids, a.launch(500, 0)...)
	}
	a.AddNode(ids[len(ids)-1])
	a.must(a.server.States.EC2.Interrupt(ids, emu.InterruptOptions{}))
	a.start(func(o *ec2.Options) { o.SpotInterval = time.Hour })
	a.Until("the one on the last page is on record", func() bool { return len(a.Notices(ids[len(ids)-1])) == 1 })
	if got := a.server.Gate.Calls("ec2", "DescribeSpotInstanceRequests"); got != 2 {
		t.Errorf("%d calls for 1,500 rows", got)
	}
	if reads, writes := a.Spent(); reads > 4 || writes != 1 {
		t.Errorf("%d reads and %d writes for one node", reads, writes)
	}
}

func TestInstancesWith(t *testing.T) {
	a := newAccount(t)
	a.launch(2, 0)
	made, err := a.server.States.EC2.Launch(emu.LaunchInput{ImageID: "ami-0abc", Min: 2, Max: 2, Market: emu.CapacityBlock, CapacityReservationID: "cr-0123456789abcdef0"})
	a.must(err)
	want := map[string][]string{"cr-0123456789abcdef0": {made[0].ID, made[1].ID}}
	slices.Sort(want["cr-0123456789abcdef0"])
	var reservations []string
	for i := range 250 {
		reservations = append(reservations, fmt.Sprintf("cr-%017x", i))
	}
	before := a.server.Gate.Calls("ec2", "DescribeInstances")
	got, err := a.api.InstancesWith(t.Context(), "capacity-reservation-id", append(reservations, "cr-0123456789abcdef0"))
	slices.Sort(got["cr-0123456789abcdef0"])
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if calls := a.server.Gate.Calls("ec2", "DescribeInstances") - before; calls != 2 {
		t.Errorf("%d calls for 251 reservations, want 2", calls)
	}
	if got, err := a.api.InstancesWith(t.Context(), "host-id", []string{"h-1"}); len(got) != 0 || err != nil {
		t.Errorf("of a host without any: %v, %v", got, err)
	}
	if _, err := a.api.InstancesWith(t.Context(), "vpc-id", []string{"vpc-1"}); err == nil {
		t.Error("a filter that it cannot attribute was accepted")
	}
	a.server.Gate.Deny("ec2", "DescribeInstances")
	if _, err := a.api.InstancesWith(t.Context(), "host-id", []string{"h-1"}); err == nil || !strings.Contains(err.Error(), "finding the instances with host-id h-1") {
		t.Errorf("denied: %v", err)
	}
}
