package workloads

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// defaultGrace is the API server's default (Kubernetes API,
// PodSpec.terminationGracePeriodSeconds).
const defaultGrace = 30 * time.Second

// AddPod adds a pod. It ignores pods that a drain does not evict.
func (s *Survey) AddPod(pod *corev1.Pod) {
	if ignoredByDrain(pod) {
		return
	}
	s.pods++
	by := s.ownerOf(pod)
	w := s.workloads[by]
	if w == nil {
		w = &workload{example: pod.Name}
		s.workloads[by] = w
	}
	w.pods++
	s.recordOverlap(pod)
	w.hook(pod)
	w.tolerates = w.tolerates || toleratesInterruption(pod)
	w.byAddress = w.byAddress || s.deregisters[pod.Spec.NodeName] && isTargetByAddress(&pod.Spec) && !hasPreStop(&pod.Spec)
	if s.spot[pod.Spec.NodeName] {
		w.onSpot++
		w.addSpot(pod)
		s.traffic(w, pod)
	}
}

// ignoredByDrain reports whether a drain does not evict the pod, or the pod is
// terminating.
func ignoredByDrain(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror || pod.DeletionTimestamp != nil {
		return true
	}
	if by := metav1.GetControllerOfNoCopy(pod); by != nil && (by.Kind == "DaemonSet" || by.Kind == "Node") {
		return true
	}
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ownerOf returns the owner of a pod. The Deployment of a ReplicaSet follows from its
// name, which is the Deployment's name plus the hash of the pod template.
func (s *Survey) ownerOf(pod *corev1.Pod) owner {
	by := metav1.GetControllerOfNoCopy(pod)
	if by == nil {
		return owner{kind: kindBare, namespace: pod.Namespace}
	}
	if hash := pod.Labels["pod-template-hash"]; by.Kind == "ReplicaSet" && hash != "" {
		above := owner{kindDeployment, pod.Namespace, strings.TrimSuffix(by.Name, "-"+hash)}
		if _, known := s.sets[above]; known || s.noDeployments {
			return above
		}
	}
	return owner{by.Kind, pod.Namespace, by.Name}
}

// recordOverlap records pods that more than one budget covers.
func (s *Survey) recordOverlap(pod *corev1.Pod) {
	var covering []string
	for _, b := range s.budgets[pod.Namespace] {
		if b.selector != nil && b.selector.Matches(labels.Set(pod.Labels)) {
			covering = append(covering, b.Name)
		}
	}
	if len(covering) < 2 {
		return
	}
	key := pod.Namespace + "/" + strings.Join(covering, ",")
	o := s.overlaps[key]
	if o == nil {
		o = &overlap{namespace: pod.Namespace, names: covering, example: pod.Name}
		s.overlaps[key] = o
	}
	o.pods++
}

func (w *workload) addSpot(pod *corev1.Pod) {
	w.grace = max(w.grace, graceOf(pod))
	if by := heldBy(pod); by != "" {
		w.held, w.heldPods = by, w.heldPods+1
	}
	w.keeps = w.keeps || keepsData(pod)
}

func graceOf(pod *corev1.Pod) time.Duration {
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		return time.Duration(*g) * time.Second
	}
	return defaultGrace
}

// heldBy returns the annotation that protects the pod from disruption, or "".
func heldBy(pod *corev1.Pod) string {
	// Karpenter's annotation accepts durations, as Lifeboat's does (Karpenter
	// documentation, "Disruption"). The third one is in the Cluster Autoscaler's FAQ.
	for _, key := range []string{v1beta1.AnnotationDoNotDisrupt, v1beta1.AnnotationKarpenterDoNotDisrupt} {
		if value, ok := pod.Annotations[key]; ok && value != "false" {
			return key + "=" + value
		}
	}
	const autoscaler = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	if pod.Annotations[autoscaler] == "false" {
		return autoscaler + "=false"
	}
	return ""
}

// largeEmptyDir is the size from which an emptyDir probably holds valuable data.
// Smaller ones hold sockets and temporary files.
var largeEmptyDir = resource.MustParse("1Gi")

// keepsData reports whether the pod has an emptyDir on the node's disk that is large,
// or that belongs to a StatefulSet's pod.
func keepsData(pod *corev1.Pod) bool {
	by := metav1.GetControllerOfNoCopy(pod)
	stateful := by != nil && by.Kind == kindStatefulSet
	for _, v := range pod.Spec.Volumes {
		d := v.EmptyDir
		if d == nil || d.Medium != corev1.StorageMediumDefault {
			continue
		}
		if limit := d.SizeLimit; (limit != nil && limit.Cmp(largeEmptyDir) >= 0) || (limit == nil && stateful) {
			return true
		}
	}
	return false
}

// toleratesInterruption reports whether the scheduler can place the pod on a node
// that is cordoned for an interruption.
func toleratesInterruption(pod *corev1.Pod) bool {
	return tolerates(pod, corev1.TaintNodeUnschedulable)
}

func tolerates(pod *corev1.Pod, key string) bool {
	for _, t := range pod.Spec.Tolerations {
		if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
			continue
		}
		if t.Operator == corev1.TolerationOpExists && (t.Key == "" || t.Key == key) {
			return true
		}
	}
	return false
}

// hook records the preStop hook that exceeds its grace period by the most.
func (w *workload) hook(pod *corev1.Pod) {
	grace := graceOf(pod)
	sleep := time.Duration(0)
	for i := range pod.Spec.Containers {
		sleep = max(sleep, sleepOf(pod.Spec.Containers[i].Lifecycle))
	}
	for i := range pod.Spec.InitContainers { // sidecars
		sleep = max(sleep, sleepOf(pod.Spec.InitContainers[i].Lifecycle))
	}
	if sleep >= grace && sleep > 0 && sleep-grace >= w.hookSleep-w.hookGrace {
		w.hookSleep, w.hookGrace = sleep, grace
	}
}

// sleepOf returns the duration for which a preStop hook sleeps, if it can be read
// from the hook.
func sleepOf(l *corev1.Lifecycle) time.Duration {
	switch {
	case l == nil || l.PreStop == nil:
		return 0
	case l.PreStop.Sleep != nil:
		return time.Duration(l.PreStop.Sleep.Seconds) * time.Second
	case l.PreStop.Exec == nil:
		return 0
	}
	return sleepIn(strings.Join(l.PreStop.Exec.Command, " "))
}

// sleepCall matches a call of sleep(1) with a literal number. GNU's sleep accepts
// fractions and units.
var sleepCall = regexp.MustCompile(`(?:^|[\s;&|(/])sleep\s+([0-9]+(?:\.[0-9]+)?)([smhd]?)(?:$|[\s;&|)])`)

// sleepIn returns the sum of the sleeps of a command.
func sleepIn(command string) time.Duration {
	sum := time.Duration(0)
	for command != "" {
		at := sleepCall.FindStringSubmatchIndex(command)
		if at == nil {
			return sum
		}
		number, err := strconv.ParseFloat(command[at[2]:at[3]], 64)
		if err == nil && number < 1e6 {
			sum += time.Duration(number * float64(unit(command[at[4]:at[5]])))
		}
		command = command[at[5]:] // the end of one match can be the start of the next
	}
	return sum
}

func unit(letter string) time.Duration {
	switch letter {
	case "m":
		return time.Minute
	case "h":
		return time.Hour
	case "d":
		return 24 * time.Hour
	}
	return time.Second
}
