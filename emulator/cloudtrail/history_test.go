package cloudtrail_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudtrail"
	"github.com/aws/aws-sdk-go-v2/service/cloudtrail/types"
	"github.com/aws/smithy-go"

	"github.com/lifeboat-dev/lifeboat/emulator"
	emulated "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// account is an emulated account with clients that do not retry.
type account struct {
	*testing.T
	server *emulator.Server
	groups *autoscaling.Client
	trail  *cloudtrail.Client
}

func newAccount(t *testing.T) *account {
	t.Helper()
	server, err := emulator.New(emulator.Options{Account: "210987654321", Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.States.AutoScaling.CreateGroup(emulated.Group{Name: "workers-a"}); err != nil {
		t.Fatal(err)
	}
	cfg := emulatortest.Config(server)
	cfg.RetryMaxAttempts = 1
	return &account{t, server, autoscaling.NewFromConfig(cfg), cloudtrail.NewFromConfig(cfg)}
}

// complete makes a call that Auto Scaling refuses.
func (a *account) complete(instance string) {
	a.Helper()
	_, err := a.groups.CompleteLifecycleAction(a.Context(), &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: aws.String("workers-a"), LifecycleHookName: aws.String("drain"), LifecycleActionResult: aws.String("CONTINUE"), InstanceId: &instance,
	})
	if err == nil {
		a.Error("an action that is not active was completed")
	}
}

func byName(name string) *cloudtrail.LookupEventsInput {
	return &cloudtrail.LookupEventsInput{LookupAttributes: []types.LookupAttribute{{AttributeKey: types.LookupAttributeKeyEventName, AttributeValue: &name}}}
}

// lookup waits for the limit of requests first.
func (a *account) lookup(in *cloudtrail.LookupEventsInput) *cloudtrail.LookupEventsOutput {
	a.Helper()
	time.Sleep(time.Second) // on synctest's clock
	out, err := a.trail.LookupEvents(a.Context(), in)
	if err != nil {
		a.Fatal(err)
	}
	return out
}

// The event history needs no trail, and is late.
func TestHistoryNeedsNoTrail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		began := time.Now()
		a.complete("i-0a1b2c3d4e5f60718")
		if got := a.lookup(byName("CompleteLifecycleAction")); len(got.Events) != 0 {
			t.Errorf("%d events at once", len(got.Events))
		}
		time.Sleep(5 * time.Minute)
		got := a.lookup(byName("CompleteLifecycleAction"))
		if len(got.Events) != 1 || got.NextToken != nil {
			t.Fatalf("got %+v", got)
		}
		e := got.Events[0]
		var record struct{ EventID, EventName, ErrorCode, ErrorMessage string }
		if err := json.Unmarshal([]byte(*e.CloudTrailEvent), &record); err != nil {
			t.Fatal(err)
		}
		if record.ErrorCode != "ValidationException" || record.EventID != *e.EventId || *e.EventName != record.EventName || !e.EventTime.Equal(began) ||
			*e.Username != "lifeboat" || *e.ReadOnly != "false" {
			t.Errorf("event %+v with record %+v", e, record)
		}
		for name, in := range map[string]*cloudtrail.LookupEventsInput{
			"another name":  byName("TerminateInstances"),
			"before it":     {EndTime: aws.Time(began.Add(-time.Second))},
			"after it":      {StartTime: aws.Time(began.Add(time.Second))},
			"insights only": {EventCategory: types.EventCategoryInsight},
		} {
			if got := a.lookup(in); len(got.Events) != 0 {
				t.Errorf("%s: %d events", name, len(got.Events))
			}
		}
		if n := len(a.server.States.Events.Archive()); n != 0 {
			t.Errorf("%d events in EventBridge without a trail", n)
		}
	})
}

func TestHistoryIsPaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		a.server.States.CloudTrail.SetDelay(0)
		for i := range 120 {
			a.complete(fmt.Sprintf("i-%017x", i))
		}
		in, seen := byName("CompleteLifecycleAction"), map[string]bool{}
		var sizes []int
		for {
			out := a.lookup(in)
			sizes = append(sizes, len(out.Events))
			for _, e := range out.Events {
				seen[*e.EventId] = true
			}
			a.complete("i-0a1b2c3d4e5f60718") // a new event moves no page
			if in.NextToken = out.NextToken; in.NextToken == nil {
				break
			}
		}
		if fmt.Sprint(sizes) != "[50 50 20]" || len(seen) != 120 {
			t.Errorf("pages of %v events, %d different ones", sizes, len(seen))
		}
	})
}

func TestLookupIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		a.server.States.CloudTrail.SetDelay(0)
		a.complete("i-1")
		a.complete("i-2")
		token := a.lookup(&cloudtrail.LookupEventsInput{MaxResults: aws.Int32(1)}).NextToken
		two := byName("A")
		two.LookupAttributes = append(two.LookupAttributes, byName("B").LookupAttributes...)
		code := func(in *cloudtrail.LookupEventsInput) string {
			_, err := a.trail.LookupEvents(t.Context(), in)
			var api smithy.APIError
			if !errors.As(err, &api) {
				return fmt.Sprint(err)
			}
			return api.ErrorCode()
		}
		now := time.Now()
		for want, in := range map[string]*cloudtrail.LookupEventsInput{
			"InvalidLookupAttributesException": two,
			"InvalidMaxResultsException":       {MaxResults: aws.Int32(51)},
			"InvalidTimeRangeException":        {StartTime: &now, EndTime: aws.Time(now.Add(-time.Minute))},
			"InvalidNextTokenException":        {NextToken: token, StartTime: aws.Time(now.Add(-time.Minute))},
			"InvalidEventCategoryException":    {EventCategory: "data"},
		} {
			time.Sleep(time.Second)
			if got := code(in); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		time.Sleep(time.Second)
		var got []string
		for range 3 { // AWS allows two requests a second
			got = append(got, code(&cloudtrail.LookupEventsInput{}))
		}
		if want := "[<nil> <nil> ThrottlingException]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
		time.Sleep(time.Second)
		a.server.Gate.Deny("cloudtrail", "LookupEvents")
		if got := code(&cloudtrail.LookupEventsInput{}); got != "AccessDeniedException" {
			t.Errorf("denied: %s", got)
		}
	})
}
