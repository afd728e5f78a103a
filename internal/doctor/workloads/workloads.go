package workloads

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkWorkload reports the problems of a workload's pods in an interruption.
func (s *Survey) checkWorkload(by owner, w *workload) []sizedFinding {
	var all []sizedFinding
	add := func(severity finding.Severity, id string, pods int, problem, fix string) {
		all = append(all, sizedFinding{
			Finding:   finding.Finding{Severity: severity, ID: id, Object: by.String(), Problem: problem, Fix: fix},
			namespace: by.namespace, pods: pods,
		})
	}
	if usable := s.usable(); w.onSpot > 0 && w.grace > usable {
		add(finding.Warning, GraceExceedsNotice, w.onSpot, fmt.Sprintf(
			"%s on spot nodes may take %s to stop, and a spot notice leaves %s: they are killed up to %s before they finish",
			w.howMany(), formatDuration(w.grace), formatDuration(usable), formatDuration(w.grace-usable)),
			by.patch(fmt.Sprintf(`{"terminationGracePeriodSeconds":%d}`, int(usable.Seconds())),
				fmt.Sprintf("set terminationGracePeriodSeconds to %d or less", int(usable.Seconds())))+"; or do not run it on spot nodes")
	}
	if w.hookSleep > 0 {
		add(finding.Warning, HookExceedsGrace, w.pods, fmt.Sprintf(
			"a preStop hook sleeps %s, and the grace period is %s: the kubelet aborts the hook, and kills the container two seconds after SIGTERM",
			formatDuration(w.hookSleep), formatDuration(w.hookGrace)),
			by.patch(fmt.Sprintf(`{"terminationGracePeriodSeconds":%d}`, int((w.hookSleep+defaultGrace).Seconds())),
				fmt.Sprintf("set terminationGracePeriodSeconds above %d", int(w.hookSleep.Seconds())))+"; or shorten the hook")
	}
	if by.kind == kindBare {
		add(finding.Warning, BarePods, w.pods, fmt.Sprintf(
			"%s, for example %s: after an eviction no controller recreates them", somePods(w.pods), w.example),
			"run them with a Deployment, a StatefulSet or a Job")
	}
	if w.tolerates {
		add(finding.Warning, ToleratesEveryTaint, w.pods,
			"its pods tolerate the taint of a cordoned node: the scheduler can place the replacement on the interrupted node, and Lifeboat asks that one to stop once more only, at its last call",
			by.line("tolerations", "list the required taints, without node.kubernetes.io/unschedulable, and no toleration with operator Exists and no key"))
	}
	s.checkReplicas(by, w, add)
	if w.heldPods > 0 {
		add(finding.Warning, DoNotDisrupt, w.heldPods, fmt.Sprintf(
			"%s on spot nodes must not be disrupted (%s), but EC2 ignores that: Lifeboat waits until shortly before the deadline, and the replacement starts that much later",
			somePods(w.heldPods), w.held), "run it on on-demand nodes, or remove the annotation from the pod template")
	}
	if w.keeps {
		add(finding.Info, DataOnNode, w.onSpot,
			"its pods on spot nodes have data in an emptyDir, which is deleted with the pod",
			"if you need the data, store it in a PersistentVolumeClaim")
	}
	return all
}

// checkReplicas reports workloads that one eviction interrupts.
func (s *Survey) checkReplicas(by owner, w *workload, add func(finding.Severity, string, int, string, string)) {
	set, known := s.sets[by]
	if !known || set.desired != 1 || w.onSpot == 0 {
		return
	}
	down := "from its SIGTERM until its replacement is ready"
	if by.kind == kindStatefulSet {
		down = "while it stops, and then until the new pod is ready"
	}
	if by.kind == kindDeployment && !set.recreate {
		down += ", unless there is time to start the replacement first"
	}
	fix := fmt.Sprintf("kubectl -n %s scale %s --replicas=2", by.namespace, by.ref())
	if set.recreate {
		fix = "its strategy is Recreate, so two replicas possibly cannot run at the same time: in that case run it on on-demand nodes"
	}
	add(finding.Warning, SingleReplica, w.onSpot, "its only replica runs on a spot node: if EC2 reclaims the node, there is no service "+down, fix)
}

// howMany returns the number of pods on spot nodes.
func (w *workload) howMany() string {
	if w.onSpot == w.pods {
		return somePods(w.pods)
	}
	return fmt.Sprintf("%d of %s", w.onSpot, somePods(w.pods))
}

// patch returns the command that changes the pod template, or otherwise an
// instruction if the kind has no such command.
func (o owner) patch(spec, otherwise string) string {
	switch o.kind {
	case kindDeployment, kindStatefulSet:
		return fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"template":{"spec":%s}}}'`, o.namespace, o.ref(), spec)
	}
	return otherwise + " in the pod template"
}

// line names the field of the pod template to change.
func (o owner) line(field, advice string) string {
	if o.kind == kindBare {
		return "in spec." + field + ": " + advice
	}
	return fmt.Sprintf("in spec.template.spec.%s of %s: %s", field, strings.ToLower(o.kind), advice)
}
