package ec2

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/replica"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// world is an EC2 that records its events and changes, in virtual time.
type world struct {
	*State
	start time.Time

	mu     sync.Mutex // held to write, and given up whenever time passes
	events []string   // "120s EC2 …: detail" and the resource
	log    []string   // "120s PowerOff shutting-down"
}

// inWorld runs a test in virtual time, in which a spot reclaim takes microseconds.
func inWorld(t *testing.T, timing Timing, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{start: time.Now()}
		w.State = New(Options{
			Scope: wire.Scope{Account: "210987654321", Region: "eu-west-1"}, Timing: timing,
			Emit: func(e events.Event) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.events = append(w.events, fmt.Sprintf("%s %s %s %s", w.now(), e.DetailType, e.Resources[0], e.Detail))
			},
		})
		w.Subscribe(func(c Change) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.log = append(w.log, fmt.Sprintf("%s %s %s", w.now(), c.What, c.Instance.State))
		})
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		test(t, w)
		w.SetLag(replica.Lag{})
		if shown, err := w.Describe(nil, nil); err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(w.Instances(), shown, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a change was not published to the replicas (-is +shown):\n%s", diff)
		}
		if shown, err := w.DescribeSpotRequests(nil, nil); err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(w.SpotRequests(), shown, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a change was not published to the replicas (-is +shown):\n%s", diff)
		}
		cancel()
		synctest.Wait()
	})
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// pass advances virtual time and waits until all goroutines are blocked.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	w.mu.Unlock() //nolint:staticcheck // what the test has read so far, it read before what is written from now on
	time.Sleep(d)
	synctest.Wait()
}

// forget clears the records.
func (w *world) forget() { w.events, w.log = nil, nil }

func (w *world) launch(t *testing.T, spot *SpotOptions) string {
	t.Helper()
	made, err := w.Launch(LaunchInput{ImageID: "ami-0abc", Zone: "eu-west-1b", Min: 1, Max: 1, Spot: spot})
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	return made[0].ID
}

func (w *world) request(t *testing.T, id string) SpotRequest {
	t.Helper()
	for _, r := range w.SpotRequests() {
		if r.InstanceID == id {
			return r
		}
	}
	t.Fatalf("instance %s has no spot request", id)
	return SpotRequest{}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestSpotReclaimSendsEveryEvent(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		w.pass(59 * time.Second)
		w.forget()
		if err := w.Interrupt([]string{id}, InterruptOptions{Notice: 5 * time.Minute, Rebalance: true}); err != nil {
			t.Fatal(err)
		}
		w.pass(2*time.Minute + 59*time.Second)
		if got := w.request(t, id).Status.Code; got != "fulfilled" {
			t.Errorf("before the warning the request is %s", got)
		}
		w.pass(time.Second)
		if got := w.request(t, id).Status.Code; got != "marked-for-termination" {
			t.Errorf("after the warning the request is %s", got)
		}
		in, _ := w.Instance(id)
		same(t, "notice in metadata", in.Notice, Notice{Terminate, w.start.Add(6 * time.Minute).UTC()})
		w.pass(10 * time.Minute)

		zoneARN := "arn:aws:ec2:eu-west-1b:instance/" + id
		arn := "arn:aws:ec2:eu-west-1:210987654321:instance/" + id
		same(t, "events", w.events, []string{
			"1m0s EC2 Instance Rebalance Recommendation " + zoneARN + ` {"instance-id":"` + id + `"}`,
			"4m0s EC2 Spot Instance Interruption Warning " + zoneARN + ` {"instance-id":"` + id + `","instance-action":"terminate"}`,
			"6m0s EC2 Instance State-change Notification " + arn + ` {"instance-id":"` + id + `","state":"shutting-down"}`,
			"6m2s EC2 Instance State-change Notification " + arn + ` {"instance-id":"` + id + `","state":"terminated"}`,
		})
		same(t, "changes", w.log, []string{
			"1m0s Recommended running", "4m0s Warned running", "6m0s ShuttingDown shutting-down",
			"6m0s PowerOff shutting-down", "6m2s Terminated terminated",
		})
		r := w.request(t, id)
		same(t, "request", []string{r.State, r.Status.Code}, []string{"closed", "instance-terminated-no-capacity"})
		in, _ = w.Instance(id)
		same(t, "reason", in.StateReason.Code, "Server.SpotInstanceTermination")
		same(t, "notice once it is over", in.Notice, Notice{})
	})
}

func TestTerminatedInstancesAreListedForOneHour(t *testing.T) {
	inWorld(t, Timing{PendingFor: 5 * time.Second}, func(t *testing.T, w *world) {
		id := w.launch(t, nil)
		if in, _ := w.Instance(id); in.State != Pending || in.Powered {
			t.Errorf("after 1 s it is %s, powered %v", in.State, in.Powered)
		}
		w.pass(4 * time.Second)
		if in, _ := w.Instance(id); in.State != Running || !in.Powered {
			t.Errorf("after 5 s it is %s, powered %v", in.State, in.Powered)
		}
		moved, err := w.Terminate([]string{id})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "transition", moved, []Transition{{id, Running, ShuttingDown}})
		w.pass(2*time.Second + time.Hour - 1)
		if _, listed := w.Instance(id); !listed {
			t.Error("it is not listed any more just before the hour is over")
		}
		w.pass(1)
		if got := w.Instances(); len(got) != 0 {
			t.Errorf("still listed: %v", got)
		}
		same(t, "changes", w.log, []string{
			"0s Launched pending", "5s Running running", "5s ShuttingDown shutting-down", "5s PowerOff shutting-down",
			"7s Terminated terminated", "1h0m7s Forgotten terminated",
		})
	})
}

func TestTerminateDuringBoot(t *testing.T) {
	inWorld(t, Timing{PendingFor: 5 * time.Second, ShutdownFor: 10 * time.Second}, func(t *testing.T, w *world) {
		id := w.launch(t, nil)
		if _, err := w.Terminate([]string{id}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		same(t, "changes", w.log, []string{"0s Launched pending", "1s ShuttingDown shutting-down", "11s Terminated terminated"})
	})
}

func TestUserTerminatesDuringNotice(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		if err := w.Interrupt([]string{id}, InterruptOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(30 * time.Second)
		w.forget()
		if _, err := w.Terminate([]string{id}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Minute)
		same(t, "changes", w.log, []string{
			"31s ShuttingDown shutting-down", "31s PowerOff shutting-down", "33s Terminated terminated",
		})
		same(t, "status", w.request(t, id).Status.Code, "instance-terminated-by-user")
	})
}

func TestInterruptionStopsPersistentInstance(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{Persistent: true, Behaviour: Stop})
		if err := w.Interrupt([]string{id}, InterruptOptions{Reason: ReasonExperiment}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
		same(t, "status when warned", w.request(t, id).Status.Code, "marked-for-stop-by-experiment")
		w.pass(3 * time.Minute)
		in, _ := w.Instance(id)
		same(t, "state", in.State, Stopped)
		r := w.request(t, id)
		same(t, "request", []string{r.State, r.Status.Code}, []string{"disabled", "instance-stopped-by-experiment"})
		_, err := w.Start([]string{id})
		wantCode(t, err, "IncorrectSpotRequestState")
	})
}

func TestHibernationStartsAtWarning(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{Persistent: true, Behaviour: Hibernate})
		w.forget()
		if err := w.Interrupt([]string{id}, InterruptOptions{Notice: 3 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Minute)
		same(t, "changes", w.log, []string{
			"1m1s Warned running", "1m1s ShuttingDown stopping", "1m1s PowerOff stopping", "1m3s Stopped stopped",
		})
	})
}

func TestShortNoticeWarnsImmediately(t *testing.T) {
	inWorld(t, Timing{PowerOffAfter: time.Second}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		w.forget()
		if err := w.Interrupt([]string{id}, InterruptOptions{Notice: 20 * time.Second}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		same(t, "changes", w.log, []string{
			"1s Warned running", "21s ShuttingDown shutting-down", "22s PowerOff shutting-down", "23s Terminated terminated",
		})
	})
}

func TestEarlierDeadlineIsKept(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		w.forget()
		for _, notice := range []time.Duration{10 * time.Minute, 3 * time.Minute, 5 * time.Minute} {
			if err := w.Interrupt([]string{id}, InterruptOptions{Notice: notice}); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(20 * time.Minute)
		same(t, "changes", w.log, []string{
			"1m1s Warned running", "3m1s ShuttingDown shutting-down", "3m1s PowerOff shutting-down", "3m3s Terminated terminated",
		})
	})
}

func TestWithdrawCancelsUnannouncedInterruption(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		w.forget()
		if err := w.Interrupt([]string{id}, InterruptOptions{Notice: 5 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.Withdraw([]string{id})
		w.pass(10 * time.Minute)
		same(t, "changes", w.log, []string(nil))
		if err := w.Interrupt([]string{id}, InterruptOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
		w.Withdraw([]string{id})
		w.pass(10 * time.Minute)
		in, _ := w.Instance(id)
		same(t, "state after a warning that stands", in.State, Terminated)
	})
}

func TestOnlyRunningSpotIsInterrupted(t *testing.T) {
	inWorld(t, Timing{PendingFor: time.Minute}, func(t *testing.T, w *world) {
		booting := w.launch(t, &SpotOptions{})
		w.pass(2 * time.Minute)
		onDemand := w.launch(t, nil)
		w.pass(2 * time.Minute)
		pending := w.launch(t, &SpotOptions{})
		for id, want := range map[string]string{
			onDemand:              "interrupting " + onDemand + ": it is not a spot instance",
			pending:               "interrupting " + pending + ": it is pending, not running",
			"i-0123456789abcdef0": "interrupting i-0123456789abcdef0: no such instance",
		} {
			err := w.Interrupt([]string{booting, id}, InterruptOptions{})
			var refused *NotRunningSpotError
			if !errors.As(err, &refused) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if in, _ := w.Instance(booting); in.Notice.Action != "" {
			t.Error("an instance was warned although another was refused")
		}
	})
}

func TestStopAndStart(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, nil)
		w.forget()
		if _, err := w.Stop([]string{id}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if _, err := w.Start([]string{id}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		same(t, "changes", w.log, []string{
			"1s ShuttingDown stopping", "1s PowerOff stopping", "3s Stopped stopped",
			"1m1s Started pending", "1m1.3s Running running",
		})
		oneTime := w.launch(t, &SpotOptions{})
		_, err := w.Stop([]string{oneTime})
		wantCode(t, err, "UnsupportedOperation")
	})
}

func TestNoEventsAfterTermination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Scope: wire.Scope{Account: "210987654321", Region: "eu-west-1"}})
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		made, err := s.Launch(LaunchInput{ImageID: "ami-1", Min: 1, Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		time.Sleep(time.Hour)
		if in, _ := s.Instance(made[0].ID); in.State != Pending {
			t.Errorf("it became %s after Run had returned", in.State)
		}
	})
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got error %v, want %s", err, code)
	}
}

// While the operating system shuts down the machine has power. The state lasts until it has halted,
// or until the limit.
func TestOperatingSystemShutsDownFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, w *world, id string)
		want []string
	}{
		{"terminated, and it halts after 40 s", func(t *testing.T, w *world, id string) {
			must(t)(w.Terminate([]string{id}))
			w.pass(40 * time.Second)
			w.Halted(id)
		}, []string{"1s ShuttingDown shutting-down", "41s PowerOff shutting-down", "43s Terminated terminated"}},
		{"stopped, and it halts after 40 s", func(t *testing.T, w *world, id string) {
			must(t)(w.Stop([]string{id}))
			w.pass(40 * time.Second)
			w.Halted(id)
		}, []string{"1s ShuttingDown stopping", "41s PowerOff stopping", "43s Stopped stopped"}},
		{"it does not halt within the limit", func(t *testing.T, w *world, id string) {
			must(t)(w.Terminate([]string{id}))
		}, []string{"1s ShuttingDown shutting-down", "4m1s PowerOff shutting-down", "4m3s Terminated terminated"}},
		{"it is terminated while it stops", func(t *testing.T, w *world, id string) {
			must(t)(w.Stop([]string{id}))
			w.pass(10 * time.Second)
			must(t)(w.Terminate([]string{id}))
			w.pass(10 * time.Second)
			w.Halted(id)
		}, []string{"1s ShuttingDown stopping", "11s ShuttingDown shutting-down", "21s PowerOff shutting-down", "23s Terminated terminated"}},
		{"a user skips the shutdown", func(t *testing.T, w *world, id string) {
			must(t)(w.Terminate([]string{id}))
			w.pass(10 * time.Second)
			w.SkipShutdown([]string{id})
		}, []string{"1s ShuttingDown shutting-down", "11s PowerOff shutting-down", "13s Terminated terminated"}},
		{"what EC2 takes back loses its power at the deadline", func(t *testing.T, w *world, id string) {
			if err := w.Interrupt([]string{id}, InterruptOptions{}); err != nil {
				t.Fatal(err)
			}
		}, []string{"1s Warned running", "2m1s ShuttingDown shutting-down", "2m1s PowerOff shutting-down", "2m3s Terminated terminated"}},
		{"a machine that halts without a request does not change", func(_ *testing.T, w *world, id string) {
			w.Halted(id)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, Timing{ShutdownLimit: 4 * time.Minute}, func(t *testing.T, w *world) {
				id := w.launch(t, &SpotOptions{Persistent: true, Behaviour: Terminate})
				w.forget()
				c.do(t, w, id)
				w.pass(10 * time.Minute)
				same(t, "changes", w.log, c.want)
				if in, ok := w.Instance(id); !ok || !in.ShutdownTime.IsZero() {
					t.Errorf("still shutting down since %s", in.ShutdownTime)
				}
			})
		})
	}
}

// must ends a test whose call fails.
func must(t *testing.T) func([]Transition, error) {
	return func(_ []Transition, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}
