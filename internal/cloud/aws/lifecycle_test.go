package aws_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// lifecycleAt is the Lifecycle of a region whose Auto Scaling is a handler.
func lifecycleAt(handler http.Handler, q *ratelimit.Limiter) *aws.Lifecycle {
	return aws.NewLifecycle(awssdk.Config{
		Region: "eu-west-1", HTTPClient: &http.Client{Transport: emulatortest.Direct{Handler: handler}},
		Credentials: awshttp.StaticCredentials("AKIATEST", "secret"),
	}, q)
}

// group is an emulated account with an instance in a group, in a state.
func group(t *testing.T, state emu.LifecycleState) (*emulator.Server, *aws.Lifecycle, string) {
	t.Helper()
	server, _, id := account(t)
	groups := server.States.AutoScaling
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(groups.CreateGroup(emu.Group{Name: "workers", Max: 10, Desired: 1}))
	must(groups.PutHook(emu.Hook{Name: "drain", Group: "workers", Transition: emu.Leaving, Heartbeat: time.Hour}))
	must(groups.Attach("workers", id, state))
	return server, lifecycleAt(server.Handler(), nil), id
}

func TestAnswering(t *testing.T) {
	t.Parallel()
	server, l, id := group(t, emu.InService)
	if _, err := server.States.AutoScaling.TerminateMember([]string{id}, true); err != nil {
		t.Fatal(err)
	}
	a := cloud.Action{Group: "workers", Hook: "drain", InstanceID: id}
	eventually(t, "it waits", func() bool { return len(server.States.AutoScaling.Actions(id)) == 1 })
	if err := l.Heartbeat(t.Context(), a); err != nil {
		t.Error(err)
	}
	wrong := a
	wrong.Token = "01234567-89ab-cdef-0123-456789abcdef"
	for name, err := range map[string]error{
		"heartbeat of another firing": l.Heartbeat(t.Context(), wrong),
		"answer to another firing":    l.Complete(t.Context(), wrong, cloud.Continue),
		"answer to another hook":      l.Complete(t.Context(), cloud.Action{Group: "workers", Hook: "other", InstanceID: id}, cloud.Continue),
	} {
		if !cloud.IsNoAction(err) || cloud.IsDenied(err) || cloud.IsBusy(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.Token = server.States.AutoScaling.Actions(id)[0].Token
	if err := l.Complete(t.Context(), a, cloud.Continue); err != nil {
		t.Error(err)
	}
	err := l.Complete(t.Context(), cloud.Action{Group: "workers", Hook: "drain", InstanceID: id}, cloud.Continue)
	if !cloud.IsNoAction(err) || !strings.Contains(err.Error(), "answering CONTINUE to lifecycle hook drain for instance "+id) {
		t.Errorf("a second answer: %v", err)
	}
}

func TestDetaching(t *testing.T) {
	t.Parallel()
	server, l, id := group(t, emu.InService)
	for range 2 { // the second time it is in no group any more
		if err := l.Detach(t.Context(), "workers", id); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is detached", func() bool { return len(server.States.AutoScaling.Members()) == 0 })
	}
	_, l, id = group(t, "Pending:Wait")
	if err := l.Detach(t.Context(), "workers", id); err == nil || cloud.IsDenied(err) || cloud.IsNoAction(err) {
		t.Errorf("one that cannot be detached yet: %v", err)
	}
	// An unreadable state must not count as detached.
	server, l, id = group(t, "Pending:Wait")
	server.Gate.Fail("autoscaling", "DescribeAutoScalingInstances")
	if err := l.Detach(t.Context(), "workers", id); err == nil {
		t.Error("an instance whose state is not known counts as detached")
	}
}

func TestAutoScalingErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		code, message          string
		status                 int
		denied, busy, noAction bool
		says                   string
	}{
		"no action by instance":    {code: "ValidationError", message: "No active Lifecycle Action found with instance ID i-0a1b2c3d4e5f60718", status: 400, noAction: true},
		"no action by token":       {code: "ValidationError", message: "No active Lifecycle Action found with token 0123", status: 400, noAction: true},
		"another validation":       {code: "ValidationError", message: "Group workers not found", status: 400},
		"not allowed":              {code: "AccessDenied", message: "not authorized", status: 403, denied: true, says: "lifeboat aws iam"},
		"throttled":                {code: "Throttling", message: "Rate exceeded", status: 400, busy: true},
		"another caller is faster": {code: "ResourceContention", message: "You already have a pending update", status: 500, busy: true},
		"a scaling activity":       {code: "ScalingActivityInProgress", message: "Activity is in progress", status: 400, busy: true},
		"down":                     {code: "ServiceUnavailable", message: "try again", status: 503, busy: true},
		"expired":                  {code: "ExpiredToken", message: "The security token is expired", status: 403},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			l := lifecycleAt(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.WriteHeader(tc.status)
				fmt.Fprintf(w, `<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>1</RequestId></ErrorResponse>`, tc.code, tc.message)
			}), ratelimit.New(0, 0))
			a := cloud.Action{Group: "workers", Hook: "drain", InstanceID: "i-0a1b2c3d4e5f60718"}
			for what, err := range map[string]error{
				"complete": l.Complete(t.Context(), a, cloud.Continue), "heartbeat": l.Heartbeat(t.Context(), a), "detach": l.Detach(t.Context(), "workers", a.InstanceID),
			} {
				if err == nil || cloud.IsDenied(err) != tc.denied || cloud.IsBusy(err) != tc.busy || cloud.IsNoAction(err) != tc.noAction || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if calls > 4 { // a detachment that is refused is looked at once
				t.Errorf("%d calls for three", calls)
			}
		})
	}
}

func TestRateLimitedCallTimesOut(t *testing.T) {
	t.Parallel()
	q := ratelimit.New(0.001, 1)
	if err := q.Wait(t.Context(), ratelimit.Answer); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	l := lifecycleAt(http.NotFoundHandler(), q)
	if err := l.Complete(ctx, cloud.Action{Group: "g", Hook: "h", InstanceID: "i-0a1b2c3d4e5f60718"}, cloud.Continue); !cloud.IsBusy(err) {
		t.Errorf("error %v", err)
	}
}

// eventually waits for an emulated account, which takes milliseconds.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
