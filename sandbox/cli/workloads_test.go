package cli

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func TestUpAppliesOrdinaryWorkloads(t *testing.T) {
	kinds := map[string]int{}
	cluster := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			kinds[obj.GetObjectKind().GroupVersionKind().Kind]++
			return nil
		},
	}).Build()
	for _, tc := range []struct {
		args []string
		want int
	}{{[]string{"up"}, 0}, {[]string{"up", "--workloads"}, 3}} {
		m := &testHarness{up: map[string]sandbox.Status{}}
		h := &harness{t: t, setup: func(s *session) {
			m.use(s)
			s.connect = func(sandbox.State) (client.Client, error) { return cluster, nil }
		}}
		if r := h.run(t.Context(), tc.args...); r.code != command.ExitOK {
			t.Fatalf("%v: exit code %d: %s", tc.args, r.code, r.err)
		}
		if kinds["Deployment"] != tc.want {
			t.Errorf("%v made %d Deployments, want %d", tc.args, kinds["Deployment"], tc.want)
		}
	}
	for _, kind := range []string{"StatefulSet", "PersistentVolume", "DaemonSet", "Job", "PodDisruptionBudget", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s: %v", kind, kinds)
		}
	}
}
