//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

func TestReplicaTakesOverFromKilledLeader(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.StopLifeboat(); err != nil {
		t.Fatal(err)
	}
	records := r.watchPods()
	leader := r.replica("one")
	first := r.leader("")
	r.replica("two")
	interrupted, pods := r.stage()

	r.reclaim(interrupted)
	r.reaches(interrupted.ID, v1beta1.PhaseDraining, 30*time.Second)
	killed := time.Now()
	leader.Kill9()
	r.leader(first)
	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, 80*time.Second)
	r.checkDrain(records, interrupted, pods, record)
	after := records.where(func(a podRecord) bool { return a.asked.After(killed) })
	slices.SortFunc(after, func(a, b podRecord) int { return a.asked.Compare(b.asked) })
	if len(after) > 0 { // on a slow machine the leader may have been killed after the last eviction
		t.Logf("FIGURES the other replica evicted its first pod %s after the leader was killed", after[0].asked.Sub(killed).Round(time.Second))
	}
}

// replica starts lifeboatd with leader election, as the chart's ServiceAccount.
func (r *rig) replica(name string) *process.Process {
	r.t.Helper()
	st, dir := r.State(), r.t.TempDir()
	kubeconfig, err := r.ControllerKubeconfig(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	health, err := process.FreeAddress()
	if err != nil {
		r.t.Fatal(err)
	}
	env := os.Environ()
	for _, v := range st.Env() {
		env = append(env, v.Name+"="+v.Value)
	}
	p, err := process.Start(r.t.Context(), process.Options{
		Name: "lifeboatd " + name, Path: lifeboatd, LogFile: filepath.Join(dir, "log"), Env: env,
		Args: []string{
			"controller", "--kubeconfig", kubeconfig, "--queue-url", st.QueueURL, "--leader-elect",
			"--leader-election-namespace", "lifeboat-system", "--metrics-bind-address", "0",
			"--health-probe-bind-address", health,
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			r.t.Logf("the log of replica %s ends:\n%s", name, tail(log, 3000))
		}
		p.Kill9()
	})
	r.until("replica "+name+" to be ready", 30*time.Second, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK, fmt.Errorf("status %s", resp.Status)
	})
	return p
}

// leader waits until a replica other than not holds the lease, and returns its identity.
func (r *rig) leader(not string) string {
	r.t.Helper()
	var lease coordinationv1.Lease
	r.until("a leader", time.Minute, func(ctx context.Context) (bool, error) {
		key := types.NamespacedName{Namespace: "lifeboat-system", Name: "lifeboat-controller"}
		if err := r.client.Get(ctx, key, &lease); err != nil {
			return false, err
		}
		holder := lease.Spec.HolderIdentity
		return holder != nil && *holder != "" && *holder != not, nil
	})
	return *lease.Spec.HolderIdentity
}
