package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

const platformPolicy = `nodes "db-1" is forbidden: ValidatingAdmissionPolicy 'platform-nodes' with binding 'platform-nodes' denied request: no`

func deniedByPlatform() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: platformPolicy}}
}

// A policy that refuses the cordon of one pool is found by a dry run, which changes nothing.
func TestRefusedCordonOfOnePoolIsBroken(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var nodes []corev1.Node
	var objects []client.Object
	for _, name := range []string{"web-1", "web-2", "db-1"} {
		pool, _, _ := strings.Cut(name, "-")
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.sh/nodepool": pool}}}
		objects, nodes = append(objects, n), append(nodes, *n)
	}
	var tried []string
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := client.PatchOptions{}
			options.ApplyOptions(opts)
			if !slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
				t.Errorf("%s is changed", o.GetName())
			}
			tried = append(tried, o.GetName())
			if strings.HasPrefix(o.GetName(), "db") {
				return deniedByPlatform()
			}
			return nil
		},
	}).Build()
	found := tryWrites(t.Context(), c, nodes)
	if !slices.Equal(tried, []string{"web-1", "db-1"}) {
		t.Errorf("tried %v, want one node of each pool", tried)
	}
	if len(found) != 1 || found[0].Severity != finding.Broken || found[0].ID != admission.Refused || !strings.Contains(found[0].Problem, "platform-nodes") {
		t.Errorf("found %+v", found)
	}
}

// A policy of others that refuses the doctor's own test request is named, and not Lifeboat's.
func TestMaskedPolicyNamesWhatRefused(t *testing.T) {
	f := verdict(admission.Controller, deniedByPlatform())
	if f == nil || !strings.Contains(f.Problem, "another policy or webhook refused the test request") || !strings.Contains(f.Problem, "platform-nodes") {
		t.Errorf("%+v", f)
	}
}
