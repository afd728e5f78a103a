package mutate

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

var noon = time.Date(2026, 5, 11, 12, 0, 0, 0, time.UTC)

// cluster is an API server that can select pods by their node.
func cluster(funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			pod, _ := o.(*corev1.Pod)
			return []string{pod.Spec.NodeName}
		}).Build()
}

func replicaSet(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-set"},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "5d4f"},
		}},
	}
}

// controlled is a pod of a ReplicaSet.
func controlled(name string, set *appsv1.ReplicaSet) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: "uid-a", Annotations: map[string]string{"mine": "stays"},
			Labels:          maps.Clone(set.Spec.Selector.MatchLabels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: corev1.PodSpec{NodeName: "node", InitContainers: []corev1.Container{{Name: "init"}}},
	}
}

// released is a surged pod that its ReplicaSet has released.
func released(name string, set *appsv1.ReplicaSet) *corev1.Pod {
	pod := controlled(name, set)
	pod.OwnerReferences = nil
	pod.Labels = map[string]string{"app": "web", v1beta1.LabelSurged: set.Name}
	pod.Annotations[v1beta1.AnnotationSurgeOrigin] = drain.Origin{ReplicaSet: set.Name, UID: set.UID, Hash: "5d4f", Time: noon}.String()
	return pod
}

func read(t *testing.T, c client.Reader, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	found := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSurgeRemovesAndRecordsLabel(t *testing.T) {
	set := replicaSet(strings.Repeat("a-long-name-", 10) + "5d4f")
	c := cluster(interceptor.Funcs{}, controlled("a", set))
	pod := read(t, c, controlled("a", set))
	pod.Spec.InitContainers = nil // as a slimmed cache has it
	answer, err := Surge(t.Context(), c, pod, noon, "7")
	if err != nil || !answer.Asked {
		t.Fatalf("answer %+v, error %v", answer, err)
	}
	got := read(t, c, pod)
	if _, ok := got.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok || got.Labels["app"] != "web" {
		t.Errorf("labels %v", got.Labels)
	}
	if problems := validation.IsValidLabelValue(got.Labels[v1beta1.LabelSurged]); len(problems) > 0 || !strings.HasPrefix(set.Name, got.Labels[v1beta1.LabelSurged]) {
		t.Errorf("label %q: %v", got.Labels[v1beta1.LabelSurged], problems)
	}
	from, ok := drain.SurgedFrom(got)
	if diff := cmp.Diff(drain.Origin{ReplicaSet: set.Name, UID: "uid-set", Hash: "5d4f", Time: noon, Seen: "7"}, from); !ok || diff != "" {
		t.Errorf("origin (-want +got):\n%s", diff)
	}
	if len(got.Spec.InitContainers) != 1 || got.Annotations["mine"] != "stays" {
		t.Errorf("what was not read is lost: %+v", got)
	}
	if answer, err := Surge(t.Context(), c, got, noon.Add(time.Minute), "7"); err != nil || !answer.Asked {
		t.Errorf("surging it again: answer %+v, error %v", answer, err)
	}
	if from, _ := drain.SurgedFrom(read(t, c, pod)); !from.Time.Equal(noon) {
		t.Errorf("surging it again changed its origin to %+v", from)
	}
}

func TestSurgeResponses(t *testing.T) {
	tests := map[string]struct {
		err  error
		want Answer
		fail bool
	}{
		"accepted":             {want: Answer{Asked: true}},
		"the pod is gone":      {err: apierrors.NewNotFound(pods, "a")}, // an answer Asked would write the status in each pass until the watch shows it
		"the pod changed":      {err: apierrors.NewConflict(pods, "a", errors.New("resourceVersion"))},
		"the server is busy":   {err: apierrors.NewTooManyRequests("busy", 7), want: Answer{RetryAfter: 7 * time.Second}},
		"not allowed":          {err: apierrors.NewForbidden(pods, "a", errors.New("rbac")), want: Answer{Refused: `pods "a" is forbidden: rbac`}},
		"it cannot be reached": {err: errors.New("connection refused"), fail: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster(interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, p client.Patch, _ ...client.PatchOption) error {
					text, err := p.Data(nil)
					if err != nil || !strings.Contains(string(text), `"uid":"uid-a"`) || !strings.Contains(string(text), `"resourceVersion":"7"`) {
						t.Errorf("the request is not tied to the pod as it was read: %s, %v", text, err)
					}
					return tc.err
				},
			})
			pod := controlled("a", replicaSet("web-5d4f"))
			pod.ResourceVersion = "7"
			got, err := Surge(t.Context(), c, pod, noon, "7")
			if (err != nil) != tc.fail {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsWithoutReplicaSetAreNotSurged(t *testing.T) {
	noHash := controlled("a", replicaSet("web"))
	delete(noHash.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	daemon := controlled("a", replicaSet("web"))
	daemon.OwnerReferences[0].Kind = "DaemonSet"
	for _, pod := range []*corev1.Pod{pod(), noHash, daemon} {
		if got, err := Surge(t.Context(), cluster(interceptor.Funcs{}), pod, noon, "7"); err != nil || got != (Answer{}) {
			t.Errorf("answer %+v, error %v", got, err)
		}
	}
}

func TestUndoingSurges(t *testing.T) {
	set := replicaSet("web-5d4f")
	other := replicaSet("web-5d4f")
	other.UID = "uid-of-another"
	going := replicaSet("web-5d4f")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: noon}, []string{"foregroundDeletion"}
	leaving := released("a", set)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/hold"}
	elsewhere := released("a", set)
	elsewhere.Spec.NodeName = "another"
	mangled := released("a", set)
	mangled.Annotations[v1beta1.AnnotationSurgeOrigin] = "{"

	const givenBack, deleted, untouched = "given back", "deleted", "untouched"
	tests := map[string]struct {
		objects []client.Object
		want    string
	}{
		"its ReplicaSet takes it back":                     {[]client.Object{released("a", set), set}, givenBack},
		"its ReplicaSet is gone":                           {[]client.Object{released("a", set)}, deleted},
		"another ReplicaSet has the name":                  {[]client.Object{released("a", set), other}, deleted},
		"its ReplicaSet is being deleted":                  {[]client.Object{released("a", set), going}, deleted},
		"it is leaving already":                            {[]client.Object{leaving, set}, untouched},
		"it is on another node":                            {[]client.Object{elsewhere, set}, untouched},
		"the annotation is mangled, the ReplicaSet there":  {[]client.Object{mangled, set}, givenBack},
		"the annotation is mangled, the ReplicaSet is not": {[]client.Object{mangled}, deleted},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster(interceptor.Funcs{}, tc.objects...)
			for again, want := range []int{1, 0} {
				if tc.want == untouched {
					want = 0
				}
				if undone, err := UndoSurges(t.Context(), c, c, "node"); err != nil || undone != want {
					t.Fatalf("call %d: undone %d, error %v", again+1, undone, err)
				}
			}
			got := &corev1.Pod{}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(tc.objects[0]), got)
			if gone := apierrors.IsNotFound(err); gone != (tc.want == deleted) || !gone && err != nil {
				t.Fatalf("gone %t, error %v", gone, err)
			}
			if tc.want != givenBack {
				return
			}
			if diff := cmp.Diff(set.Spec.Selector.MatchLabels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"mine": "stays"}, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorForOnePodDoesNotStopOthers(t *testing.T) {
	set := replicaSet("web-5d4f")
	stuck := errors.New("a webhook denies it")
	c := cluster(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetName() == "a" {
				return stuck
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return apierrors.NewTooManyRequests("busy", 1)
		},
	}, set, released("a", set), released("b", set), released("c", replicaSet("gone")))
	undone, err := UndoSurges(t.Context(), c, c, "node")
	if undone != 1 || !errors.Is(err, stuck) || !strings.Contains(err.Error(), "default/c: the API server is busy") {
		t.Errorf("undone %d, error %v", undone, err)
	}
	if _, ok := read(t, c, released("b", set)).Labels[v1beta1.LabelSurged]; ok {
		t.Error("the pod after the one that failed is still surged")
	}
}
