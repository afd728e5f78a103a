package instancelaunch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/instancelaunch"
)

const instance = "i-0a1b2c3d4e5f60718"

// fakeGroup is a fake watcher and a fake AWS with one instance, whose state may change between a
// decision and its call. It records the calls for hooks.
type fakeGroup struct {
	mu     sync.Mutex
	listed string        // the state that passes see
	now    func() string // the state right before a call
	age    time.Duration // the age of that state
	calls  []string
}

func member(state string) groupcache.Member {
	return groupcache.Member{InstanceID: instance, Group: "workers", State: state, At: lifecycle.Read(state)}
}

func (a *fakeGroup) Groups() []groupcache.Group {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []groupcache.Group{{
		Name: "workers", At: time.Now().Add(-a.age), HooksKnown: true, Members: []groupcache.Member{member(a.listed)},
		Hooks: []groupcache.Hook{{Name: v1beta1.LaunchHook, Timeout: 10 * time.Minute}, {Name: v1beta1.TerminateHook, Terminating: true, Timeout: 5 * time.Minute}},
	}}
}

func (a *fakeGroup) Member(string) (groupcache.Member, bool, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return member(a.now()), true, time.Now().Add(-a.age)
}

func (a *fakeGroup) RequestRefresh(string)      {}
func (a *fakeGroup) RequestRefreshHooks(string) {}
func (a *fakeGroup) RequestRefreshNew()         {}

func (a *fakeGroup) note(what string, on cloud.Action) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what+" "+on.Hook)
}

func (a *fakeGroup) Complete(_ context.Context, on cloud.Action, r cloud.Result) error {
	a.note(string(r), on)
	return nil
}

func (a *fakeGroup) Heartbeat(_ context.Context, on cloud.Action) error {
	a.note("heartbeat", on)
	return nil
}

func (a *fakeGroup) Detach(context.Context, string, string) error { return nil }

// sweeps runs the controller for some time, with a node that is Ready.
func sweeps(t *testing.T, a *fakeGroup, d time.Duration) []string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		_ = clientgoscheme.AddToScheme(scheme) // errors are only possible for conflicting types
		_ = v1beta1.AddToScheme(scheme)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.Now()},
			Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + instance},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}},
		}
		kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node).Build()
		s, err := instancelaunch.New(instancelaunch.Options{Client: kube, Pods: kube, Groups: a, Lifecycle: a, Events: events.NewFakeRecorder(100)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), d)
		defer stop()
		if err := s.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	return a.calls
}

func TestRace05LateCompleteHitsTheNextFiring(t *testing.T) {
	// An unchanged state is answered.
	a := &fakeGroup{listed: "Pending:Wait", now: func() string { return "Pending:Wait" }}
	if calls := sweeps(t, a, 4*time.Second); !slices.Equal(calls, []string{"CONTINUE lifeboat-launch"}) {
		t.Errorf("calls %v", calls)
	}
	// A changed state is never answered.
	a = &fakeGroup{listed: "Pending:Wait", now: func() string { return "Warmed:Pending:Wait" }}
	if calls := sweeps(t, a, time.Minute); len(calls) != 0 {
		t.Errorf("calls %v", calls)
	}
	// With a stale state, as after a pause of the process, the hook gets a heartbeat and is not
	// completed.
	a = &fakeGroup{listed: "Pending:Wait", now: func() string { return "Pending:Wait" }, age: 2 * time.Minute}
	calls := sweeps(t, a, 9*time.Minute)
	if len(calls) < 2 || slices.Contains(calls, "CONTINUE lifeboat-launch") {
		t.Errorf("calls %v", calls)
	}
}
