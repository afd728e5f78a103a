//go:build overload

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

const (
	// noticeTime is the limit from a spot notice to the request that the last pod stops, without what
	// the API server takes for the requests, on an idle machine.
	noticeTime = 5 * time.Second
	// maxWrites is how many writes for others may come before the last eviction: ten of each
	// concurrent pass.
	maxWrites = 10 * 64
)

// TestOverload makes loads of one kind and then of all kinds, while EC2 reclaims nodes (`make
// overload`). lifeboatd may make few other writes before it evicts the pods of such a node, and must
// not use more memory than the chart allows.
func TestOverload(t *testing.T) {
	busy := machineLoad(t)
	t.Logf("%.1f other processes for each core: time limits are multiplied by that", busy)
	for _, only := range []string{"pods with large annotations", "policies", "large budgets", "Interruptions", "batches of ten forged messages", ""} {
		t.Run(cmp.Or(only, "all"), func(t *testing.T) {
			args, audit := auditArgs(t, overloadAudit)
			r := newRigWith(t, sandbox.Options{APIServerArgs: args})
			r.audit = audit
			loads := r.loads()
			if only != "" {
				loads = slices.DeleteFunc(loads, func(l *load) bool { return l.name != only })
			}
			r.overload(loads, busy)
		})
	}
}

// machineLoad is how many processes run for each core (proc_loadavg(5)) before the test makes its own load.
func machineLoad(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	one, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(one, 64)
	if err != nil {
		t.Fatal(err)
	}
	return load / float64(runtime.NumCPU())
}

// overloadAudit makes the API server log what lifeboatd writes.
const overloadAudit = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create, update, patch, delete], users: ["system:serviceaccount:` + chart.Namespace + ":" + chart.ControllerAccount + `"]}
- {level: None}
`

// overload makes some loads while EC2 reclaims nodes.
func (r *rig) overload(loads []*load, busy float64) {
	t := r.t
	pods := r.watchPods()
	victims := r.launch(4)
	for _, in := range victims {
		r.pinTwo(in)
	}
	memory := r.watchMemory()
	r.noticeIsHandled(victims[0], pods, "before the loads", busy)
	memory.log("before the loads")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	var all sync.WaitGroup
	for _, l := range loads {
		all.Go(func() { l.run(ctx, t) })
	}
	for i, share := range []float64{0.1, 0.5, 0.9} {
		what := fmt.Sprintf("%.0f %% of the loads", 100*share)
		r.until(what, 20*time.Minute, func(context.Context) (bool, error) {
			for _, l := range loads {
				if float64(l.done.Load()) < share*float64(l.n) {
					return false, fmt.Errorf("%d of %d %s", l.done.Load(), l.n, l.name)
				}
			}
			return true, nil
		})
		r.noticeIsHandled(victims[i+1], pods, "with "+what, busy)
		memory.log("with " + what)
	}
	all.Wait()
	for _, l := range loads {
		t.Logf("%6d %s", l.done.Load(), l.name)
	}
	t.Logf("all loads took %s", time.Since(start).Round(time.Second))
	memory.log("after the loads")
	memory.check()
}

// pinTwo creates two pods on an instance's node.
func (r *rig) pinTwo(in ec2.Instance) {
	r.t.Helper()
	for i := range 2 {
		spec := template(map[string]string{"app": "genuine"}, time.Second)
		spec.Spec.NodeName = in.PrivateDNSName
		r.apply(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("genuine-%s-%d", in.ID, i), Labels: spec.Labels, Annotations: spec.Annotations},
			Spec:       spec.Spec,
		})
	}
	r.waitPods(in, 2)
}

// noticeIsHandled has EC2 reclaim an instance, and checks what lifeboatd does before its pods are asked
// to stop, and when.
func (r *rig) noticeIsHandled(in ec2.Instance, pods *podRecords, when string, busy float64) {
	r.t.Helper()
	start := time.Now()
	if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.until("the pods of "+in.PrivateDNSName+" to be asked to stop", time.Minute, func(context.Context) (bool, error) {
		return len(pods.asked(in)) == 2, fmt.Errorf("%d were", len(pods.asked(in)))
	})
	asked := time.Since(start)
	var w writes
	r.until("both evictions to be in the audit log", time.Minute, func(context.Context) (bool, error) {
		w = r.writesFor(in)
		return w.evictions == 2, fmt.Errorf("%d are", w.evictions)
	})
	since := func(at time.Time) time.Duration { return at.Sub(start).Round(time.Millisecond) }
	r.t.Logf("%s: recorded after %s, cordoned after %s, evicted after %s, of which the API server took %s; %d writes meanwhile, %d in all",
		when, since(w.recorded), since(w.cordoned), asked.Round(time.Millisecond), w.waited.Round(time.Millisecond), w.meanwhile, w.all)
	if w.recorded.IsZero() || w.cordoned.IsZero() || w.meanwhile > maxWrites {
		r.t.Errorf("%s: %d writes for others between the record and the last eviction, want at most %d", when, w.meanwhile, maxWrites)
	}
	if limit := timelimit.Stretch(noticeTime, max(r.slow, busy)); asked-w.waited > limit {
		r.t.Errorf("%s: pods were asked to stop after %s, of which the API server took %s; limit %s without that", when, asked, w.waited, limit)
	}
}

// writes are what lifeboatd wrote for one spot notice.
type writes struct {
	recorded, cordoned time.Time     // when the requests were answered
	waited             time.Duration // how long the API server took for those that follow each other
	meanwhile, all     int           // writes from the record to the last eviction, and in all
	evictions          int
}

// writesFor reads from the audit log what lifeboatd wrote for an instance.
func (r *rig) writesFor(in ec2.Instance) writes {
	r.t.Helper()
	var w writes
	var eviction time.Duration // the requests for the pods are sent at the same time
	first, last := 0, 0
	requests := readAudit(r.t, r.audit)[chart.ControllerAccount]
	for i, q := range requests {
		took := q.StageTimestamp.Sub(q.RequestReceivedTimestamp)
		switch what := q.String(); {
		case what == v1beta1.GroupVersion.Group+"/interruptions create" && q.ObjectRef.Name == in.ID:
			w.recorded, first = q.StageTimestamp, i
			w.waited += took
		case what == "/nodes patch" && q.ObjectRef.Name == in.PrivateDNSName && w.cordoned.IsZero():
			w.cordoned = q.StageTimestamp
			w.waited += took
		case what == v1beta1.GroupVersion.Group+"/interruptions/status patch" && q.ObjectRef.Name == in.ID && last == 0:
			w.waited += took
		case what == "/pods/eviction create" && strings.HasPrefix(q.ObjectRef.Name, "genuine-"+in.ID):
			eviction, last = max(eviction, took), i
			w.evictions++
		}
	}
	w.waited += eviction
	w.meanwhile, w.all = last-first, len(requests)
	return w
}
