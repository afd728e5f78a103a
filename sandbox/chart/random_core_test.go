//go:build e2e

package chart_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// stored is how many objects of each kind the random writes change.
const stored = 24

// newCast creates the objects that the random writes change.
func (w *authors) newCast(rnd *rand.Rand) *cast {
	w.t.Helper()
	c := &cast{authors: w}
	c.topics = map[string]func(*rand.Rand) (attempt, error){
		"pods": c.podWrites(rnd), "nodes": c.nodeWrites(rnd), "jobs": c.jobWrites, "nodenotices": c.nodeNoticeWrites(rnd),
		"interruptions": c.interruptionWrites(rnd), "pauses": c.pauseWrites(rnd), "nodeclaims": c.claimWrites(rnd),
	}
	return c
}

func (c *cast) podWrites(rnd *rand.Rand) func(*rand.Rand) (attempt, error) {
	var keys []client.ObjectKey
	for range stored {
		p := &corev1.Pod{ObjectMeta: c.metadata(rnd, c.name("pod")), Spec: corev1.PodSpec{
			SchedulerName: "none", Containers: []corev1.Container{{Name: "main", Image: "main:1"}},
		}}
		p.Namespace = metav1.NamespaceDefault
		if rnd.IntN(2) == 0 {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		}
		c.store(p)
		keys = append(keys, client.ObjectKeyFromObject(p))
	}
	seconds := int64(60)
	changes := append(metadataChanges[*corev1.Pod](),
		change[*corev1.Pod]{"its image", func(_ *rand.Rand, p *corev1.Pod) { p.Spec.Containers[0].Image = "main:2" }},
		change[*corev1.Pod]{"its time limit", func(_ *rand.Rand, p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds }},
		change[*corev1.Pod]{"its gates", func(_ *rand.Rand, p *corev1.Pod) { p.Spec.SchedulingGates = nil }},
		change[*corev1.Pod]{"a toleration", func(_ *rand.Rand, p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})
		}},
		change[*corev1.Pod]{"a surge", func(_ *rand.Rand, p *corev1.Pod) {
			delete(p.Labels, "pod-template-hash")
			metav1.SetMetaDataLabel(&p.ObjectMeta, v1beta1.LabelSurged, "web")
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1beta1.AnnotationSurgeOrigin, "{}")
		}},
	)
	return func(rnd *rand.Rand) (attempt, error) {
		before := &corev1.Pod{}
		if err := c.admin.Get(c.t.Context(), pick(rnd, keys...), before); err != nil {
			return attempt{}, err
		}
		by := pick(rnd, c.controllers...)
		after, text := changed(rnd, before, changes)
		may := mayChangePod(by, before, after) && (by.user == controllerUser || same(before.Spec, after.Spec))
		if by.user != controllerUser && !may {
			after = before.DeepCopy() // Kubernetes' own rules of pods are not the subject
			after.Labels, may = map[string]string{"app": "other"}, true
		}
		return attempt{by.user + " writes " + text, may, write(rnd, by.client, before, after)}, nil
	}
}

func (c *cast) nodeWrites(rnd *rand.Rand) func(*rand.Rand) (attempt, error) {
	var keys []client.ObjectKey
	for range stored {
		n := c.randomNode(rnd)
		c.store(n)
		keys = append(keys, client.ObjectKeyFromObject(n))
	}
	taint := func(rnd *rand.Rand) corev1.Taint {
		return corev1.Taint{
			Key:   pick(rnd, v1beta1.TaintInterrupted, "lifeboat.dev/other", "lifeboat.device/x", "dedicated", "node.kubernetes.io/out-of-service"),
			Value: pick(rnd, "", "a", "b"), Effect: pick(rnd, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
		}
	}
	changes := append(metadataChanges[*corev1.Node](),
		change[*corev1.Node]{"its cordon", func(_ *rand.Rand, n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable }},
		change[*corev1.Node]{"no taints", func(_ *rand.Rand, n *corev1.Node) { n.Spec.Taints = nil }},
		change[*corev1.Node]{"a taint less", func(_ *rand.Rand, n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:max(0, len(n.Spec.Taints)-1)] }},
		change[*corev1.Node]{"a taint", func(rnd *rand.Rand, n *corev1.Node) {
			one := taint(rnd)
			n.Spec.Taints = append(slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&one) }), one)
		}},
		change[*corev1.Node]{"its instance", func(_ *rand.Rand, n *corev1.Node) {
			if n.Spec.ProviderID == "" { // Kubernetes refuses other changes
				n.Spec.ProviderID = "aws:///eu-west-1a/i-0victim"
			}
		}},
		change[*corev1.Node]{"its range of addresses", func(_ *rand.Rand, n *corev1.Node) {
			if n.Spec.PodCIDR == "" {
				n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.9.0.0/24", []string{"10.9.0.0/24"}
			}
		}},
		change[*corev1.Node]{"Lifeboat's mark", func(rnd *rand.Rand, n *corev1.Node) {
			*n = *mutate.Marked(n, pick(rnd, mutate.MarkAtRisk, mutate.MarkInterrupted), "SpotInterruption")
		}},
		change[*corev1.Node]{"Lifeboat's restoration", func(_ *rand.Rand, n *corev1.Node) { *n = *mutate.Restored(n) }},
	)
	return func(rnd *rand.Rand) (attempt, error) {
		before := &corev1.Node{}
		if err := c.admin.Get(c.t.Context(), pick(rnd, keys...), before); err != nil {
			return attempt{}, err
		}
		by := pick(rnd, c.controllers...)
		after, text := changed(rnd, before, changes)
		return attempt{by.user + " writes " + text, mayChangeNode(by, before, after), write(rnd, by.client, before, after)}, nil
	}
}

// randomNode is a node with fields of others, and perhaps with Lifeboat's mark.
func (c *cast) randomNode(rnd *rand.Rand) *corev1.Node {
	n := &corev1.Node{ObjectMeta: c.metadata(rnd, c.name("random-node")), Spec: corev1.NodeSpec{Unschedulable: rnd.IntN(3) == 0}}
	delete(n.Annotations, v1beta1.AnnotationOriginalState)
	for i := range rnd.IntN(3) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: fmt.Sprint("example.com/t", i), Effect: corev1.TaintEffectNoSchedule})
	}
	if rnd.IntN(2) == 0 {
		n.Spec.ProviderID = fmt.Sprintf("aws:///eu-west-1a/i-0%016x", rnd.Uint64())
	}
	if rnd.IntN(2) == 0 {
		return mutate.Marked(n, pick(rnd, mutate.MarkAtRisk, mutate.MarkInterrupted), "SpotInterruption")
	}
	return n
}

func (c *cast) jobWrites(rnd *rand.Rand) (attempt, error) {
	yes := true
	security := func(p *corev1.PodSpec) *corev1.SecurityContext {
		if p.Containers[0].SecurityContext == nil {
			p.Containers[0].SecurityContext = &corev1.SecurityContext{}
		}
		return p.Containers[0].SecurityContext
	}
	pod := func(name string, do func(*rand.Rand, *corev1.PodSpec)) change[*batchv1.Job] {
		return change[*batchv1.Job]{name, func(rnd *rand.Rand, j *batchv1.Job) { do(rnd, &j.Spec.Template.Spec) }}
	}
	label := func(rnd *rand.Rand) map[string]string {
		return map[string]string{pick(rnd, "team", "app.kubernetes.io/name", "app.kubernetes.io.example.com/x", "batch.example.com/y"): "lifeboat"}
	}
	changes := []change[*batchv1.Job]{
		{"nothing", func(*rand.Rand, *batchv1.Job) {}},
		{"its namespace", func(rnd *rand.Rand, j *batchv1.Job) {
			j.Namespace = pick(rnd, chart.Namespace, "kube-node-lease", hookNamespace)
		}},
		{"a label", func(rnd *rand.Rand, j *batchv1.Job) { j.Labels = label(rnd) }},
		{"a label of its pods", func(rnd *rand.Rand, j *batchv1.Job) { j.Spec.Template.Labels = label(rnd) }},
		pod("its account", func(rnd *rand.Rand, p *corev1.PodSpec) {
			p.ServiceAccountName = pick(rnd, "", "tool", chart.ControllerAccount, chart.AgentAccount, "lifeboat-controllers")
		}),
		pod("its account by the old name", func(rnd *rand.Rand, p *corev1.PodSpec) {
			p.ServiceAccountName, p.DeprecatedServiceAccount = "", pick(rnd, "tool", chart.ControllerAccount, chart.AgentAccount)
		}),
		pod("host namespaces", func(rnd *rand.Rand, p *corev1.PodSpec) {
			*pick(rnd, &p.HostNetwork, &p.HostPID, &p.HostIPC) = rnd.IntN(3) > 0
		}),
		pod("a port", func(rnd *rand.Rand, p *corev1.PodSpec) {
			p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 7, HostPort: pick(rnd, int32(0), 7)}}
		}),
		pod("a volume", func(rnd *rand.Rand, p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: pick(rnd, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})}}
		}),
		pod("privileges", func(rnd *rand.Rand, p *corev1.PodSpec) { security(p).Privileged = pick(rnd, nil, &yes, new(bool)) }),
		pod("capabilities", func(rnd *rand.Rand, p *corev1.PodSpec) {
			security(p).Capabilities = pick(rnd, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, &corev1.Capabilities{Add: []corev1.Capability{"CHOWN"}})
		}),
		pod("an init container", func(rnd *rand.Rand, p *corev1.PodSpec) {
			first := corev1.Container{Name: "first", Image: "x:1", SecurityContext: &corev1.SecurityContext{Privileged: pick(rnd, nil, &yes)}}
			p.InitContainers = []corev1.Container{first}
		}),
	}
	before := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: hookNamespace, Name: "hook"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "tool:1"}},
		}}},
	}
	job, text := changed(rnd, before, changes)
	by := pick(rnd, c.controllers...)
	if p := &job.Spec.Template.Spec; p.HostNetwork { // Kubernetes requires it
		for i := range p.Containers[0].Ports {
			p.Containers[0].Ports[i].HostPort = 7
		}
	}
	return attempt{by.user + " creates " + text, mayRunJob(by, job), created(by.client, job)}, nil
}
