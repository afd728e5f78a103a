//go:build e2e

package chart_test

import (
	"maps"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// claimCRD is Karpenter's NodeClaim, as far as the policy is concerned.
const claimCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: nodeclaims.karpenter.sh
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/karpenter"}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: NodeClaim, plural: nodeclaims, singular: nodeclaim}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const (
	guarded     = "a policy of Lifeboat delays or refuses the drain of this node"
	termination = "karpenter.sh/nodeclaim-termination-timestamp"
)

// claims writes NodeClaims. The lease is its clock.
type claims struct {
	t         *testing.T
	admin     client.Client
	karpenter client.Client
	other     client.Client
	lease     *coordinationv1.Lease
}

func newClaims(t *testing.T) *claims {
	t.Helper()
	s := &claims{t: t, admin: admin(t), karpenter: impersonated(t, "system:serviceaccount:kube-system:karpenter"), other: impersonated(t, "dana@example.com")}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(claimCRD), &crd.Object); err != nil {
		t.Fatal(err)
	}
	if err := applyAll(t.Context(), s.admin, []*unstructured.Unstructured{crd}); err != nil {
		t.Fatal(err)
	}
	s.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter-leader-election"}}
	t.Cleanup(func() { remove(t, crd); remove(t, s.lease) })
	until(t, "the kind to be served", func() (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("karpenter.sh/v1")
		list.SetKind("NodeClaimList")
		err := s.admin.List(t.Context(), list)
		return err == nil, err
	})
	return s
}

// impersonated returns a client with all permissions under another name.
func impersonated(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	return clientOf(t, config)
}

// create creates a NodeClaim.
func (s *claims) create(name string, change func(o map[string]any)) *unstructured.Unstructured {
	s.t.Helper()
	o := map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{v1beta1.AnnotationGuardedUntil: "2026-05-11T08:30:00Z"}},
		"spec":     map[string]any{"expireAfter": "720h"},
		"status":   conditions("Registered", "Initialized"),
	}
	if change != nil {
		change(o)
	}
	u := &unstructured.Unstructured{Object: o}
	status := u.DeepCopy()
	if err := s.admin.Create(s.t.Context(), u); err != nil {
		s.t.Fatal(err)
	}
	status.SetResourceVersion(u.GetResourceVersion())
	if err := s.admin.Status().Update(s.t.Context(), status); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { remove(s.t, u) })
	return status
}

func conditions(types ...string) map[string]any {
	var all []any
	for _, typ := range types {
		all = append(all, map[string]any{"type": typ, "status": "True"})
	}
	return map[string]any{"conditions": all}
}

// at sets the clock.
func (s *claims) at(now time.Time) {
	s.t.Helper()
	renewed := metav1.NewMicroTime(now)
	lease := s.lease.DeepCopy()
	lease.Spec.RenewTime = &renewed
	remove(s.t, s.lease)
	lease.ResourceVersion = ""
	if err := s.admin.Create(s.t.Context(), lease); err != nil {
		s.t.Fatal(err)
	}
}

func (s *claims) remove(by client.Client, claim client.Object) error {
	return by.Delete(s.t.Context(), claim, client.DryRunAll)
}

func (s *claims) annotate(by client.Client, claim *unstructured.Unstructured, key, value string) error {
	edited := claim.DeepCopy()
	annotations := maps.Clone(edited.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	edited.SetAnnotations(annotations)
	return by.Patch(s.t.Context(), edited, client.MergeFrom(claim), client.DryRunAll)
}

func TestKarpenterGuardRefusesInterruptions(t *testing.T) {
	s := newClaims(t)
	now := time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)
	claim := s.create("guarded", nil)
	s.at(now)
	until(t, "the guard to be in force", func() (bool, error) {
		err := s.remove(s.karpenter, claim)
		return err != nil, err
	})
	annotations := func(values map[string]any) func(map[string]any) {
		return func(o map[string]any) {
			meta, _ := o["metadata"].(map[string]any)
			meta["annotations"] = values
		}
	}
	for name, test := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"a registered node":         {nil, guarded},
		"no annotation":             {annotations(nil), ""},
		"a guard that ended":        {annotations(map[string]any{v1beta1.AnnotationGuardedUntil: "2026-05-11T08:13:59Z"}), ""},
		"an unreadable guard":       {annotations(map[string]any{v1beta1.AnnotationGuardedUntil: "tomorrow"}), ""},
		"consolidation or drift":    {func(o map[string]any) { o["status"] = conditions("Registered", "DisruptionReason") }, ""},
		"a launch without a node":   {func(o map[string]any) { o["status"] = conditions("Launched") }, ""},
		"no status":                 {func(o map[string]any) { delete(o, "status") }, ""},
		"expiry":                    {func(o map[string]any) { o["spec"] = map[string]any{"expireAfter": "1ns"} }, ""},
		"a node that never expires": {func(o map[string]any) { o["spec"] = map[string]any{"expireAfter": "Never"} }, guarded},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "expiry" {
				s.at(time.Now().Add(time.Minute)) // API servers set the creation time
				defer s.at(now)
			}
			claim := s.create("c", test.change)
			defer remove(t, claim)
			if name == "expiry" {
				until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
				edited := claim.DeepCopy()
				edited.SetAnnotations(map[string]string{v1beta1.AnnotationGuardedUntil: until})
				if err := s.admin.Patch(t.Context(), edited, client.MergeFrom(claim)); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, func() error { return s.remove(s.karpenter, claim) }, test.want)
			check(t, s.remove(s.other, claim), "")
		})
	}
	check(t, s.annotate(s.karpenter, claim, termination, "2026-05-11T08:14:00Z"), guarded)
	check(t, s.annotate(s.other, claim, termination, "2026-05-11T08:14:00Z"), "")
	check(t, s.annotate(s.karpenter, claim, "karpenter.sh/nodepool-hash", "1"), "")

	s.at(now.Add(time.Hour)) // the controller has not renewed the guard
	settle(t, func() error { return s.remove(s.karpenter, claim) }, "")
	s.at(now)
	settle(t, func() error { return s.remove(s.karpenter, claim) }, guarded)
	remove(t, s.lease) // no clock
	settle(t, func() error { return s.remove(s.karpenter, claim) }, "")
}

// settle waits for the result: the API server reads the lease from a watch.
func settle(t *testing.T, do func() error, want string) {
	t.Helper()
	until(t, "the result: "+want, func() (bool, error) {
		err := do()
		return (err == nil) == (want == ""), err
	})
	check(t, do(), want)
}
