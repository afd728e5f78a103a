package workloads

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// pagedReader behaves like an API server whose continue token expires in the middle
// of a list of pods.
type pagedReader struct {
	client.Reader
	pods   []corev1.Pod
	asked  []string
	forget bool
}

func (r *pagedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return r.Reader.List(ctx, list)
	}
	r.asked = append(r.asked, o.Continue)
	if o.Limit != pageSize {
		return fmt.Errorf("limit is %d", o.Limit)
	}
	if o.Continue == "second" && r.forget {
		r.forget = false
		err := apierrors.NewResourceExpired("too old")
		err.ErrStatus.Continue = "second, again"
		return err
	}
	pods.Items = r.pods[:1]
	if o.Continue == "" {
		pods.Continue = "second"
	} else {
		pods.Items = r.pods[1:]
	}
	return nil
}

func TestScanReadsPageByPage(t *testing.T) {
	reader := &pagedReader{
		Reader: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
			node("spot-1", map[string]string{"karpenter.sh/capacity-type": "spot"}), deployment(1, ""), pdb("p", 1, 1, maxUnavailable("0")),
		).Build(),
		pods:   []corev1.Pod{*pod("a", grace(600)), *pod("b")},
		forget: true,
	}
	s, err := Scan(t.Context(), reader, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "second", "second, again"}, reader.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	want := []string{
		"warning grace-exceeds-notice deployment shop/web", "warning budget-never-allows PodDisruptionBudget shop/p",
		"warning single-replica deployment shop/web",
	}
	if diff := cmp.Diff(want, lines(s.Findings())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type deniedReader struct{ client.Reader }

func (deniedReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewForbidden(policyv1.Resource("x"), "", fmt.Errorf("no"))
}

func TestScanNamesDeniedResource(t *testing.T) {
	if _, err := Scan(t.Context(), deniedReader{}, Options{}); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
}

// A hundred thousand pods on five thousand nodes, of two thousand workloads with one
// budget each. retained-MB is the size of the survey at the end.
func BenchmarkSurvey(b *testing.B) {
	for range b.N {
		s := New(Options{})
		for i := range 5000 {
			s.AddNode(node(fmt.Sprintf("node-%d", i), map[string]string{"karpenter.sh/capacity-type": []string{"spot", "on-demand"}[i%2]}))
		}
		for i := range 2000 {
			d := deployment(50, "")
			d.Namespace, d.Name = fmt.Sprintf("ns-%d", i%200), fmt.Sprintf("web-%d", i)
			s.AddDeployment(d)
			p := pdb(d.Name, 50, 50)
			p.Namespace, p.Spec.Selector.MatchLabels["app"] = d.Namespace, d.Name
			s.AddBudget(p)
		}
		for i := range 100_000 {
			n := i % 2000
			p := pod(fmt.Sprintf("web-%d-%d", n, i), grace(600), on(fmt.Sprintf("node-%d", i%5000)))
			p.UID, p.Namespace = types.UID(p.Name), fmt.Sprintf("ns-%d", n%200)
			p.Labels["app"], p.OwnerReferences = fmt.Sprintf("web-%d", n), []metav1.OwnerReference{{
				Kind: "ReplicaSet", Name: fmt.Sprintf("web-%d-abc", n), Controller: p.OwnerReferences[0].Controller,
			}}
			s.AddPod(p)
		}
		found := len(s.Findings())
		b.StopTimer()
		b.ReportMetric(retained(s), "retained-MB")
		b.ReportMetric(float64(found), "findings")
		b.StartTimer()
	}
}

// retained returns the heap size in megabytes with the survey, minus that without.
func retained(s *Survey) float64 {
	var with, without runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&with)
	*s = Survey{}
	runtime.GC()
	runtime.ReadMemStats(&without)
	return float64(with.HeapAlloc-without.HeapAlloc) / (1 << 20)
}
