//go:build e2e

package real

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/images"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
)

// web is a server under test: a Deployment, a Service and optionally a PodDisruptionBudget.
type web struct {
	Name       string
	Pool       string // pool of the interrupted node; empty: Name
	Replicas   int
	PreStop    time.Duration // duration of the hook; zero: no hook
	Leave      bool          // the hook makes the server close its connections
	Grace      int64         // seconds; zero: 30
	AtSIGTERM  string        // exit, graceful or ignore; empty: exit
	ReadyAfter time.Duration
	// MinAvailable of the PodDisruptionBudget; zero: no budget.
	MinAvailable int
	Annotations  map[string]string
	// Karpenter: the pool is a NodePool, and no other node takes the pods.
	Karpenter bool
	// Spread prefers as many pods on each node.
	Spread bool
}

const journals = "/journal" // in containers

func (w web) objects() []client.Object {
	labels := map[string]string{"app": w.Name}
	replicas := int32(w.Replicas)
	meta := metav1.ObjectMeta{Namespace: "default", Name: w.Name}
	out := []client.Object{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: w.Annotations},
				Spec:       w.podSpec(),
			},
		}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}},
		}},
	}
	if w.MinAvailable > 0 {
		least := intstr.FromInt(w.MinAvailable)
		out = append(out, &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels},
		}})
	}
	return out
}

func (w web) podSpec() corev1.PodSpec {
	c := container("web", "server", "--at-sigterm="+cmp.Or(w.AtSIGTERM, "exit"), "--ready-after="+w.ReadyAfter.String())
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt(8080)}},
		PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 5, // a slow machine must not make the pod unready
	}
	if w.PreStop > 0 {
		command := []string{images.ProgramPath, "prestop", "--sleep=" + w.PreStop.String()}
		if w.Leave {
			command = append(command, "--leave=http://127.0.0.1:8080/leave")
		}
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}}
	}
	spec := podSpec(c, cmp.Or(w.Grace, 30), w.placement())
	if w.Karpenter {
		spec.Tolerations = []corev1.Toleration{{Key: poolLabel, Value: w.pool()}}
	}
	if w.Spread {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.Name}},
		}}
	}
	return spec
}

func (w web) pool() string { return cmp.Or(w.Pool, w.Name) }

// placement prefers the interrupted node. The only alternative is the safe pool, or what Karpenter
// launches.
func (w web) placement() *corev1.Affinity {
	in := func(pools ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: poolLabel, Operator: corev1.NodeSelectorOpIn, Values: pools},
		}}
	}
	allowed := in(w.pool(), safePool)
	if w.Karpenter {
		allowed = in(w.pool())
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{allowed},
		},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: in(w.pool())}},
	}}
}

// container runs the workload program, which writes its journal.
func container(name string, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: images.Workload, ImagePullPolicy: corev1.PullNever, Args: args,
		Env: []corev1.EnvVar{
			{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "WORKLOAD_JOURNAL", Value: journals + "/$(POD).jsonl"},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: "journals", MountPath: journals}},
	}
}

func podSpec(c corev1.Container, grace int64, affinity *corev1.Affinity) corev1.PodSpec {
	no := false
	return corev1.PodSpec{
		Containers: []corev1.Container{c}, TerminationGracePeriodSeconds: &grace, Affinity: affinity,
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		Volumes: []corev1.Volume{{Name: "journals", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: instances.SharedDir},
		}}},
	}
}

// loadPod is a pod that sends requests to a URL.
func loadPod(name, url string, args []string) *corev1.Pod {
	c := container("load", append([]string{
		"load", "--url=" + url, fmt.Sprintf("--summary=%s/%s.json", journals, name),
	}, args...)...)
	spec := podSpec(c, 20, nil)
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.NodeSelector = map[string]string{poolLabel: loadPool}
	spec.Tolerations = []corev1.Toleration{{Key: poolLabel, Operator: corev1.TolerationOpExists}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}
