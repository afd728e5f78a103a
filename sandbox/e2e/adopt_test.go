//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

// The environment variables of the test: how many cut-overs and ways back, 3 each if not set, and the seed of a
// run to repeat.
const (
	cutOversVariable = "LIFEBOAT_CUTOVERS"
	cutOverSeed      = "LIFEBOAT_CUTOVER_SEED"
)

// TestCutOverLosesNoNotice moves the handling of interruptions from Karpenter to Lifeboat and back, with
// `lifeboat adopt karpenter`. In each of these, EC2 reclaims a node at a random moment: before, during or after the
// change. Before the cut-over and after the way back, Lifeboat does not run.
func TestCutOverLosesNoNotice(t *testing.T) {
	rounds, seed := 3, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv(cutOversVariable)); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv(cutOverSeed), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%s=%d %s=%d", cutOversVariable, rounds, cutOverSeed, seed)
	r := newCutOverRig(t, seed)
	for i := range rounds {
		r.during(fmt.Sprintf("cut-over %d", i), &r.out, r.cutOver)
		r.during(fmt.Sprintf("way back %d", i), &r.back, r.wayBack)
	}
	for _, c := range r.reclaims {
		r.settle(c)
		if problem := r.problemOf(c); problem != "" {
			t.Errorf("%s, %s after its start: %s", c.when, c.after.Round(time.Millisecond), problem)
		}
	}
	if len(r.reclaims) != 2*rounds {
		t.Errorf("%d reclaims in %d changes", len(r.reclaims), 2*rounds)
	}
	by := map[string]int{}
	for _, c := range r.reclaims {
		by[r.handler(c)]++
	}
	t.Logf("%d reclaims, each pod with its grace; handled by: %v", len(r.reclaims), by)
}

// The twin: Karpenter's queue goes first, as a person may do it by hand. A notice before Lifeboat starts is lost, and
// the check of the test above says so. `lifeboat adopt karpenter apply` refuses this order.
func TestCutOverInWrongOrderLosesNotice(t *testing.T) {
	t.Parallel()
	r := newCutOverRig(t, 1)
	if out, code := r.adopt("apply", "--yes"); code != 1 {
		t.Errorf("exit code %d, and Lifeboat does not run:\n%s", code, out)
	}
	if queue := r.running(); queue != r.queue {
		t.Errorf("Karpenter reads %q", queue)
	}
	r.patchQueue("")
	r.waitQueue("")
	in := r.target()
	c := r.reclaimNow(in, "with the wrong order", time.Now(), 20*time.Second)
	r.until("EC2 to take the instance", time.Minute, func(context.Context) (bool, error) {
		return time.Now().After(c.deadline), nil
	})
	if err := r.StartLifeboat(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.settle(c)
	if problem := r.problemOf(c); problem == "" {
		t.Error("no program received the notice, and the check finds no problem")
	} else {
		t.Logf("as it must be: %s", problem)
	}
}

// cutOverRig is a cluster in which Karpenter has a Deployment, whose pods decide which queue the process reads.
type cutOverRig struct {
	*rig

	rnd   *rand.Rand
	queue string
	pods  *podRecords
	// out and back are how long the last change took, until a first one an estimate.
	out, back time.Duration
	reclaims  []reclaimed

	mu sync.Mutex // guards process and failed
	// process is the queue of the running process.
	process string
	failed  error
}

// reclaimed is a node that EC2 reclaims.
type reclaimed struct {
	ec2.Instance
	when     string
	after    time.Duration
	deadline time.Time
	// pods are those on the node at the notice.
	pods []types.UID
}

func newCutOverRig(t *testing.T, seed uint64) *cutOverRig {
	t.Helper()
	const queue = "karpenter"
	r := &cutOverRig{
		rig: newRigWith(t, sandbox.Options{Karpenter: true, KarpenterQueue: queue, KarpenterOwnQueue: true, Unkind: seed | 1}),
		rnd: rand.New(rand.NewPCG(seed, 25)), queue: queue, process: queue, out: 10 * time.Second, back: 10 * time.Second,
	}
	if err := r.StopLifeboat(); err != nil {
		t.Fatal(err)
	}
	nodeClass, pool, err := karpenter.Defaults(30 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	r.apply(nodeClass, pool)
	r.pods = r.watchPods()
	r.apply(spreadWeb(4))
	r.untilRunning("web", 4)
	host := r.launchAll(ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.xlarge", Min: 1, Max: 1})[0]
	d := otherTool("karpenter", "INTERRUPTION_QUEUE", queue)
	d.Labels["app.kubernetes.io/version"] = "1.14.1"
	d.Spec.Template.Spec.NodeName = host.PrivateDNSName
	r.apply(d)
	r.until("Karpenter's Deployment to be available", time.Minute, func(ctx context.Context) (bool, error) {
		err := r.client.Get(ctx, client.ObjectKeyFromObject(d), d)
		return d.Status.AvailableReplicas == 1, err
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.runPods(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return r
}

// spreadWeb is a Deployment with one pod a node.
func spreadWeb(replicas int32) *appsv1.Deployment {
	web := deployment("web", replicas, 3*time.Second)
	spec := &web.Spec.Template.Spec
	spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "default"}
	spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: web.Spec.Selector, TopologyKey: corev1.LabelHostname,
	}}}}
	return web
}

// runPods does for the pods of Karpenter's Deployment what a kubelet does: the process has the queue of the pod.
func (r *cutOverRig) runPods(ctx context.Context) {
	for ctx.Err() == nil {
		queue, found := r.wantedQueue(ctx)
		r.mu.Lock()
		is := r.process
		r.mu.Unlock()
		if found && queue != is {
			err := r.SetKarpenterQueue(ctx, queue)
			r.mu.Lock()
			r.process, r.failed = queue, err
			r.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// wantedQueue is the queue of the Deployment, once a pod runs with it.
func (r *cutOverRig) wantedQueue(ctx context.Context) (string, bool) {
	var d appsv1.Deployment
	var pods corev1.PodList
	if r.client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "karpenter"}, &d) != nil ||
		r.client.List(ctx, &pods, client.InNamespace("kube-system"), client.MatchingLabels(d.Spec.Selector.MatchLabels)) != nil {
		return "", false
	}
	want := d.Spec.Template.Spec.Containers[0].Env[0].Value
	return want, slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && p.Spec.Containers[0].Env[0].Value == want
	})
}

// running is the queue that the process of Karpenter reads.
func (r *cutOverRig) running() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		r.t.Fatalf("restarting Karpenter: %v", r.failed)
	}
	return r.process
}

func (r *cutOverRig) waitQueue(queue string) {
	r.t.Helper()
	r.until(fmt.Sprintf("Karpenter to read the queue %q", queue), 2*time.Minute, func(context.Context) (bool, error) { return r.running() == queue, nil })
}

// adopt runs `lifeboat adopt karpenter` as an administrator of the cluster and the account.
func (r *cutOverRig) adopt(args ...string) (string, int) {
	r.t.Helper()
	return r.cli(append(append([]string{"adopt", "karpenter"}, args...), "--sandbox="+r.State().Name, "--cluster", r.Wiring().Cluster)...)
}

// cutOver starts Lifeboat, and lets it take over.
func (r *cutOverRig) cutOver() {
	r.t.Helper()
	if err := r.StartLifeboat(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.until("Lifeboat to take over", 2*time.Minute, func(context.Context) (bool, error) {
		out, code := r.adopt("apply", "--yes")
		return code == 0, errors.New(out)
	})
	r.waitQueue("")
}

// wayBack gives the handling back, and stops Lifeboat.
func (r *cutOverRig) wayBack() {
	r.t.Helper()
	if out, code := r.adopt("undo", "--yes"); code != 0 {
		r.t.Fatalf("exit code %d:\n%s", code, out)
	}
	r.waitQueue(r.queue) // a real pod is ready, and so undo ends, only then
	if err := r.StopLifeboat(); err != nil {
		r.t.Fatal(err)
	}
}

// during makes a change, and lets EC2 reclaim a node at a random moment of it. last is how long the change took before.
func (r *cutOverRig) during(when string, last *time.Duration, change func()) {
	r.t.Helper()
	in := r.target()
	after := time.Duration(r.rnd.Float64() * 1.2 * float64(*last))
	began := time.Now()
	done := make(chan reclaimed, 1)
	go func() {
		time.Sleep(after) // the moment itself is what varies
		done <- r.reclaimNow(in, when, began, 0)
	}()
	change()
	*last = time.Since(began)
	c := <-done
	r.t.Logf("%s took %s, and EC2 reclaimed %s after %s", when, last.Round(time.Millisecond), in.ID, c.after.Round(time.Millisecond))
	r.reclaims = append(r.reclaims, c)
}

// reclaimNow lets EC2 reclaim an instance; notice is the time until its end, 0: two minutes.
func (r *cutOverRig) reclaimNow(in ec2.Instance, when string, began time.Time, notice time.Duration) reclaimed {
	c := reclaimed{Instance: in, when: when, after: time.Since(began), deadline: time.Now().Add(2 * time.Minute)}
	if notice > 0 {
		c.deadline = time.Now().Add(notice)
	}
	for _, p := range r.podsOn(in) {
		if p.Namespace == metav1.NamespaceDefault {
			c.pods = append(c.pods, p.UID)
		}
	}
	if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{Notice: notice}); err != nil {
		r.t.Error(err)
	}
	return c
}

// target waits for a node of Karpenter's with a running pod, that nothing interrupts.
func (r *cutOverRig) target() (found ec2.Instance) {
	r.t.Helper()
	r.until("a node to reclaim", 3*time.Minute, func(ctx context.Context) (bool, error) {
		var free []ec2.Instance
		for _, in := range r.EC2().Instances() {
			taken := slices.ContainsFunc(r.reclaims, func(c reclaimed) bool { return c.ID == in.ID })
			if in.State != ec2.Running || in.Lifecycle() != "spot" || taken {
				continue
			}
			node, err := r.node(ctx, in)
			if err != nil || node.Labels["karpenter.sh/initialized"] != "true" || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || node.DeletionTimestamp != nil {
				continue
			}
			if slices.ContainsFunc(r.podsOn(in), func(p corev1.Pod) bool {
				return p.Labels["app"] == "web" && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
			}) {
				free = append(free, in)
			}
		}
		if len(free) == 0 {
			return false, errors.New("none is free")
		}
		found = free[r.rnd.IntN(len(free))]
		return true, nil
	})
	return found
}

// settle waits until the pods of a reclaimed node are gone.
func (r *cutOverRig) settle(c reclaimed) {
	r.t.Helper()
	timelimit.Until(r.t, "the pods of "+c.ID+" to be gone", 5*time.Minute, r.slow, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(r.pods.of(c.pods), func(p podRecord) bool { return p.gone.IsZero() }), nil
	})
}

// problemOf says which pod lost its grace; empty: none did.
func (r *cutOverRig) problemOf(c reclaimed) string {
	all := r.pods.of(c.pods)
	if len(all) == 0 || len(all) != len(c.pods) {
		return fmt.Sprintf("%d pods were on the node, and %d were seen", len(c.pods), len(all))
	}
	for _, p := range all {
		switch {
		case p.asked.IsZero():
			return p.name + " was not asked to stop"
		case p.asked.Add(3 * time.Second).After(c.deadline):
			return fmt.Sprintf("%s was asked to stop %s before the power went", p.name, c.deadline.Sub(p.asked).Round(time.Second))
		case p.grace != 30:
			return fmt.Sprintf("%s got %d s instead of 30", p.name, p.grace)
		case p.gone.After(c.deadline):
			return fmt.Sprintf("%s ended %s after the power went", p.name, p.gone.Sub(c.deadline).Round(time.Second))
		}
	}
	return ""
}

// handler says which program deleted the NodeClaim.
func (r *cutOverRig) handler(c reclaimed) string {
	in, err := r.record(r.t.Context(), c.ID)
	switch {
	case err != nil:
		return err.Error()
	case in == nil:
		return "Karpenter, without Lifeboat"
	}
	if p := drainOf(in).Replacement; p != nil && p.Reason == "KarpenterIsDeleting" {
		return "Karpenter, before Lifeboat"
	}
	return "Lifeboat"
}

// of returns the records of pods.
func (l *podRecords) of(uids []types.UID) []podRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []podRecord
	for _, uid := range uids {
		if a := l.pods[uid]; a != nil {
			found = append(found, *a)
		}
	}
	return found
}

// patchQueue changes the variable of Karpenter's Deployment, as a person does.
func (r *cutOverRig) patchQueue(queue string) {
	r.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter"}}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"INTERRUPTION_QUEUE","value":%q}]}]}}}}`, queue)
	if err := r.client.Patch(r.t.Context(), d, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		r.t.Fatal(err)
	}
}
