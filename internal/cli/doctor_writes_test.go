package cli

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const platformPolicy = `nodes "db-1" is forbidden: ValidatingAdmissionPolicy 'platform-nodes' with binding 'platform-nodes' denied request: no`

func deniedByPlatform() error {
	return answered(http.StatusForbidden, metav1.StatusReasonForbidden, platformPolicy)
}

func answered(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// writesCluster answers the writes of a trial, and keeps what they are.
type writesCluster struct {
	t     *testing.T
	trial *trial
	tried []string
	// answers has the answers that are not nil: "REQUEST KIND", and optionally the object's name.
	answers map[string]error
}

// newWritesCluster returns a cluster with the objects.
func newWritesCluster(t *testing.T, objects ...client.Object) *writesCluster {
	t.Helper()
	w := &writesCluster{t: t, answers: map[string]error{}}
	c := fakeCluster(t, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.answer("create", o, (&client.CreateOptions{}).ApplyOptions(opts).DryRun)
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
			return w.answer("patch", o, (&client.PatchOptions{}).ApplyOptions(opts).DryRun)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.answer("delete", o, (&client.DeleteOptions{}).ApplyOptions(opts).DryRun)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, o, _ client.Object, opts ...client.SubResourceCreateOption) error {
			return w.answer("create "+sub, o, (&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, sub string, o client.Object, _ client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.answer("patch "+sub, o, (&client.SubResourcePatchOptions{}).ApplyOptions(opts).DryRun)
		},
	}, objects...)
	w.trial = &trial{as: c, now: clock, limit: context.WithCancel, surge: true}
	for _, o := range objects {
		if n, ok := o.(*corev1.Node); ok {
			w.trial.nodes = append(w.trial.nodes, *n)
		}
	}
	return w
}

func (w *writesCluster) answer(request string, o client.Object, dryRun []string) error {
	if !slices.Equal(dryRun, []string{metav1.DryRunAll}) {
		w.t.Errorf("%s of %s is no dry run", request, o.GetName())
	}
	gvk, err := w.trial.as.GroupVersionKindFor(o)
	if err != nil {
		w.t.Error(err)
	}
	key := request + " " + gvk.Kind
	w.tried = append(w.tried, key+" "+o.GetName())
	if err, ok := w.answers[key+" "+o.GetName()]; ok {
		return err
	}
	return w.answers[key]
}

// poolNodes returns nodes of the pools web and db.
func poolNodes() []client.Object {
	var all []client.Object
	for _, name := range []string{"web-1", "web-2", "db-1"} {
		pool, _, _ := strings.Cut(name, "-")
		all = append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{replacement.LabelNodePool: pool}}})
	}
	return all
}

// A policy that refuses the cordon of one pool is found by a dry run, which changes nothing.
func TestRefusedCordonOfOnePoolIsBroken(t *testing.T) {
	w := newWritesCluster(t, poolNodes()...)
	w.answers["patch Node db-1"] = deniedByPlatform()
	found := w.trial.run(t.Context())
	if want := []string{"patch Node web-1", "patch Node db-1", "delete Node web-1", "create Interruption " + triedInstance}; !slices.Equal(w.tried, want) {
		t.Errorf("tried %q, want %q: one node of each pool", w.tried, want)
	}
	if len(found) != 1 || found[0].Severity != finding.Broken || found[0].ID != admission.Refused || !strings.Contains(found[0].Problem, "platform-nodes") || !strings.Contains(found[0].Object, "db-1") {
		t.Errorf("found %+v", found)
	}
}

// karpenterObject is an object of Karpenter in a pool.
func karpenterObject(kind, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion(replacement.Group + "/" + replacement.Version)
	u.SetKind(kind)
	u.SetName(name)
	u.SetUID("uid-x")
	return u
}

// fullWrites returns a cluster in which each write can be tried.
func fullWrites(t *testing.T) *writesCluster {
	t.Helper()
	agent, web := pod("kube-system", "agent-1", "agent", "DaemonSet", 30), pod("shop", "web-1", "web", "ReplicaSet", 30)
	web.Labels["pod-template-hash"] = "abc"
	plain := pod("shop", "db-0", "db", "StatefulSet", 30)
	for _, p := range []*corev1.Pod{agent, plain, web} {
		p.Spec.NodeName = "web-1"
	}
	claim := karpenterObject("NodeClaim", "web-x", map[string]any{})
	claim.SetLabels(map[string]string{replacement.LabelNodePool: "web"})
	pool := karpenterObject("NodePool", "web", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"expireAfter": "720h"}}}})
	w := newWritesCluster(t, append(poolNodes(), agent, plain, web, claim, pool, interruption(spotNotice("n1", 0)))...)
	job := runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)}
	w.trial.jobNamespaces = []string{"hooks"}
	w.trial.policies = []v1beta1.InterruptionPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "batch"},
		Spec: v1beta1.InterruptionPolicySpec{Hooks: []v1beta1.Hook{
			{Name: "flush", Job: &v1beta1.HookJob{Template: job}}, {Name: "call"},
		}},
	}}
	return w
}

// Each write of the product is tried once, and the finding says what follows if it is refused.
func TestRefusedWriteIsBroken(t *testing.T) {
	newClaim := "web-lb-00000000000000000"
	for request, want := range map[string][2]string{
		"patch Node web-1":             {"node web-1", "no pod leaves the node before its last call"},
		"delete Node web-1":            {"node web-1", "warm pool"},
		"create eviction Pod":          {"pod shop/web-1 on node web-1", "refuses the eviction that"},
		"patch Pod":                    {"pod shop/web-1 on node web-1", "its successor starts only after it has left"},
		"patch status Pod":             {"pod shop/web-1 on node web-1", "refuses the patch of the status that"},
		"delete Pod":                   {"pod shop/web-1 on node web-1", "a pod that its budget holds"},
		"create Interruption":          {"interruption " + triedInstance, "no notice is recorded"},
		"patch status Interruption":    {"interruption " + instanceA, "the record is old"},
		"patch NodeClaim":              {"nodeclaim web-x", "Karpenter does not know the deadline"},
		"delete NodeClaim":             {"nodeclaim web-x", "Karpenter does not end the node"},
		"create NodeClaim " + newClaim: {"nodeclaim " + newClaim, "no replacement starts"},
		"create Job":                   {"job of hook flush in policy batch, in namespace hooks", "the hook does not run"},
	} {
		t.Run(request, func(t *testing.T) {
			w := fullWrites(t)
			w.answers[request] = deniedByPlatform()
			found := w.trial.run(t.Context())
			if len(found) != 1 || found[0].Severity != finding.Broken || found[0].ID != admission.Refused {
				t.Fatalf("found %+v, tried %q", found, w.tried)
			}
			if f := found[0]; !strings.HasPrefix(f.Object, want[0]) || !strings.Contains(f.Problem, want[1]) || !strings.Contains(f.Problem, "platform-nodes") {
				t.Errorf("found %+v, want %q", f, want)
			}
			if len(w.tried) != 13 || len(w.trial.untried) != 0 {
				t.Errorf("tried %d: %q; not tried %q", len(w.tried), w.tried, w.trial.untried)
			}
		})
	}
}

// A webhook without dry runs makes only the dry run fail, and not what Lifeboat writes.
func TestWebhookWithoutDryRunIsNoRefusal(t *testing.T) {
	w := fullWrites(t)
	w.answers["patch Node"] = answered(http.StatusBadRequest, metav1.StatusReasonBadRequest, `admission webhook "nodes.example.com" does not support dry run`)
	found := w.trial.run(t.Context())
	if len(found) != 1 || found[0].Severity != finding.Info || found[0].ID != admission.NotWritten {
		t.Fatalf("found %+v, want one finding for all pools", found)
	}
	if p := found[0].Problem; !strings.HasPrefix(p, "cannot check") || !strings.Contains(p, "nodes.example.com") {
		t.Errorf("problem %q", p)
	}
}

// A webhook that must answer and does not refuses each write. A busy server and a budget do not.
func TestOnlyLastingRefusalsAreBroken(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		broken int
	}{
		"a webhook that fails": {answered(http.StatusInternalServerError, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "pods.example.com": no endpoints`), 1},
		"two budgets":          {answered(http.StatusInternalServerError, metav1.StatusReasonInternalError, "This pod has more than one PodDisruptionBudget"), 0},
		"a budget":             {answered(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget."), 0},
		"a lost connection":    {errors.New("connection reset by peer"), 0},
	} {
		w := fullWrites(t)
		w.answers["create eviction Pod"] = c.err
		if found := w.trial.run(t.Context()); len(found) != c.broken {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// A user who may not impersonate the controller gets one finding, after one request.
func TestWritesStopWithoutImpersonation(t *testing.T) {
	w := fullWrites(t)
	w.answers["patch Node"] = answered(http.StatusForbidden, metav1.StatusReasonForbidden,
		`users "system:serviceaccount:lifeboat-system:lifeboat-controller" is forbidden: User "jane" cannot impersonate resource "users" in API group ""`)
	found := w.trial.run(t.Context())
	if len(found) != 1 || found[0].ID != admission.NotWritten || len(w.tried) != 1 {
		t.Errorf("found %+v, tried %q", found, w.tried)
	}
}

// What the cluster gives no object for is named, so that a reader does not take it for checked.
func TestUntriedWritesAreNamed(t *testing.T) {
	agent := pod("kube-system", "agent-1", "agent", "DaemonSet", 30) // a drain leaves it
	agent.Spec.NodeName = "web-1"
	w := newWritesCluster(t, append(poolNodes(), agent)...)
	if found := w.trial.run(t.Context()); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	if got := strings.Join(w.trial.untried, "; "); !strings.Contains(got, "writes of pods") || !strings.Contains(got, "the status of an Interruption (there is none") {
		t.Errorf("not tried: %q", got)
	}
	plain := pod("shop", "db-0", "db", "StatefulSet", 30)
	plain.Spec.NodeName = "web-1"
	w = newWritesCluster(t, append(poolNodes(), plain)...)
	w.trial.run(t.Context())
	if !strings.Contains(strings.Join(w.trial.untried, "; "), "the surge of a pod") {
		t.Errorf("not tried: %q", w.trial.untried)
	}
	w = newWritesCluster(t, append(poolNodes(), plain)...)
	w.trial.surge = false // as in the chart's values: the controller may not patch pods
	w.trial.run(t.Context())
	if strings.Contains(strings.Join(w.trial.untried, "; "), "the surge of a pod") {
		t.Errorf("not tried: %q", w.trial.untried)
	}
}

// A policy of others that refuses the doctor's own test request is named, and not Lifeboat's.
func TestMaskedPolicyNamesWhatRefused(t *testing.T) {
	f := verdict(admission.Controller, deniedByPlatform())
	if f == nil || !strings.Contains(f.Problem, "another policy or webhook refused the test request") || !strings.Contains(f.Problem, "platform-nodes") {
		t.Errorf("%+v", f)
	}
}
