//go:build e2e

package chart_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// inPreviousVersion returns the object as a client of the previous release writes it.
func inPreviousVersion(t *testing.T, kind string, o client.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	older := &unstructured.Unstructured{Object: fields}
	older.SetAPIVersion(v1beta1.GroupVersion.Group + "/v1alpha1")
	older.SetKind(kind)
	return older
}

// TestPreviousVersionHasNoWayRound writes all that an agent may and may not write in the previous
// version of the API: the schema and the admission policies hold there too.
func TestPreviousVersionHasNoWayRound(t *testing.T) {
	s := newStage(t)
	for name, test := range agentEdits(s) {
		t.Run(name, func(t *testing.T) {
			older := inPreviousVersion(t, "NodeNotice", nodeNotice(s.nodeA, test.edit))
			check(t, s.agentA.Create(t.Context(), older, client.DryRunAll), test.want)
		})
	}
	foreign := inPreviousVersion(t, "NodeNotice", nodeNotice(s.nodeB, nil))
	check(t, s.agentA.Create(t.Context(), foreign, client.DryRunAll), "may write the NodeNotice of that node only, not node-b")
}

// TestBothVersionsReadTheSameObject checks that what one version writes is complete in the other.
func TestBothVersionsReadTheSameObject(t *testing.T) {
	s := newStage(t)
	written := nodeNotice(s.nodeA, nil)
	older := inPreviousVersion(t, "NodeNotice", written)
	if err := s.agentA.Create(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, older) })
	var read v1beta1.NodeNotice
	if err := s.agentA.Get(t.Context(), client.ObjectKeyFromObject(older), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Spec.Notices) != 1 || read.Spec.Notices[0].ID != written.Spec.Notices[0].ID || !read.Spec.Notices[0].Deadline.Equal(written.Spec.Notices[0].Deadline) {
		t.Errorf("v1beta1 reads %+v", read.Spec)
	}
	edited := read.DeepCopy()
	edited.Spec.Notices[0].Withdrawn = true
	if err := s.agentA.Patch(t.Context(), edited, client.MergeFrom(&read)); err != nil {
		t.Fatal(err)
	}
	if err := s.agentA.Get(t.Context(), client.ObjectKeyFromObject(older), older); err != nil {
		t.Fatal(err)
	}
	notices, _, err := unstructured.NestedSlice(older.Object, "spec", "notices")
	if err != nil || len(notices) != 1 || notices[0].(map[string]any)["withdrawn"] != true {
		t.Errorf("v1alpha1 reads %v, %v", notices, err)
	}
}
