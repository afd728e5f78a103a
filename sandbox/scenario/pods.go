package scenario

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// Verdict is the result for a pod of an interrupted node.
type Verdict string

// The verdicts.
const (
	Kept    Verdict = "kept"    // it still runs and was not asked to stop
	Leaving Verdict = "leaving" // it was asked to stop and does its stop work
	Whole   Verdict = "whole"   // it ended with its stop work done
	Cut     Verdict = "cut"     // it was killed during its stop work
	Lost    Verdict = "lost"    // its machine lost power before it was asked to stop
)

// podTrack is the observed data of one pod.
type podTrack struct {
	uid             types.UID
	namespace, name string
	labels          labels.Set
	owner           string // Kind/name of the controller, until it is deleted
	node            string // name of the Node
	stays           bool   // DaemonSet, static or finished: it need not leave
	running, ready  bool
	need            time.Duration // its stop work
	ownGrace        time.Duration

	asked time.Time     // zero: not yet
	grace time.Duration // the shortest that it was given
	ended time.Time     // its containers ended; zero: not yet
	gone  time.Time     // it is off the API server; zero: not yet
	// killed means that its containers ended by SIGKILL at the end of their grace.
	killed bool
	// powerLost is when its machine lost power before the pod had ended.
	powerLost time.Time
}

func (p *podTrack) key() string { return p.namespace + "/" + p.name }

// over is when the pod ended, for any reason; zero: it runs.
func (p *podTrack) over() time.Time {
	switch {
	case !p.ended.IsZero():
		return p.ended
	case !p.powerLost.IsZero():
		return p.powerLost
	default:
		return p.gone
	}
}

// Deletion times are whole seconds, and kwok's stops up to one longer.
const stopSlack = 1500 * time.Millisecond

func (p *podTrack) verdict() Verdict {
	switch {
	case !p.powerLost.IsZero() && p.asked.IsZero():
		return Lost
	case !p.powerLost.IsZero():
		return Cut
	case p.over().IsZero() && p.asked.IsZero():
		return Kept
	case p.over().IsZero():
		return Leaving
	case p.killed:
		return Cut
	case !p.running:
		return Whole // it had not started: no stop work was lost
	case p.over().Sub(p.asked) < p.need-stopSlack:
		return Cut // deleted from the API server without a stop
	default:
		return Whole
	}
}

// observe records a pod at time t; gone means that it is deleted from the API server.
func (p *podTrack) observe(t time.Time, pod *corev1.Pod, gone bool) {
	grace, down := kwok.ShutsDown(pod)
	if pod.DeletionTimestamp == nil && !down { // a stopping pod keeps its data from before the request
		p.running = pod.Status.Phase == corev1.PodRunning
		p.stays = mayStay(pod)
		p.owner = ownerOf(pod)
	}
	if down && p.asked.IsZero() && p.powerLost.IsZero() && p.ended.IsZero() { // by its kubelet
		p.asked, p.grace = t, grace
	}
	p.ready = podReady(pod) && pod.DeletionTimestamp == nil && !gone
	if p.powerLost.IsZero() && p.ended.IsZero() { // without power no pod receives a request or ends
		p.observeEnd(t, pod)
	}
	if gone {
		p.observeGone(t)
	}
}

// observeGone records that the pod is deleted from the API server.
func (p *podTrack) observeGone(t time.Time) {
	if !p.gone.IsZero() {
		return
	}
	p.gone = t
	if p.asked.IsZero() && p.powerLost.IsZero() {
		p.asked = t // with a grace period of zero
	}
}

// observeEnd records the stop request of a running pod, and its end. A request after the end only
// deletes the object.
func (p *podTrack) observeEnd(t time.Time, pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		grace := time.Duration(deref(pod.DeletionGracePeriodSeconds)) * time.Second
		if p.asked.IsZero() {
			p.asked, p.grace = t, grace
		}
		p.grace = min(p.grace, grace)
	}
	if finished(pod) {
		p.ended, p.killed = t, killed(pod)
	}
}

func newPodTrack(pod *corev1.Pod) *podTrack {
	p := &podTrack{
		uid: pod.UID, namespace: pod.Namespace, name: pod.Name, labels: labels.Set(pod.Labels), node: pod.Spec.NodeName,
		need: stopWork(pod), ownGrace: time.Duration(deref(pod.Spec.TerminationGracePeriodSeconds)) * time.Second,
	}
	p.owner = ownerOf(pod)
	return p
}

// ownerOf is Kind/name of the controller of a pod, or "".
func ownerOf(pod *corev1.Pod) string {
	c := metav1.GetControllerOf(pod)
	if c == nil {
		return ""
	}
	return c.Kind + "/" + c.Name
}

// mayStay reports whether a pod may stay on an interrupted node.
func mayStay(pod *corev1.Pod) bool {
	if c := metav1.GetControllerOf(pod); c != nil && (c.Kind == "DaemonSet" || c.Kind == "Node") {
		return true
	}
	return pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || finished(pod)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// killed reports whether a container ended by SIGKILL (128 + 9).
func killed(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil && c.State.Terminated.ExitCode == 137 {
			return true
		}
	}
	return false
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

var sleepCommand = regexp.MustCompile(`(?:^|[^a-z0-9_-])sleep +([0-9]+(?:\.[0-9]+)?)`)

// stopWork is how long the containers of a pod take to stop, as the sandbox simulates it: the
// longest preStop hook, plus the annotation.
func stopWork(pod *corev1.Pod) time.Duration {
	var hook float64
	for _, c := range pod.Spec.Containers {
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			hook = max(hook, hookSeconds(c.Lifecycle.PreStop))
		}
	}
	// An invalid value counts as zero, as in the simulated kubelets.
	after, _ := strconv.ParseFloat(pod.Annotations[kwok.StopSecondsAnnotation], 64)
	return time.Duration(math.Ceil(hook+after)) * time.Second
}

func hookSeconds(h *corev1.LifecycleHandler) float64 {
	if h.Sleep != nil {
		return float64(h.Sleep.Seconds)
	}
	if h.Exec == nil {
		return 0
	}
	var sum float64
	for _, m := range sleepCommand.FindAllStringSubmatch(strings.Join(h.Exec.Command, " "), -1) {
		n, _ := strconv.ParseFloat(m[1], 64) // the expression admits only numbers
		sum += n
	}
	return sum
}

// describe describes how a pod ended.
func (p *podTrack) describe() string {
	switch p.verdict() {
	case Lost:
		return "lost: its machine lost power before it was asked to stop"
	case Cut:
		if !p.powerLost.IsZero() {
			return fmt.Sprintf("cut: %s of its %s stop work done when its machine lost power", seconds(p.powerLost.Sub(p.asked)), seconds(p.need))
		}
		return fmt.Sprintf("cut: it needed %s to stop and was given %s", seconds(p.need), seconds(p.grace))
	case Whole:
		return fmt.Sprintf("gone: used %s of %s grace", seconds(p.over().Sub(p.asked)), seconds(p.grace))
	case Leaving:
		return "still stopping"
	default:
		return "still running"
	}
}

// seconds writes a duration to a tenth of a second.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + " s"
}

func deref[T cmp.Ordered](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
