package aws_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
)

func at(url string) *aws.Cloud {
	return aws.New(awssdk.Config{
		Region: "eu-west-1", BaseEndpoint: &url,
		Credentials: awssdk.CredentialsProviderFunc(func(context.Context) (awssdk.Credentials, error) {
			return awssdk.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	})
}

// account is an emulated account with one instance that runs.
func account(t *testing.T) (*emulator.Server, *aws.Cloud, string) {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{
		PendingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	made, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	reaches(t, server, made[0].ID, ec2.Running)
	return server, at(url), made[0].ID
}

func reaches(t *testing.T, server *emulator.Server, id string, state ec2.InstanceState) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		in, ok := server.States.EC2.Instance(id)
		if ok && in.State == state {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("instance %s is %s, not %s", id, in.State, state)
		case <-tick.C:
		}
	}
}

func TestTerminateIsIdempotent(t *testing.T) {
	t.Parallel()
	server, c, id := account(t)
	if err := c.Terminate(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	reaches(t, server, id, ec2.Terminated)
	if err := c.Terminate(t.Context(), id); err != nil {
		t.Errorf("terminating it again: %v", err)
	}
	if err := c.Terminate(t.Context(), "i-0ffffffffffffffff"); err != nil {
		t.Errorf("terminating one that EC2 has forgotten: %v", err)
	}
}

// The dry run terminates nothing.
func TestTerminationPreconditions(t *testing.T) {
	t.Parallel()
	server, c, id := account(t)
	if err := c.MayTerminate(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if in, _ := server.States.EC2.Instance(id); in.State != ec2.Running {
		t.Fatalf("the instance is %s", in.State)
	}
	server.Gate.Deny("ec2", "TerminateInstances")
	if err := c.MayTerminate(t.Context(), id); !cloud.IsDenied(err) || !strings.Contains(err.Error(), "lifeboat aws iam") {
		t.Errorf("where it is not allowed: %v", err)
	}
	server.Gate.LiftAll()
	server.Gate.Throttle("ec2", "TerminateInstances", -1)
	if err := c.MayTerminate(t.Context(), id); !cloud.IsBusy(err) {
		t.Errorf("where no one can be asked: %v", err)
	}
}

func TestEC2Errors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare      func(*emulator.Server)
		id           string
		denied, busy bool
		says         string
	}{
		"not allowed": {
			prepare: func(s *emulator.Server) { s.Gate.Deny("ec2", "TerminateInstances") },
			denied:  true, says: "lifeboat aws iam",
		},
		"throttled": {prepare: func(s *emulator.Server) { s.Gate.Throttle("ec2", "TerminateInstances", -1) }, busy: true},
		"down":      {prepare: func(s *emulator.Server) { s.Gate.Fail("ec2", "TerminateInstances") }, busy: true},
		"no instance of EC2": {
			prepare: func(*emulator.Server) {}, id: "mi-0123456789abcdef0", denied: true, says: "Drain for such nodes",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c, id := account(t)
			if tc.id != "" {
				id = tc.id
			}
			tc.prepare(server)
			err := c.Terminate(t.Context(), id)
			if err == nil || cloud.IsDenied(err) != tc.denied || cloud.IsBusy(err) != tc.busy ||
				!strings.Contains(err.Error(), tc.says) || !strings.HasPrefix(err.Error(), "terminating instance "+id+": ") {
				t.Fatalf("error %v", err)
			}
			if name == "throttled" {
				server.Gate.LiftAll()
				if err := c.Terminate(t.Context(), id); err != nil {
					t.Errorf("asked again: %v", err)
				}
			}
		})
	}
}

// The emulator has no termination protection; this is EC2's response (EC2 User
// Guide, "Change instance termination protection").
func TestProtectedInstance(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>OperationNotPermitted</Code><Message>The instance 'i-0a1b2c3d4e5f60718' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.</Message></Error></Errors><RequestID>1</RequestID></Response>`))
	}))
	t.Cleanup(server.Close)
	err := at(server.URL).Terminate(t.Context(), "i-0a1b2c3d4e5f60718")
	if !cloud.IsDenied(err) || !strings.Contains(err.Error(), "termination protection") {
		t.Errorf("error %v", err)
	}
}

func TestNoResponse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	err := at(server.URL).Terminate(t.Context(), "i-0a1b2c3d4e5f60718")
	var denied *cloud.DeniedError
	if err == nil || errors.As(err, &denied) || cloud.IsBusy(err) {
		t.Errorf("error %v", err)
	}
}
