package scenario

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// nodeGroupConditions are the conditions of a NodeGroup by their names in a script.
func nodeGroupConditions() map[string]string {
	return map[string]string{
		"ready": v1beta1.ConditionReady, "found": v1beta1.ConditionFound,
		"hooks-ready": v1beta1.ConditionHooksReady, "synced": v1beta1.ConditionSynced,
	}
}

// NodeGroup records a NodeGroup at time t; gone means that it was deleted.
func (w *World) NodeGroup(t time.Time, g *v1beta1.NodeGroup, gone bool) []Moment {
	before := w.nodeGroups[g.Name]
	if gone {
		delete(w.nodeGroups, g.Name)
		return []Moment{w.moment(t, MomentReported, "", "", "NodeGroup "+g.Name+" is deleted")}
	}
	w.nodeGroups[g.Name] = g
	readiness := describeReadiness(g)
	if readiness == "" || before != nil && describeReadiness(before) == readiness {
		return nil
	}
	return []Moment{w.moment(t, MomentReported, "", "", "NodeGroup "+g.Name+": "+readiness)}
}

// describeReadiness describes the condition Ready of a NodeGroup.
func describeReadiness(g *v1beta1.NodeGroup) string {
	c := meta.FindStatusCondition(g.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case c == nil:
		return ""
	case c.Status == metav1.ConditionTrue:
		return "ready: " + c.Message
	default:
		return "not ready: " + c.Message
	}
}

// nodeGroupIs: a NodeGroup has a condition. Like recordIs it checks Lifeboat's own data, not
// Lifeboat's actions.
type nodeGroupIs struct{ Name, Condition string }

func (c nodeGroupIs) Holds(w *World) (bool, string) {
	g := w.nodeGroups[c.Name]
	if g == nil {
		return false, "there is no NodeGroup " + c.Name
	}
	var so []string
	for _, one := range g.Status.Conditions {
		so = append(so, fmt.Sprintf("%s=%s (%s)", one.Type, one.Status, one.Message))
	}
	return meta.IsStatusConditionTrue(g.Status.Conditions, nodeGroupConditions()[c.Condition]), "its conditions are " + strings.Join(so, ", ")
}
