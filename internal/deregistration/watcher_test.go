package deregistration_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/elb"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/deregistration"
)

// region is an emulated region with two target groups and a Watcher. It is the reader of
// TargetGroupBindings too.
type region struct {
	client.Reader
	*deregistration.Watcher

	t         *testing.T
	server    *emulator.Server
	instances []string
	web, api  string // target groups; web has the instances
	listErr   error
	foreign   []string // the ARNs of further bindings

	mu    sync.Mutex
	woken []string
}

// List implements client.Reader.
func (r *region) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	out, ok := list.(*unstructured.UnstructuredList)
	if r.listErr != nil || !ok {
		return r.listErr
	}
	add := func(arn, kind string) {
		out.Items = append(out.Items, unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"targetGroupARN": arn, "targetType": kind}}})
	}
	add(r.web, "instance")
	add(r.web, "instance") // two Services may share a group
	add(r.api, "ip")
	for _, arn := range r.foreign {
		add(arn, "instance")
	}
	return nil
}

const service, action = "elasticloadbalancing", "DescribeTargetHealth"

func inRegion(t *testing.T, play func(t *testing.T, r *region)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		running.Go(func() { server.States.EC2.Run(ctx) })
		launched, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0a1b2c3d4e5f60718", Min: 2, Max: 2})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r := &region{t: t, server: server, instances: []string{launched[0].ID, launched[1].ID}}
		for arn, create := range map[*string]func() (string, error){
			&r.web: func() (string, error) { return server.States.ELB.Create("web", elb.TypeInstance, 30080) },
			&r.api: func() (string, error) { return server.States.ELB.Create("api", elb.TypeIP, 8080) },
		} {
			if *arn, err = create(); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range r.instances { // at another port than the group's
			r.must(server.States.ELB.Register(r.web, elb.Target{ID: id, Port: 31000}))
		}
		r.must(server.States.ELB.Register(r.api, elb.Target{ID: "10.0.0.1"}))
		time.Sleep(time.Minute)
		config := emulatortest.Config(server)
		config.RetryMaxAttempts = 1
		r.Watcher = deregistration.New(deregistration.Options{Reader: r, Health: elbv2.NewFromConfig(config), Wake: func(id string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.woken = append(r.woken, id)
		}})
		running.Go(func() { _ = r.Start(ctx) })
		synctest.Wait()
		play(t, r)
	})
}

func (r *region) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// after returns the state of the first instance in a while.
func (r *region) after(d time.Duration, until time.Time) deregistration.State {
	time.Sleep(d)
	return r.State(r.instances[0], until)
}

func TestInstanceIsDeregistered(t *testing.T) {
	t.Parallel()
	inRegion(t, func(t *testing.T, r *region) {
		until := time.Now().Add(time.Minute)
		if calls := r.server.Gate.Calls(service, action); calls != 0 {
			t.Errorf("%d calls before anything waits", calls)
		}
		if got := r.State(r.instances[0], until); got.Known {
			t.Errorf("known at once: %+v", got)
		}
		if diff := cmp.Diff(deregistration.State{Known: true, Groups: []string{r.web}}, r.after(time.Second, until)); diff != "" {
			t.Errorf("registered (-want +got):\n%s", diff)
		}
		r.must(r.server.States.ELB.Deregister(r.web, elb.Target{ID: r.instances[0], Port: 31000}))
		if diff := cmp.Diff(deregistration.State{Known: true}, r.after(5*time.Second, until)); diff != "" {
			t.Errorf("drains (-want +got):\n%s", diff)
		}
		r.mu.Lock()
		if diff := cmp.Diff([]string{r.instances[0], r.instances[0]}, r.woken); diff != "" {
			t.Errorf("woken (-want +got):\n%s", diff)
		}
		r.mu.Unlock()
		calls := r.server.Gate.Calls(service, action)
		if time.Sleep(time.Hour); r.server.Gate.Calls(service, action) != calls {
			t.Errorf("%d calls after it was deregistered", r.server.Gate.Calls(service, action)-calls)
		}
		// Another drain of the instance waits again.
		r.must(r.server.States.ELB.Register(r.web, elb.Target{ID: r.instances[0], Port: 31000}))
		until = time.Now().Add(time.Minute)
		r.State(r.instances[0], until)
		if got := r.after(5*time.Second, until); len(got.Groups) != 1 {
			t.Errorf("in a second drain: %+v", got)
		}
	})
}

// One call per target group reads the states of all instances, and calls end with the wait.
func TestCallsGrowWithGroupsOnly(t *testing.T) {
	t.Parallel()
	inRegion(t, func(t *testing.T, r *region) {
		until := time.Now().Add(time.Minute)
		for _, id := range r.instances {
			r.State(id, until)
		}
		time.Sleep(time.Hour)
		if calls := r.server.Gate.Calls(service, action); calls < 10 || calls > 21 {
			t.Errorf("%d calls in a wait of a minute, want one each 3 s", calls)
		}
	})
}

func TestInstancesOutsideOfGroups(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*region){
		"the kind is not installed": func(r *region) {
			r.listErr = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "elbv2.k8s.aws", Kind: "TargetGroupBinding"}}
		},
		"in no group": func(r *region) {
			r.must(r.server.States.ELB.Deregister(r.web, elb.Target{ID: r.instances[0], Port: 31000}))
		},
		"a group is deleted": func(r *region) {
			r.must(r.server.States.ELB.Deregister(r.web, elb.Target{ID: r.instances[0], Port: 31000}))
			r.foreign = []string{strings.Replace(r.web, "/web/", "/gone/", 1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inRegion(t, func(t *testing.T, r *region) {
				prepare(r)
				until := time.Now().Add(time.Minute)
				r.State(r.instances[0], until)
				if diff := cmp.Diff(deregistration.State{Known: true}, r.after(time.Second, until)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Only a refusal ends a wait. After another error it is asked again.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare   func(*region)
		want      string
		isRefused bool
	}{
		"denied":       {func(r *region) { r.server.Gate.Deny(service, action) }, "AccessDenied", true},
		"may not list": {func(r *region) { r.listErr = apierrors.NewForbidden(schema.GroupResource{}, "", nil) }, "waitForDeregistration.enabled", true},
		"throttled":    {func(r *region) { r.server.Gate.Throttle(service, action, -1) }, "Throttling", false},
		"no answer":    {func(r *region) { r.server.Gate.Hang(service, action) }, "deadline exceeded", false},
		"no list":      {func(r *region) { r.listErr = errors.New("broken") }, "listing TargetGroupBindings: broken", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inRegion(t, func(t *testing.T, r *region) {
				c.prepare(r)
				until := time.Now().Add(time.Minute)
				r.State(r.instances[0], until)
				got := r.after(11*time.Second, until)
				if got.Err == nil || !strings.Contains(got.Err.Error(), c.want) || got.Settled() != c.isRefused {
					t.Errorf("got %+v, settled %t; want %s, settled %t", got, got.Settled(), c.want, c.isRefused)
				}
			})
		})
	}
}

// Between two errors AWS says that the instance is registered. It does not count as deregistered then.
func TestErrorKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	inRegion(t, func(t *testing.T, r *region) {
		until := time.Now().Add(time.Minute)
		r.State(r.instances[0], until)
		for _, isThrottled := range []bool{false, true, false} {
			if isThrottled {
				r.server.Gate.Throttle(service, action, 1)
			}
			got := r.after(4*time.Second, until)
			if len(got.Groups) != 1 || got.Settled() || (got.Err != nil) != isThrottled {
				t.Errorf("throttled %t: %+v", isThrottled, got)
			}
		}
		r.must(r.server.States.ELB.Deregister(r.web, elb.Target{ID: r.instances[0], Port: 31000}))
		if diff := cmp.Diff(deregistration.State{Known: true}, r.after(5*time.Second, until)); diff != "" {
			t.Errorf("drains (-want +got):\n%s", diff)
		}
	})
}
