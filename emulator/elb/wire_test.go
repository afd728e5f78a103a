package elb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// account is an emulated account with a running instance, and the SDK's client.
type account struct {
	t        *testing.T
	server   *emulator.Server
	client   *elbv2.Client
	instance string
}

func inAccount(t *testing.T, do func(t *testing.T, a *account)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg := emulatortest.Config(server)
		cfg.RetryMaxAttempts = 1
		launched, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0a1b2c3d4e5f60718", Min: 1, Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go server.Work(ctx)
		time.Sleep(time.Minute) // the instance runs
		do(t, &account{t, server, elbv2.NewFromConfig(cfg), launched[0].ID})
		cancel()
		synctest.Wait()
	})
}

// must is the result of a call that has to succeed.
func must[T any](t *testing.T) func(out T, err error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// group creates a group of instances at port 80 with a deregistration delay.
func (a *account) group(name string, delay time.Duration) *string {
	a.t.Helper()
	out := must[*elbv2.CreateTargetGroupOutput](a.t)(a.client.CreateTargetGroup(a.t.Context(), &elbv2.CreateTargetGroupInput{
		Name: &name, Port: aws.Int32(80), Protocol: types.ProtocolEnumTcp, TargetType: types.TargetTypeEnumInstance,
	}))
	arn := out.TargetGroups[0].TargetGroupArn
	set := must[*elbv2.ModifyTargetGroupAttributesOutput](a.t)(a.client.ModifyTargetGroupAttributes(a.t.Context(), &elbv2.ModifyTargetGroupAttributesInput{
		TargetGroupArn: arn, Attributes: []types.TargetGroupAttribute{{Key: aws.String("deregistration_delay.timeout_seconds"), Value: aws.String(fmt.Sprint(delay.Seconds()))}},
	}))
	if got := aws.ToString(set.Attributes[0].Value); got != fmt.Sprint(delay.Seconds()) {
		a.t.Fatalf("deregistration delay %s, want %s", got, delay)
	}
	return arn
}

// health lists the targets of a group: all, or those that are named.
func (a *account) health(arn *string, targets ...types.TargetDescription) []string {
	a.t.Helper()
	out := must[*elbv2.DescribeTargetHealthOutput](a.t)(a.client.DescribeTargetHealth(a.t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: arn, Targets: targets}))
	var list []string
	for _, d := range out.TargetHealthDescriptions {
		list = append(list, fmt.Sprintf("%s:%d %s %s", aws.ToString(d.Target.Id), aws.ToInt32(d.Target.Port), d.TargetHealth.State, d.TargetHealth.Reason))
	}
	return list
}

func TestTargetGoesThroughItsStates(t *testing.T) {
	t.Parallel()
	inAccount(t, func(t *testing.T, a *account) {
		arn := a.group("web", time.Minute)
		node := types.TargetDescription{Id: &a.instance, Port: aws.Int32(30080)}
		want := func(what, state string) {
			t.Helper()
			var all []string
			if state != "" {
				all = []string{a.instance + ":30080 " + state}
			}
			if diff := cmp.Diff(all, a.health(arn)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		want("before", "")
		must[*elbv2.RegisterTargetsOutput](t)(a.client.RegisterTargets(t.Context(), &elbv2.RegisterTargetsInput{TargetGroupArn: arn, Targets: []types.TargetDescription{node}}))
		want("registered", "initial Elb.InitialHealthChecking")
		time.Sleep(time.Second)
		want("checked", "healthy ")
		if diff := cmp.Diff([]string{a.instance + ":80 unused Target.NotRegistered"}, a.health(arn, types.TargetDescription{Id: &a.instance})); diff != "" {
			t.Errorf("without a port it is the group's (-want +got):\n%s", diff)
		}
		must[*elbv2.DeregisterTargetsOutput](t)(a.client.DeregisterTargets(t.Context(), &elbv2.DeregisterTargetsInput{TargetGroupArn: arn, Targets: []types.TargetDescription{node}}))
		want("deregistered", "draining Target.DeregistrationInProgress")
		time.Sleep(time.Minute - time.Second)
		want("within its delay", "draining Target.DeregistrationInProgress")
		time.Sleep(time.Second)
		want("after its delay", "")
		if diff := cmp.Diff([]string{a.instance + ":30080 unused Target.NotRegistered"}, a.health(arn, node)); diff != "" {
			t.Errorf("asked for by name (-want +got):\n%s", diff)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	inAccount(t, func(t *testing.T, a *account) {
		arn := a.group("web", time.Minute)
		cases := map[string]struct {
			want string
			call func() error
		}{
			"no such group": {"TargetGroupNotFound", func() error {
				_, err := a.client.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: aws.String(*arn + "x")})
				return err
			}},
			"no such name": {"TargetGroupNotFound", func() error {
				_, err := a.client.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{Names: []string{"other"}})
				return err
			}},
			"another group of that name": {"DuplicateTargetGroupName", func() error {
				_, err := a.client.CreateTargetGroup(t.Context(), &elbv2.CreateTargetGroupInput{Name: aws.String("web"), Port: aws.Int32(81), Protocol: types.ProtocolEnumTcp})
				return err
			}},
			"no such instance": {"InvalidTarget", func() error {
				_, err := a.client.RegisterTargets(t.Context(), &elbv2.RegisterTargetsInput{TargetGroupArn: arn, Targets: []types.TargetDescription{{Id: aws.String("i-0123456789abcdef0")}}})
				return err
			}},
			"not registered": {"InvalidTarget", func() error {
				_, err := a.client.DeregisterTargets(t.Context(), &elbv2.DeregisterTargetsInput{TargetGroupArn: arn, Targets: []types.TargetDescription{{Id: &a.instance}}})
				return err
			}},
			"throttled": {"Throttling", func() error {
				a.server.Gate.Throttle("elasticloadbalancing", "DescribeTargetHealth", 1)
				_, err := a.client.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: arn})
				return err
			}},
			"denied": {"AccessDenied", func() error {
				a.server.Gate.Deny("elasticloadbalancing", "RegisterTargets")
				_, err := a.client.RegisterTargets(t.Context(), &elbv2.RegisterTargetsInput{TargetGroupArn: arn, Targets: []types.TargetDescription{{Id: &a.instance}}})
				return err
			}},
		}
		for name, c := range cases {
			var api smithy.APIError
			if err := c.call(); !errors.As(err, &api) || api.ErrorCode() != c.want {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
			a.server.Gate.LiftAll()
		}
	})
}
