package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// checkHookEvents checks for each group that some rule delivers the events of
// Lifeboat's hooks. A rule that is limited to groups does not match groups that are
// added later.
func checkHookEvents(e *diagnosis) []finding.Finding {
	if e.Offline || e.QueueMissing || e.rulesDenied() || e.Queue == "" {
		return nil
	}
	var all []finding.Finding
	if groups := e.groupsWithoutHookEvents(false); len(groups) > 0 {
		all = append(all, e.missingHookEvents(groups, false))
	}
	if groups := e.groupsWithoutHookEvents(true); len(groups) > 0 && !e.kindUncovered(notice.KindAutoScalingTermination) {
		all = append(all, e.missingHookEvents(groups, true))
	}
	return all
}

// groupsWithoutHookEvents returns the groups with a Lifeboat hook for a transition
// whose events no rule delivers.
func (e *diagnosis) groupsWithoutHookEvents(terminating bool) []string {
	var names []string
	for _, g := range e.cluster.Groups {
		for _, h := range g.Hooks {
			if h.Own && h.Terminating == terminating && !e.receivesHookEvents(g.Name, h) {
				names = union(names, []string{g.Name})
			}
		}
	}
	return names
}

func (e *diagnosis) missingHookEvents(groups []string, terminating bool) finding.Finding {
	what, late := "launch", "a Ready node can wait that much longer"
	if terminating {
		what, late = "terminate", "the drain can begin that much later"
	}
	return finding.Finding{
		Severity: finding.Warning, ID: idGroupUnheard, Object: "group " + joinList(groups),
		Problem: fmt.Sprintf("no rule delivers the events of its %s hook to the queue. Lifeboat polls the group every 30 seconds: %s", what, late),
		Fix:     e.applyCommand() + " --groups all",
	}
}

// kindUncovered reports whether no rule delivers a kind. checkCoverage reports that.
func (e *diagnosis) kindUncovered(kind string) bool {
	return !slices.ContainsFunc(e.all, func(r *rule) bool {
		return r.receivesEvents(e.Region) && len(r.To(e.Queue)) > 0 && slices.Contains(r.kinds, kind)
	})
}

// receivesHookEvents reports whether the queue receives the events of a group's hook,
// by a rule or because the queue is the hook's target.
func (e *diagnosis) receivesHookEvents(group string, h Hook) bool {
	if h.Target == e.Queue {
		return true
	}
	event, err := hookEvent(e.Snapshot, group, h)
	if err != nil {
		return true // unknown
	}
	return slices.ContainsFunc(e.all, func(r *rule) bool {
		feeds := !r.TargetsKnown || len(r.To(e.Queue)) > 0
		return feeds && r.receivesEvents(e.Region) && (len(r.unresolved) > 0 || r.compiled != nil && r.compiled.CouldMatch(event, hookFields()...))
	})
}

// hookFields are the fields of a hook's event whose values are known in advance.
func hookFields() []string {
	return []string{"account", "region", "detail.AutoScalingGroupName", "detail.LifecycleHookName", "detail.LifecycleTransition"}
}

// hookEvent returns the event that EventBridge would deliver for a hook.
func hookEvent(s snapshot.Snapshot, group string, h Hook) (*pattern.Event, error) {
	name := "launch-lifecycle-action"
	if h.Terminating {
		name = "terminate-lifecycle-action"
	}
	i := slices.IndexFunc(pattern.Samples(), func(sample pattern.Sample) bool { return sample.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown sample %s", name)
	}
	var root map[string]any
	if err := json.Unmarshal(pattern.Samples()[i].JSON, &root); err != nil {
		return nil, fmt.Errorf("reading the sample %s: %w", name, err)
	}
	for field, value := range map[string]string{
		"account": s.Account, "region": s.Region, "detail.AutoScalingGroupName": group, "detail.LifecycleHookName": h.Name,
	} {
		setField(root, strings.Split(field, "."), value)
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("writing the sample %s: %w", name, err)
	}
	return pattern.Decode(text)
}

// checkOtherHandlers looks for a second program that completes the hooks of the
// cluster's groups. The first one to complete a hook lets the instance terminate,
// even if the other has not drained it.
func checkOtherHandlers(e *diagnosis) []finding.Finding {
	n := e.cluster.NTH
	if n == nil {
		return nil
	}
	if n.reads(snapshot.Name(e.Queue)) {
		return []finding.Finding{{
			Severity: finding.Broken, ID: idNTHSameQueue, Object: n.Object,
			Problem: "it reads the queue " + snapshot.Name(e.Queue) + " too: each notice reaches only one of the two",
			Fix:     "kubectl " + n.scaleDown() + "; or configure its own queue again (docs/guides/from-nth.md)",
		}}
	}
	var groups []string
	for _, g := range e.cluster.Groups {
		handled := slices.ContainsFunc(g.Hooks, func(h Hook) bool { return n.Queue != "" || h.Target != "" && n.reads(snapshot.Name(h.Target)) })
		if handled {
			groups = append(groups, g.Name)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Warning, ID: idNTHAnswersToo, Object: n.Object,
		Problem: fmt.Sprintf("it receives the lifecycle events of %s and completes every hook of an instance that it has drained, including Lifeboat's: the instance terminates even if Lifeboat's policy still waits", joinList(groups)),
		Fix:     "once Lifeboat runs: kubectl " + n.scaleDown() + " (docs/guides/from-nth.md)",
	}}
}

// scaleDown returns the kubectl arguments that stop a tool.
func (t *Tool) scaleDown() string {
	kind, name, _ := strings.Cut(t.Object, " ")
	namespace, name, _ := strings.Cut(name, "/")
	if kind == "daemonset" {
		return fmt.Sprintf("--namespace %s delete daemonset %s", namespace, name)
	}
	return fmt.Sprintf("--namespace %s scale %s %s --replicas 0", namespace, kind, name)
}
