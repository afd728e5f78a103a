package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

var update = flag.Bool("update", false, "write the golden files")

// clock is the program's current time, unless a test sets another.
var clock = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// harness runs the program with everything outside of it replaced.
type harness struct {
	t           *testing.T
	name        string // the program's name; lifeboat if empty
	cluster     client.WithWatch
	stdin       string
	interactive bool
	getenv      map[string]string
	setup       func(*session)
}

// result is the result of one run of the program.
type result struct {
	code     int
	out, err string
}

func (h *harness) run(ctx context.Context, args ...string) result {
	h.t.Helper()
	name := h.name
	if name == "" {
		name = "lifeboat"
	}
	var out, err bytes.Buffer
	s := newSession(Env{
		Args: append([]string{name}, args...), In: strings.NewReader(h.stdin), Out: &out, Err: &err,
		Getenv: func(key string) string { return h.getenv[key] },
	})
	s.now = func() time.Time { return clock }
	s.interactive = h.interactive
	if h.cluster != nil {
		s.connect = func(context.Context) (cluster, error) {
			return cluster{WithWatch: h.cluster, name: "prod", requestTimeout: command.DefaultRequestTimeout}, nil
		}
	}
	if h.setup != nil {
		h.setup(s)
	}
	code := s.run(ctx)
	return result{code: code, out: out.String(), err: err.String()}
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; go test -update updates it (-want +got):\n%s", path, diff)
	}
}

// fakeCluster is an in-memory cluster that can list pods by node, like the API
// server.
func fakeCluster(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.Interruption{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(funcs).Build()
}

const (
	nodeName   = "ip-10-0-0-10.ec2.internal"
	instanceA  = "i-0a1b2c3d4e5f60718"
	instanceB  = "i-0b2c3d4e5f6071829"
	otherNode  = "ip-10-0-0-11.ec2.internal"
	onPremNode = "rack7"
)

func node(name, providerID string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.NodeSpec{ProviderID: providerID},
	}
}

func twoNodes() []client.Object {
	return []client.Object{
		node(nodeName, "aws:///us-east-1a/"+instanceA),
		node(otherNode, "aws:///us-east-1b/"+instanceB),
		node(onPremNode, ""),
	}
}

// pod returns a Ready pod on the first node.
func pod(namespace, name, app, ownerKind string, grace int64) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: ownerKind, Name: app, Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: nodeName, TerminationGracePeriodSeconds: &grace},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func budget(namespace, app string, healthy, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app + "-pdb"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{
			CurrentHealthy: healthy, DesiredHealthy: healthy - allowed, DisruptionsAllowed: allowed, ExpectedPods: healthy,
		},
	}
}

// spotNotice returns a notice that was received some time ago.
func spotNotice(id string, ago time.Duration) v1beta1.Notice {
	at := clock.Add(-ago)
	return v1beta1.Notice{
		ID: id, Kind: notice.KindSpotInterruption, Source: "sqs", InstanceAction: "terminate",
		Time: metav1.NewTime(at), ReceivedTime: metav1.NewMicroTime(at),
		Deadline: notice.At(at.Add(2*time.Minute), v1beta1.DeadlineHard),
	}
}

// interruption returns the record of the first node's instance.
func interruption(notices ...v1beta1.Notice) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instanceA, UID: "uid-a", CreationTimestamp: metav1.NewTime(clock.Add(-time.Minute))},
		Spec:       v1beta1.InterruptionSpec{InstanceID: instanceA, NodeName: nodeName, Notices: notices},
	}
}

// happened adds a timeline entry from some time ago.
func happened(in *v1beta1.Interruption, ago time.Duration, reason, message string) {
	in.Status.Timeline = append(in.Status.Timeline, v1beta1.TimelineEntry{
		Time: metav1.NewMicroTime(clock.Add(-ago)), Reason: reason, Message: message,
	})
}

// complete marks an interruption as completed.
func complete(in *v1beta1.Interruption, ago time.Duration, moved, lost int32) {
	in.Status.Phase = v1beta1.PhaseCompleted
	in.Status.Kind, in.Status.NodeName = notice.KindSpotInterruption, in.Spec.NodeName
	in.Status.LastNoticeID = in.Spec.Notices[len(in.Spec.Notices)-1].ID
	recordtest.Complete(in, clock.Add(-ago))
	record.EnsureDrain(&in.Status).PodCounts = v1beta1.PodCounts{Total: moved + lost, Moved: moved, Lost: lost}
}
