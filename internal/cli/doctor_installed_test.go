package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// lifeboatIs sets what the sandbox says about lifeboatd; nil: nothing, as on AWS.
func (e *awsAccount) lifeboatIs(process *doctor.Process) {
	setup := e.setup
	e.setup = func(s *session) {
		setup(s)
		find := s.findSandbox
		s.findSandbox = func(name string) (connection, error) {
			c, err := find(name)
			c.lifeboatd = process
			return c, err
		}
	}
}

// installation is Lifeboat as its chart installs it, and ready.
type installation struct {
	controller appsv1.Deployment
	agents     appsv1.DaemonSet
	lease      *coordinationv1.Lease
	pods       []client.Object
}

func newInstallation() *installation {
	two, seconds, holder := int32(2), int32(15), "lifeboat-controller-a"
	renewed := metav1.NewMicroTime(clock.Add(-3 * time.Second))
	labels := map[string]string{nameLabel: "lifeboat", versionLabel: "0.1.0"}
	i := &installation{}
	i.controller.ObjectMeta = metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: lifeboatController, Labels: labels}
	i.controller.Spec.Replicas, i.controller.Status.ReadyReplicas = &two, 2
	i.controller.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"controller", "--queue-url=https://sqs.us-east-1.amazonaws.com/123456789012/lifeboat-prod"}}}
	i.agents.ObjectMeta = metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: "lifeboat-agent", Labels: map[string]string{nameLabel: "lifeboat", componentLabel: "agent", versionLabel: "0.1.0"}}
	i.agents.Status.DesiredNumberScheduled, i.agents.Status.NumberReady = 3, 3
	i.lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: lifeboatController},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	return i
}

func (i *installation) objects() []client.Object {
	objects := append([]client.Object{&i.controller, &i.agents}, i.pods...)
	if i.lease != nil {
		objects = append(objects, i.lease)
	}
	return objects
}

func TestDoctorChecksThatLifeboatRuns(t *testing.T) {
	e := newBrokenAccount(t)
	e.lifeboatIs(nil)
	for _, tc := range []struct {
		name string
		edit func(*installation)
		code int
		want string
	}{
		{"it runs", func(*installation) {}, ExitOK, "Lifeboat 0.1.0: 2 of 2 controllers are ready, the leader is lifeboat-controller-a, 3 of 3 agents are ready."},
		{"scaled to 0", func(i *installation) { *i.controller.Spec.Replicas, i.controller.Status.ReadyReplicas = 0, 0 }, exitBroken, "it is scaled to 0"},
		{"it crashes", func(i *installation) {
			i.controller.Status.ReadyReplicas = 0
			i.pods = []client.Object{&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: "a", Labels: map[string]string{nameLabel: "lifeboat", componentLabel: "controller"}},
				Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}},
			}}
		}, exitBroken, "none of its 2 replicas is ready (CrashLoopBackOff)"},
		{"one replica", func(i *installation) { i.controller.Status.ReadyReplicas = 1 }, ExitOK, "lifeboat-few-replicas"},
		{"no lease", func(i *installation) { i.lease = nil }, exitBroken, "there is no lease"},
		{"a dead leader", func(i *installation) { i.lease.Spec.RenewTime.Time = clock.Add(-2 * time.Minute) }, exitBroken, "lifeboat-controller-a last renewed the lease at 2026-05-11T08:12:02Z"},
		{"another queue", func(i *installation) {
			i.controller.Spec.Template.Spec.Containers[0].Args[1] = "--queue-url=https://sqs.us-east-1.amazonaws.com/123456789012/other"
		}, exitBroken, "lifeboat-other-queue"},
		{"agents in a namespace of their own", func(i *installation) { i.agents.Namespace = "agents" }, ExitOK, "3 of 3 agents are ready"},
		{"old agents", func(i *installation) { i.agents.Labels[versionLabel] = "0.0.9" }, ExitOK, "the agents have version 0.0.9 and the controller 0.1.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := newInstallation()
			tc.edit(i)
			e.cluster = fakeCluster(t, interceptor.Funcs{}, i.objects()...)
			if r := e.doctor(); r.code != tc.code || !strings.Contains(r.out, tc.want) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", r.code, tc.code, tc.want, r.out, r.err)
			}
		})
	}
}

// TestNamespacedUserSeesAgents checks that a user who may list DaemonSets in lifeboat-system
// only still sees the agents there.
func TestNamespacedUserSeesAgents(t *testing.T) {
	forbidden := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		var o client.ListOptions
		o.ApplyOptions(opts)
		if _, ok := l.(*appsv1.DaemonSetList); ok && o.Namespace == "" {
			return apierrors.NewForbidden(appsv1.Resource("daemonsets"), "", errors.New("no"))
		}
		return c.List(ctx, l, opts...)
	}}
	c := cluster{WithWatch: fakeCluster(t, forbidden, newInstallation().objects()...)}
	if found, err := c.findAgents(t.Context()); err != nil || found == nil {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestDoctorFindsThatLifeboatIsNotThere(t *testing.T) {
	e := newBrokenAccount(t)
	e.lifeboatIs(&doctor.Process{})
	if r := e.doctor(); r.code != exitBroken || !strings.Contains(r.out, "lifeboat-missing") || !strings.Contains(r.out, "it does not run in this sandbox") {
		t.Errorf("a sandbox: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	e.lifeboatIs(nil)
	if r := e.doctor(); r.code != exitBroken || !strings.Contains(r.out, "Lifeboat is not installed in this cluster") {
		t.Errorf("a cluster: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	i := newInstallation()
	e.cluster = fakeCluster(t, interceptor.Funcs{}, i.lease)
	if r := e.doctor(); r.code != ExitOK || !strings.Contains(r.out, "Lifeboat runs outside of its Deployment") {
		t.Errorf("a process outside of the cluster: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	e.cluster = fakeCluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*appsv1.Deployment); is {
			return errors.New("the API server is overloaded")
		}
		return c.Get(ctx, key, o, opts...)
	}})
	if r := e.doctor(); r.code != exitIncomplete || !strings.Contains(r.out, "lifeboat-not-checked") || strings.Contains(r.out, "lifeboat-missing") {
		t.Errorf("a read that fails: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestDoctorFailsOnWarningsIfAsked(t *testing.T) {
	e := newBrokenAccount(t)
	i := newInstallation()
	i.controller.Status.ReadyReplicas = 1
	e.lifeboatIs(nil)
	e.cluster = fakeCluster(t, interceptor.Funcs{}, i.objects()...)
	for level, want := range map[string]int{"broken": ExitOK, "unknown": ExitOK, "warning": exitWarning, "info": exitWarning} {
		if r := e.doctor("--fail-on", level); r.code != want {
			t.Errorf("--fail-on %s: exit code %d, want %d", level, r.code, want)
		}
	}
}

// An accepted finding does not count. The formats for pipelines have the others.
func TestDoctorOutputsAndBaseline(t *testing.T) {
	e := newBrokenAccount(t)
	e.lifeboatIs(&doctor.Process{})
	if r := e.doctor("-o", "sarif"); r.code != exitBroken || !strings.Contains(r.out, `"ruleId": "lifeboat-missing"`) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := e.doctor("-o", "junit"); r.code != exitBroken || !strings.Contains(r.out, `tests="1" failures="1"`) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	file := filepath.Join(t.TempDir(), "baseline.json")
	if r := e.doctor("--baseline", file); r.code != exitIncomplete || !strings.Contains(r.err, "reading the baseline") {
		t.Errorf("no file: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := e.doctor("--baseline", file, "--write-baseline"); r.code != ExitOK || !strings.Contains(r.out, "The baseline accepts 1 finding.") {
		t.Errorf("written: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := e.doctor("--baseline", file); r.code != ExitOK {
		t.Errorf("accepted: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	e.lifeboatIs(&doctor.Process{Alive: true})
	if r := e.doctor("--baseline", file); r.code != ExitOK || !strings.Contains(r.out, "lifeboat-missing of process lifeboatd, which is no longer found") {
		t.Errorf("stale: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := e.doctor("--write-baseline"); r.code != ExitUsage {
		t.Errorf("no file: exit code %d", r.code)
	}
}
