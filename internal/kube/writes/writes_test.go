package writes_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
)

var (
	nodes     = schema.GroupResource{Resource: "nodes"}
	forbidden = apierrors.NewForbidden(nodes, "a", errors.New("ValidatingAdmissionPolicy 'platform' denied request"))
)

// Only what fails again until a person changes something counts as refused.
func TestRefusedWritesAreNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		err               error
		refused, accepted bool
	}{
		"accepted":                          {nil, false, true},
		"by a policy":                       {forbidden, true, false},
		"by a webhook that does not answer": {apierrors.NewInternalError(errors.New(`failed calling webhook "a": context deadline exceeded`)), true, false},
		"a stale version":                   {apierrors.NewConflict(nodes, "a", errors.New("the object has been modified")), false, false},
		"an object that is gone":            {apierrors.NewNotFound(nodes, "a"), false, false},
		"a server that is busy":             {apierrors.NewTooManyRequests("busy", 1), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			base := fake.NewClientBuilder().WithObjects(node("a")).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.err
				},
			}).Build()
			var reported []string
			c := writes.Observe(base, func(kind string) { reported = append(reported, kind) })
			ctx, log := writes.Collect(t.Context())
			if err := c.Patch(ctx, node("a"), client.RawPatch("application/merge-patch+json", []byte("{}"))); !errors.Is(err, tc.err) {
				t.Errorf("the caller gets %v", err)
			}
			refused := log.Refused()
			if (len(refused) == 1) != tc.refused || log.Accepted(writes.Node) != tc.accepted || slices.Equal(reported, []string{writes.Node}) != tc.refused {
				t.Errorf("refused %v, accepted %t, reported %v", refused, log.Accepted(writes.Node), reported)
			}
		})
	}
}

// The first refusal of each kind is kept, those that cost most first, and a success hides none.
func TestRefusalsAreInTheOrderOfTheirCost(t *testing.T) {
	ctx, log := writes.Collect(t.Context())
	writes.Note(ctx, writes.Instance, "i-1", forbidden)
	writes.Note(ctx, writes.Pod, "web-0", nil)
	writes.Note(ctx, writes.Pod, "web-1", forbidden)
	writes.Note(ctx, writes.Pod, "web-2", forbidden)
	writes.Note(ctx, writes.Node, "a", nil)
	var got []string
	for _, r := range log.Refused() {
		got = append(got, r.Kind+" "+r.Name)
	}
	if !slices.Equal(got, []string{"pod web-1", "instance i-1"}) || log.Accepted(writes.Pod) || !log.Accepted(writes.Node) || log.Accepted(writes.Job) {
		t.Errorf("refused %v", got)
	}
	writes.Note(t.Context(), writes.Node, "b", forbidden) // a context without a log
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
