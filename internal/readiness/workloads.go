package readiness

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// judge says what would go wrong with the pods of a workload.
func (s *Survey) judge(by owner, w *workload) []weighed {
	var all []weighed
	add := func(severity finding.Severity, id string, pods int, problem, fix string) {
		all = append(all, weighed{
			Finding:   finding.Finding{Severity: severity, ID: id, Object: by.String(), Problem: problem, Fix: fix},
			namespace: by.namespace, pods: pods,
		})
	}
	if usable := s.usable(); w.onSpot > 0 && w.grace > usable {
		add(finding.Warning, GraceExceedsNotice, w.onSpot, fmt.Sprintf(
			"%s on spot nodes may take %s to stop, and a spot notice leaves %s: they are killed up to %s before they are done",
			w.howMany(), short(w.grace), short(usable), short(w.grace-usable)),
			by.patch(fmt.Sprintf(`{"terminationGracePeriodSeconds":%d}`, int(usable.Seconds())),
				fmt.Sprintf("set terminationGracePeriodSeconds to %d or less", int(usable.Seconds())))+"; or keep it off spot nodes")
	}
	if w.hookSleep > 0 {
		add(finding.Warning, HookExceedsGrace, w.pods, fmt.Sprintf(
			"a preStop hook sleeps %s of a grace period of %s: the hook is cut off, and the container is killed two seconds after it is told to stop",
			short(w.hookSleep), short(w.hookGrace)),
			by.patch(fmt.Sprintf(`{"terminationGracePeriodSeconds":%d}`, int((w.hookSleep+defaultGrace).Seconds())),
				fmt.Sprintf("set terminationGracePeriodSeconds above %d", int(w.hookSleep.Seconds())))+"; or shorten the hook")
	}
	if by.kind == kindBare {
		add(finding.Warning, BarePods, w.pods, fmt.Sprintf(
			"%s, such as %s: once evicted, nothing starts them anew", somePods(w.pods), w.example),
			"run them by a Deployment, a StatefulSet or a Job")
	}
	if w.tolerates {
		add(finding.Warning, ToleratesDoom, w.pods,
			"its pods tolerate every taint: the scheduler may put the replacement on the very node that goes away, from where it is evicted again",
			by.line("tolerations", "name the taints it has to tolerate, in place of the toleration with operator Exists and no key"))
	}
	s.judgeReplicas(by, w, add)
	if w.heldPods > 0 {
		add(finding.Warning, DoNotDisrupt, w.heldPods, fmt.Sprintf(
			"%s on spot nodes asks not to be disrupted (%s), which EC2 does not heed: Lifeboat waits for the last call, and its replacement starts that much later",
			somePods(w.heldPods), w.held), "let it run on on-demand nodes, or remove the annotation from the pod template")
	}
	if w.keeps {
		add(finding.Info, DataOnNode, w.onSpot,
			"its pods on spot nodes keep data in an emptyDir, which goes with the pod",
			"if it is missed, put it on a PersistentVolumeClaim")
	}
	return all
}

// judgeReplicas looks for workloads that one eviction takes out of service.
func (s *Survey) judgeReplicas(by owner, w *workload, add func(finding.Severity, string, int, string, string)) {
	set, known := s.sets[by]
	if !known || set.wanted != 1 || w.onSpot == 0 {
		return
	}
	down := "from the moment that it is asked to stop until its replacement is ready"
	if by.kind == kindStatefulSet {
		down = "for as long as it takes to stop, and then until its successor is ready"
	}
	fix := fmt.Sprintf("kubectl -n %s scale %s --replicas=2", by.namespace, by.ref())
	if set.recreate {
		fix = "its strategy is Recreate, so perhaps two cannot run at a time: then keep it on on-demand nodes"
	}
	add(finding.Warning, SingleReplica, w.onSpot, "its only replica runs on a spot node: when that is reclaimed, nobody serves "+down, fix)
}

// howMany says how many of the pods are on spot nodes.
func (w *workload) howMany() string {
	if w.onSpot == w.pods {
		return somePods(w.pods)
	}
	return fmt.Sprintf("%d of %s", w.onSpot, somePods(w.pods))
}

// patch is the command that changes the pod template, where there is one that
// can be changed so, or else what to do.
func (o owner) patch(spec, otherwise string) string {
	switch o.kind {
	case kindDeployment, kindStatefulSet:
		return fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"template":{"spec":%s}}}'`, o.namespace, o.ref(), spec)
	}
	return otherwise + " in the pod template"
}

// line says which line of the pod template to change.
func (o owner) line(field, advice string) string {
	if o.kind == kindBare {
		return "in spec." + field + ": " + advice
	}
	return fmt.Sprintf("in spec.template.spec.%s of %s: %s", field, strings.ToLower(o.kind), advice)
}
