package workloads

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// service is an added Service with a selector and an address of its own.
type service struct {
	name     string
	selector labels.Selector
	// notReady is true if it also sends traffic to pods that are not ready.
	notReady bool
}

// AddService adds a Service. It ignores those without a selector, and headless ones: their
// clients choose a pod themselves.
func (s *Survey) AddService(o *corev1.Service) {
	if len(o.Spec.Selector) == 0 || o.Spec.ClusterIP == corev1.ClusterIPNone {
		return
	}
	s.services[o.Namespace] = append(s.services[o.Namespace], service{
		name: o.Name, selector: labels.SelectorFromSet(o.Spec.Selector), notReady: o.Spec.PublishNotReadyAddresses,
	})
}

// traffic records what matters to the clients of a pod on a spot node.
func (s *Survey) traffic(w *workload, pod *corev1.Pod) {
	for _, v := range s.services[pod.Namespace] {
		if !v.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		w.served = true
		if name := pod.Namespace + "/" + v.name; v.notReady && !slices.Contains(s.notReady, name) {
			s.notReady = append(s.notReady, name)
		}
	}
	s.coverage(w, pod)
}

// coverage records what protects the pod and its clients.
func (s *Survey) coverage(w *workload, pod *corev1.Pod) {
	w.preStop = w.preStop || hasPreStop(&pod.Spec)
	w.readiness = w.readiness || hasReadiness(&pod.Spec)
	w.budgeted = w.budgeted || slices.ContainsFunc(s.budgets[pod.Namespace], func(b *budget) bool {
		return b.selector != nil && b.selector.Matches(labels.Set(pod.Labels))
	})
	by := metav1.GetControllerOfNoCopy(pod)
	w.ungoverned = w.ungoverned || s.o.Governed != nil && by != nil && by.Kind == kindStatefulSet && hasClaim(&pod.Spec) && !s.governed[pod.Spec.NodeName]
}

func hasPreStop(spec *corev1.PodSpec) bool {
	has := func(c corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }
	return slices.ContainsFunc(spec.Containers, has) || slices.ContainsFunc(spec.InitContainers, has)
}

func hasReadiness(spec *corev1.PodSpec) bool {
	return len(spec.ReadinessGates) > 0 || slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.ReadinessProbe != nil })
}

// isTargetByAddress reports whether the pod is a target with type ip: only such pods get the readiness
// gate of the AWS Load Balancer Controller (its documentation, "Pod readiness gate").
func isTargetByAddress(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return strings.HasPrefix(string(g.ConditionType), "target-health.elbv2.k8s.aws/")
	})
}

func hasClaim(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// listFinding is a finding about a list of objects.
type listFinding struct {
	finding.Finding

	names []string
}

// checkTraffic returns at most one finding of each kind, with the list of workloads.
func (s *Survey) checkTraffic() []finding.Finding {
	noPreStop := listFinding{Finding: finding.Finding{
		Severity: finding.Info, ID: NoPreStop, Object: "workloads on spot nodes that a Service sends to",
		Problem: "they have no preStop hook: requests fail that arrive after SIGTERM, until every proxy and load balancer has removed the pod, unless the program still serves them",
		Fix:     "add lifecycle.preStop.sleep.seconds to the container: 5 for Services, 15 or more behind a load balancer",
	}}
	noProbe := listFinding{Finding: finding.Finding{
		Severity: finding.Info, ID: NoReadinessProbe, Object: "workloads on spot nodes that a Service sends to",
		Problem: "they have no readiness probe: a successor counts as ready when its process starts, and the old pod leaves before the new one serves",
		Fix:     "add a readinessProbe to the container that serves",
	}}
	noBudget := listFinding{Finding: finding.Finding{
		Severity: finding.Info, ID: NoBudget, Object: "workloads on spot nodes with several replicas",
		Problem: "they have no PodDisruptionBudget: if several of their nodes are interrupted, all replicas stop at the same time",
		Fix:     "kubectl create poddisruptionbudget NAME --selector LABELS --max-unavailable 1, for each",
	}}
	noPolicy := listFinding{Finding: finding.Finding{
		Severity: finding.Info, ID: StatefulWithoutPolicy, Object: "StatefulSets with volumes on spot nodes",
		Problem: "no InterruptionPolicy selects their nodes, so the built-in defaults apply: a planned change drains them without an approval or a window",
		Fix:     "write an InterruptionPolicy for their nodes (docs/guides/policy.md), or run them on on-demand nodes",
	}}
	byAddress := listFinding{Finding: finding.Finding{
		Severity: finding.Warning, ID: TargetsByAddress, Object: "workloads whose pods are targets with type ip",
		Problem: "the policy of their nodes waits for load balancers, but only for instances as targets: load balancers deregister these pods when they stop, and they have no preStop hook",
		Fix:     "add lifecycle.preStop.sleep.seconds to the container, such as 15, with a grace period that covers it (docs/guides/policy.md)",
	}}
	for _, by := range s.owners() {
		w := s.workloads[by]
		byAddress.addIf(w.byAddress, by)
		if w.onSpot == 0 {
			continue
		}
		several := s.sets[by].desired > 1
		noPreStop.addIf(w.served && !w.preStop, by)
		noProbe.addIf(w.served && !w.readiness, by)
		noBudget.addIf(several && !w.budgeted && !s.noBudgets && (w.served || by.kind == kindStatefulSet), by)
		noPolicy.addIf(w.ungoverned, by)
	}
	notReady := listFinding{names: s.notReady, Finding: finding.Finding{
		Severity: finding.Warning, ID: NotReadyInRotation, Object: "Services with publishNotReadyAddresses",
		Problem: "they send requests to pods that are stopping or not ready yet, for as long as these exist",
		Fix:     "set spec.publishNotReadyAddresses to false; only headless Services for peers need true",
	}}
	slices.Sort(notReady.names)
	return withNames(byAddress, noPreStop, noProbe, noBudget, noPolicy, notReady, s.checkWebhooks())
}

func (l *listFinding) addIf(condition bool, by owner) {
	if condition {
		l.names = append(l.names, by.String())
	}
}

// withNames returns the findings with at least one name.
func withNames(lists ...listFinding) []finding.Finding {
	var all []finding.Finding
	for _, l := range lists {
		if len(l.names) == 0 {
			continue
		}
		const shown = 5
		names := strings.Join(l.names[:min(shown, len(l.names))], ", ")
		if more := len(l.names) - shown; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		l.Problem += ": " + names
		all = append(all, l.Finding)
	}
	return all
}
