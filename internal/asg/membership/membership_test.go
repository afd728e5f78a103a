package membership

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// cache has the group workers, with the members by instance.
type cache map[string]string

func (c cache) Member(id string) (groupcache.Member, bool, time.Time) {
	state, ok := c[id]
	if !ok {
		return groupcache.Member{}, false, time.Time{}
	}
	return groupcache.Member{InstanceID: id, Group: "workers", State: state}, true, time.Unix(1, 0)
}

func (c cache) Group(name string) (groupcache.Group, bool) {
	return groupcache.Group{Name: name, At: time.Unix(1, 0), HooksKnown: true, Hooks: []groupcache.Hook{
		{Name: "nth", Terminating: true}, {Name: "lifeboat-terminate", Terminating: true}, {Name: "named", Terminating: true}, {Name: "lifeboat-launch"},
	}}, name == "workers"
}

func (cache) RequestRefresh(string) {}

func interruption(notices ...v1beta1.Notice) *v1beta1.Interruption {
	return &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{InstanceID: "i-1", Notices: notices}}
}

func TestMembership(t *testing.T) {
	t.Parallel()
	retain := true
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	nodeGroups := fake.NewClientBuilder().WithScheme(scheme).WithObjects(client.Object(&v1beta1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: v1beta1.NodeGroupSpec{
			AutoScalingGroup: "workers", RetainUndrained: &retain, Hooks: v1beta1.LifecycleHooks{Terminate: &v1beta1.LifecycleHook{Name: "named"}},
		},
	})).Build()
	plain := fake.NewClientBuilder().WithScheme(scheme).WithObjects(client.Object(&v1beta1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "workers"}})).Build()
	m, err := Reader{Client: plain, Groups: cache{"i-1": "Terminating:Wait"}, Hooks: []string{"kops-*"}}.Of(t.Context(), interruption())
	if err != nil || !m.owns(v1beta1.TerminateHook) || m.owns("named") {
		t.Errorf("a NodeGroup that names no hook has lifeboat-terminate: %+v, %v", m, err)
	}
	taken := v1beta1.Notice{Kind: notice.KindAutoScalingTermination, LifecycleHook: &v1beta1.LifecycleHookInvocation{Group: "workers"}}
	other := v1beta1.Notice{Kind: notice.KindAutoScalingTermination, LifecycleHook: &v1beta1.LifecycleHookInvocation{Group: "other"}}
	for name, test := range map[string]struct {
		members cache
		in      *v1beta1.Interruption
		group   string
		phase   lifecycle.Phase
		own     []string
	}{
		"in no group":                {in: interruption(v1beta1.Notice{Kind: notice.KindSpotInterruption})},
		"in a group that is unknown": {in: interruption(other)},
		"it serves":                  {members: cache{"i-1": "InService"}, in: interruption(v1beta1.Notice{Kind: notice.KindSpotInterruption}), group: "workers", phase: lifecycle.Serving},
		"it leaves":                  {members: cache{"i-1": "Terminating:Wait"}, in: interruption(), group: "workers", phase: lifecycle.Leaving, own: []string{"lifeboat-terminate", "named"}},
		"it has left":                {in: interruption(taken), group: "workers", own: []string{"lifeboat-terminate", "named"}},
		"the cache knows it better":  {members: cache{"i-1": "Terminating"}, in: interruption(other), group: "workers", phase: lifecycle.Leaving, own: []string{"lifeboat-terminate", "named"}},
	} {
		m, err := Reader{Client: nodeGroups, Groups: test.members, Hooks: []string{"lifeboat-*"}}.Of(t.Context(), test.in)
		if err != nil {
			t.Fatal(err)
		}
		own, _ := lifecycle.Split(m.Seen.Hooks, true)
		var names []string
		for _, h := range own {
			names = append(names, h.Name)
		}
		if m.Seen.Group != test.group || m.At.Phase != test.phase || !slices.Equal(names, test.own) || m.retain != (test.own != nil) {
			t.Errorf("%s: group %q, phase %q, own hooks %v, retain %t", name, m.Seen.Group, m.At.Phase, names, m.retain)
		}
	}
}
