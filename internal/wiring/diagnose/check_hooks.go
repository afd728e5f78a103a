package diagnose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// checkHeard asks of each group whether some rule brings what its own hooks say: a
// rule that is limited to groups forgets those that come later.
func checkHeard(e *exam) []finding.Finding {
	if e.Offline || e.QueueMissing || e.rulesUnseen() || e.Queue == "" {
		return nil
	}
	var all []finding.Finding
	if groups := e.unheardGroups(false); len(groups) > 0 {
		all = append(all, e.unheard(groups, false))
	}
	if groups := e.unheardGroups(true); len(groups) > 0 && !e.silent(notice.KindAutoScalingTermination) {
		all = append(all, e.unheard(groups, true))
	}
	return all
}

// unheardGroups are the groups with a hook of Lifeboat's own for a transition of
// which no rule tells.
func (e *exam) unheardGroups(terminating bool) []string {
	var names []string
	for _, g := range e.cluster.Groups {
		for _, h := range g.Hooks {
			if h.Own && h.Terminating == terminating && !e.heardOf(g.Name, h) {
				names = union(names, []string{g.Name})
			}
		}
	}
	return names
}

func (e *exam) unheard(groups []string, terminating bool) finding.Finding {
	what, late := "launch", "a node that is Ready waits that much longer"
	if terminating {
		what, late = "terminate", "the drain begins that much later"
	}
	return finding.Finding{
		Severity: finding.Warning, ID: idGroupUnheard, Object: "group " + list(groups),
		Problem: fmt.Sprintf("no rule brings what its %s hook says to the queue. Lifeboat sees it when it looks at the group, every 30 seconds: %s", what, late),
		Fix:     e.apply() + " --groups all",
	}
}

// silent tells whether no rule at all brings a kind, which is said already.
func (e *exam) silent(kind string) bool {
	return !slices.ContainsFunc(e.all, func(r *rule) bool {
		return r.hears(e.Region) && len(r.To(e.Queue)) > 0 && slices.Contains(r.kinds, kind)
	})
}

// heardOf tells whether the queue gets what a hook of a group says: by a rule, or
// since the hook tells the queue itself.
func (e *exam) heardOf(group string, h Hook) bool {
	if h.Target == e.Queue {
		return true
	}
	event, err := hookEvent(e.Snapshot, group, h)
	if err != nil {
		return true // nobody can say
	}
	return slices.ContainsFunc(e.all, func(r *rule) bool {
		feeds := !r.TargetsKnown || len(r.To(e.Queue)) > 0
		return feeds && r.hears(e.Region) && (r.open || r.compiled != nil && r.compiled.CouldMatch(event, hookFields()...))
	})
}

// hookFields are the fields of a hook's event that are known beforehand.
func hookFields() []string {
	return []string{"account", "region", "detail.AutoScalingGroupName", "detail.LifecycleHookName", "detail.LifecycleTransition"}
}

// hookEvent is what EventBridge would bring of a hook.
func hookEvent(s snapshot.Snapshot, group string, h Hook) (*pattern.Event, error) {
	name := "launch-lifecycle-action"
	if h.Terminating {
		name = "terminate-lifecycle-action"
	}
	i := slices.IndexFunc(pattern.Samples(), func(sample pattern.Sample) bool { return sample.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no sample %s", name)
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

// checkAnswerers looks for a second program that answers the hooks of the cluster's
// groups. Whoever answers first lets the instance go: before the other has drained
// it.
func checkAnswerers(e *exam) []finding.Finding {
	n := e.cluster.NTH
	if n == nil {
		return nil
	}
	if n.reads(snapshot.Name(e.Queue)) {
		return []finding.Finding{{
			Severity: finding.Broken, ID: idNTHSameQueue, Object: n.Object,
			Problem: "it reads the queue " + snapshot.Name(e.Queue) + " too: every notice goes to one of the two, and the other never hears of it",
			Fix:     "stop it: kubectl " + n.scaleDown() + "; or give it its own queue back (docs/guides/from-nth.md)",
		}}
	}
	var groups []string
	for _, g := range e.cluster.Groups {
		told := slices.ContainsFunc(g.Hooks, func(h Hook) bool { return n.Queue != "" || h.Target != "" && n.reads(snapshot.Name(h.Target)) })
		if told {
			groups = append(groups, g.Name)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Warning, ID: idNTHAnswersToo, Object: n.Object,
		Problem: fmt.Sprintf("it hears of the lifecycle hooks of %s and answers every hook of an instance that it has drained, Lifeboat's as well: the instance goes, whatever Lifeboat's policy still waits for", list(groups)),
		Fix:     "stop it once Lifeboat runs: kubectl " + n.scaleDown() + " (docs/guides/from-nth.md)",
	}}
}

// scaleDown are the arguments of kubectl that stop a tool.
func (t *Tool) scaleDown() string {
	kind, name, _ := strings.Cut(t.Object, " ")
	namespace, name, _ := strings.Cut(name, "/")
	if kind == "daemonset" {
		return fmt.Sprintf("--namespace %s delete daemonset %s", namespace, name)
	}
	return fmt.Sprintf("--namespace %s scale %s %s --replicas 0", namespace, kind, name)
}
