package emulator_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// oneCall is a call of each protocol, with the codes of AWS for its two refusals.
var oneCall = []struct {
	name            string
	call            func(context.Context, aws.Config) error
	expired, skewed string
}{
	{"ec2", func(ctx context.Context, c aws.Config) error {
		_, err := ec2.NewFromConfig(c).DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
		return err
	}, "RequestExpired", "RequestExpired"},
	{"autoscaling", func(ctx context.Context, c aws.Config) error {
		_, err := autoscaling.NewFromConfig(c).DescribeAutoScalingInstances(ctx, &autoscaling.DescribeAutoScalingInstancesInput{})
		return err
	}, "ExpiredToken", "SignatureDoesNotMatch"},
	{"sqs", func(ctx context.Context, c aws.Config) error {
		_, err := sqs.NewFromConfig(c).ListQueues(ctx, &sqs.ListQueuesInput{})
		return err
	}, "ExpiredToken", "SignatureDoesNotMatch"},
	{"events", func(ctx context.Context, c aws.Config) error {
		_, err := eventbridge.NewFromConfig(c).ListRules(ctx, &eventbridge.ListRulesInput{})
		return err
	}, "ExpiredTokenException", "InvalidSignatureException"},
	{"fis", func(ctx context.Context, c aws.Config) error {
		_, err := fis.NewFromConfig(c).ListActions(ctx, &fis.ListActionsInput{})
		return err
	}, "ExpiredTokenException", "InvalidSignatureException"},
	{"sts", func(ctx context.Context, c aws.Config) error {
		_, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		return err
	}, "ExpiredToken", "SignatureDoesNotMatch"},
}

func newServer(t *testing.T, o emulator.Options) *emulator.Server {
	t.Helper()
	server, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

func TestCredentialsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, emulator.Options{})
		_, c := server.States.STS.AssumeRole("arn:aws:iam::123456789012:role/a", "me", time.Now().Add(time.Minute))
		config := emulatortest.Config(server)
		config.Credentials = awshttp.StaticCredentials(c.AccessKeyID, c.SecretAccessKey)
		config.RetryMaxAttempts = 1
		for _, one := range oneCall {
			if err := one.call(t.Context(), config); err != nil {
				t.Errorf("%s: %v", one.name, err)
			}
		}
		time.Sleep(time.Minute)
		for _, one := range oneCall {
			if err := one.call(t.Context(), config); code(err) != one.expired {
				t.Errorf("%s: %v, want %s", one.name, err, one.expired)
			}
		}
	})
}

// A request from a machine whose clock is far from AWS's is refused. The SDK learns the difference
// from the Date of the answer, and its next attempt or call passes.
func TestClocksDiffer(t *testing.T) {
	for _, offset := range []time.Duration{20 * time.Minute, -20 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer(t, emulator.Options{})
			server.SetClockOffset(offset)
			for _, one := range oneCall {
				config := emulatortest.Config(server)
				config.RetryMaxAttempts = 1
				if err := one.call(t.Context(), config); code(err) != one.skewed {
					t.Errorf("%s, first call: %v, want %s", one.name, err, one.skewed)
				}
			}
			client := sqs.NewFromConfig(emulatortest.Config(server))
			if _, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
				t.Errorf("with the SDK's own retries: %v", err)
			}
			server.SetClockOffset(offset / 10)
			for _, one := range oneCall {
				if err := one.call(t.Context(), emulatortest.Config(server)); err != nil {
					t.Errorf("%s, at two minutes: %v", one.name, err)
				}
			}
		})
	}
}

// The buckets of EC2 are those of its documentation: one for each action, and a second one for
// launched and changed instances. Those of Auto Scaling's actions are one.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, emulator.Options{Unkind: 1})
		config := emulatortest.Config(server)
		config.RetryMaxAttempts = 1
		instances, groups := ec2.NewFromConfig(config), autoscaling.NewFromConfig(config)
		describe := func(in ec2.DescribeInstancesInput) func() error {
			return func() error {
				_, err := instances.DescribeInstances(t.Context(), &in)
				return err
			}
		}
		ofAll, ofPage := describe(ec2.DescribeInstancesInput{}), describe(ec2.DescribeInstancesInput{MaxResults: aws.Int32(100)})
		run := func() error {
			_, err := instances.RunInstances(t.Context(), &ec2.RunInstancesInput{
				ImageId: aws.String("ami-0abc"), InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(300),
			})
			return err
		}
		passes := func(what string, call func() error, want int, refusal string) {
			t.Helper()
			for i := range want {
				if err := call(); err != nil {
					t.Fatalf("%s, call %d: %v", what, i, err)
				}
			}
			if err := call(); code(err) != refusal {
				t.Errorf("%s, call %d: %v, want %s", what, want, err, refusal)
			}
		}
		passes("all instances", ofAll, 50, "RequestLimitExceeded")
		passes("pages of instances", ofPage, 100, "RequestLimitExceeded")
		passes("launches of 300", run, 3, "RequestLimitExceeded")
		passes("groups", func() error {
			_, err := groups.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{})
			return err
		}, 100, "Throttling")
		passes("hooks, after the groups", func() error {
			_, err := groups.DescribeLifecycleHooks(t.Context(), &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: aws.String("none")})
			return err
		}, 0, "Throttling")
		time.Sleep(time.Second)
		passes("all instances a second later", ofAll, 10, "RequestLimitExceeded")
		passes("pages a second later", ofPage, 20, "RequestLimitExceeded")
	})
}

// The Date of an answer, and the time of an event, are those of AWS's clock.
func TestClockOffsetShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, emulator.Options{})
		server.SetClockOffset(90 * time.Second)
		want := time.Now().Add(90 * time.Second).UTC()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://aws/", nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := emulatortest.Direct{Handler: server.Handler()}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if got := reply.Header.Get("Date"); got != want.Format(http.TimeFormat) {
			t.Errorf("Date is %s, want %s", got, want)
		}
	})
}
