package aws_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
)

func TestDescribeInstance(t *testing.T) {
	t.Parallel()
	server, c, id := account(t)
	in, _ := server.States.EC2.Instance(id)
	got, err := c.Describe(t.Context(), id)
	if err != nil || got == nil || got.ID != id || got.State != "running" || got.DNSName != in.PrivateDNSName || !slices.Contains(got.Addresses, in.PrivateIP) {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err = c.Describe(t.Context(), "i-0ffffffffffffffff"); err != nil || got != nil {
		t.Errorf("one that EC2 does not know: %+v, %v", got, err)
	}
	if err := c.Terminate(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	reaches(t, server, id, ec2.Terminated)
	if got, err = c.Describe(t.Context(), id); err != nil || got == nil || got.State != "terminated" {
		t.Errorf("one that is terminated: %+v, %v", got, err)
	}
}

// In a storm many instances are described at the same time: EC2 gets few calls.
func TestDescriptionsShareCalls(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = w.Write([]byte(`<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>`))
	}))
	defer server.Close()
	c := at(server.URL)
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if _, err := c.Describe(t.Context(), "i-0a1b2c3d4e5f60718"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := calls.Load(); n > 20 {
		t.Errorf("%d calls", n)
	}
}

func TestDeniedDescribeNamesPermission(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>`))
	}))
	defer server.Close()
	_, err := at(server.URL).Describe(t.Context(), "i-0a1b2c3d4e5f60718")
	if !cloud.IsDenied(err) || !strings.Contains(err.Error(), "ec2:DescribeInstances") {
		t.Errorf("got %v", err)
	}
}

// The status of its spot request proves a spot warning.
func TestDescribeReadsSpotStatus(t *testing.T) {
	t.Parallel()
	server, c, plain := account(t)
	made, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 2, Max: 2, Spot: &ec2.SpotOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	reaches(t, server, made[0].ID, ec2.Running)
	if err := server.States.EC2.Interrupt([]string{made[0].ID}, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{plain: "", made[0].ID: "marked-for-termination", made[1].ID: "fulfilled"} {
		if got, err := c.Describe(t.Context(), id); err != nil || got.SpotStatus != want {
			t.Errorf("%+v, %v, want the status %q", got, err, want)
		}
	}
	server.Gate.Deny("ec2", "DescribeSpotInstanceRequests")
	if got, err := c.Describe(t.Context(), made[0].ID); err != nil || got == nil || got.SpotStatus != "" {
		t.Errorf("without the permission: %+v, %v", got, err)
	}
}

// A thousand nodes are interrupted at once, and each instance is described every second: EC2 throttles
// no call, and every description arrives.
func TestStormOfDescriptionsStaysWithinQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{Unkind: 1})
		if err != nil {
			t.Fatal(err)
		}
		made, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1000, Max: 1000, Spot: &ec2.SpotOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // no answer is so old
		throttled := 0
		server.Gate.Watch(func(_ *wire.Request, failure *wire.Error) {
			if failure != nil {
				throttled++
			}
		})
		config := emulatortest.Config(server)
		config.RetryMaxAttempts = 1
		c := aws.New(config)
		for range 20 {
			var all sync.WaitGroup
			for _, in := range made {
				all.Go(func() {
					if got, err := c.Describe(t.Context(), in.ID); err != nil || got == nil || got.ID != in.ID {
						t.Errorf("%s is %+v, %v", in.ID, got, err)
					}
				})
			}
			all.Wait()
			time.Sleep(time.Second)
		}
		if throttled > 0 {
			t.Errorf("%d calls were throttled", throttled)
		}
	})
}
