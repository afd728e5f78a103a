//go:build skew

package skew

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// The twenty interruptions, by the phase in which they wait for the end of the test, and the nodes
// that EC2 reclaims meanwhile, one for each step.
const (
	draining    = 6 // a budget holds a pod of each
	approvals   = 4 // a person must approve
	hooks       = 4 // a Job runs
	plans       = 4 // a stop in twelve days
	replacing   = 2 // EC2 has no capacity for the replacements
	reclaimed   = 5
	spares      = 2
	poolDrain   = "drain"
	poolHook    = "hook"
	poolStep    = "step"
	poolSpare   = "spare"
	poolApprove = "approval"
	poolPlan    = "plan"
)

// fleet has the instances by their parts in the test.
type fleet struct {
	draining, approvals, hooks, plans, replacing, steps []ec2.Instance
	planned                                             map[string]string // EC2's scheduled events, by instance
}

// twenty are the instances that are interrupted before the upgrade.
func (f fleet) twenty() []ec2.Instance {
	var all []ec2.Instance
	for _, some := range [][]ec2.Instance{f.draining, f.approvals, f.hooks, f.plans, f.replacing} {
		all = append(all, some...)
	}
	return all
}

// stage launches the nodes with their pods.
func (w *world) stage() {
	w.copySchemas()
	w.applyManifests()
	f := &w.fleet
	f.draining, f.approvals = w.launch(poolDrain, draining), w.launch(poolApprove, approvals)
	f.hooks, f.plans, f.steps = w.launch(poolHook, hooks), w.launch(poolPlan, plans), w.launch(poolStep, reclaimed)
	w.deploy("free", poolDrain, draining)
	w.deploy("held", poolDrain, draining)
	w.deploy("approval", poolApprove, approvals)
	w.deploy("hook", poolHook, hooks)
	w.deploy("step", poolStep, reclaimed)
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &intstr.IntOrString{}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}},
		},
	})
	for _, in := range f.draining {
		w.waitPods(in, 2)
	}
	w.launch(poolSpare, spares)
	w.stageKarpenter()
	w.agentsRun(w.older)
}

// stageKarpenter lets Karpenter launch one node for each of its pods.
func (w *world) stageKarpenter() {
	nodeClass, nodePool, err := karpenter.Defaults(time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	w.create(nodeClass, nodePool)
	d := deployment("burst", replacing)
	d.Spec.Template.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": nodePool.GetName()}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: d.Spec.Selector, TopologyKey: corev1.LabelHostname}},
	}}
	w.create(d)
	w.waitReady("burst", replacing)
	for _, in := range w.EC2().Instances() {
		if in.Tags["karpenter.sh/nodepool"] != "" {
			w.fleet.replacing = append(w.fleet.replacing, in)
		}
	}
	if n := len(w.fleet.replacing); n != replacing {
		w.t.Fatalf("Karpenter launched %d nodes, want %d", n, replacing)
	}
}

// launch starts spot instances with a label on their nodes, and waits until the nodes are Ready.
func (w *world) launch(pool string, n int) []ec2.Instance {
	w.t.Helper()
	instances, err := w.EC2().Launch(ec2.LaunchInput{
		ImageID: "ami-0123456789abcdef0", Type: "m5.xlarge", Min: n, Max: n, Spot: &ec2.SpotOptions{},
		Tags: map[string]string{machines.TagNodeLabels: "pool=" + pool},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, in := range instances {
		w.until("node "+in.PrivateDNSName+" to be Ready", time.Minute, func(ctx context.Context) (bool, error) {
			node := &corev1.Node{}
			if err := w.client.Get(ctx, client.ObjectKey{Name: in.PrivateDNSName}, node); err != nil {
				return false, err
			}
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
	}
	return instances
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.client.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels, grace := map[string]string{"app": name}, int64(30)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{kwok.StopSecondsAnnotation: "3"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")},
					}}},
				},
			},
		},
	}
}

// deploy runs one pod on each node of a pool. Its successors may run on spare nodes.
func (w *world) deploy(name, pool string, replicas int32) {
	w.t.Helper()
	d, honor := deployment(name, replicas), corev1.NodeInclusionPolicyHonor
	spec := &d.Spec.Template.Spec
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pool, poolSpare}}},
		}}},
	}}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.Spec.Selector,
		NodeTaintsPolicy: &honor, // a cordoned node does not count
	}}
	w.create(d)
	w.waitReady(name, replicas)
}

func (w *world) waitReady(name string, replicas int32) {
	w.t.Helper()
	w.until(name+" to be Ready", 2*time.Minute, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		err := w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, d)
		return d.Status.ReadyReplicas == replicas, fmt.Errorf("%d of %d are: %w", d.Status.ReadyReplicas, replicas, err)
	})
}

// waitPods waits until n pods are on a node.
func (w *world) waitPods(in ec2.Instance, n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d pods on %s", n, in.PrivateDNSName), time.Minute, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := w.client.List(ctx, &pods, client.InNamespace("default"), client.MatchingFields{"spec.nodeName": in.PrivateDNSName})
		return len(pods.Items) == n, fmt.Errorf("%d are: %w", len(pods.Items), err)
	})
}

func ids(instances []ec2.Instance) []string {
	var all []string
	for _, in := range instances {
		all = append(all, in.ID)
	}
	return all
}

// interrupt begins the twenty interruptions, and waits until each is in its phase.
func (w *world) interrupt() {
	w.fleet.planned = map[string]string{}
	f, now := &w.fleet, time.Now()
	for _, some := range [][]ec2.Instance{f.draining, f.approvals, f.hooks} {
		w.schedule(some, now.Add(9*time.Hour))
	}
	w.schedule(f.plans, now.Add(12*24*time.Hour))
	w.inPhase(f.draining, v1beta1.PhaseDraining)
	w.inPhase(f.approvals, v1beta1.PhaseAwaitingApproval)
	w.eachIs(f.hooks, "run their hook", runsHook)
	w.inPhase(f.plans, v1beta1.PhaseScheduled)
	for _, in := range f.draining {
		w.waitPods(in, 1)
	}
	w.waitReady("free", draining)
	// These have two minutes, so they come last.
	w.EC2().SetCapacity(ec2.Offering{}, 0)
	if err := w.EC2().Interrupt(ids(f.replacing), ec2.InterruptOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.eachIs(f.replacing, "wait for a replacement", waitsForReplacement)
	w.begun = w.mustRecords()
	if len(w.begun) != len(f.twenty()) {
		w.t.Fatalf("%d Interruptions, want %d", len(w.begun), len(f.twenty()))
	}
}

// schedule plans stops of instances, each with an event of AWS Health.
func (w *world) schedule(instances []ec2.Instance, at time.Time) {
	w.t.Helper()
	service := w.AWS().States.Health
	for _, in := range instances {
		arn, err := service.Schedule(health.Plan{
			InstanceIDs: []string{in.ID}, Code: "instance-stop", NotBefore: at.Truncate(time.Second), NotAfter: at.Add(2 * time.Hour),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.fleet.planned[in.ID] = service.Planned(arn)[in.ID]
	}
}
