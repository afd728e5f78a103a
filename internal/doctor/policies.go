package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// CheckPolicies reports InterruptionPolicies that are not in force, and those of which only
// the name decides which one applies to a node.
func CheckPolicies(policies []v1beta1.InterruptionPolicy, nodes []corev1.Node) []finding.Finding {
	var all []finding.Finding
	for i := range policies {
		if wrong := policy.Validate(policies[i].Spec); len(wrong) > 0 {
			all = append(all, finding.Finding{
				Severity: finding.Warning, ID: idPolicyInvalid, Object: "interruptionpolicy " + policies[i].Name,
				Problem: "it is not in force: " + strings.Join(wrong, "; "),
				Fix:     "correct it: kubectl edit interruptionpolicy " + policies[i].Name,
			})
		}
	}
	return append(all, tiedPolicies(policies, nodes)...)
}

// tiedPolicies reports policies that select the same node with the same priority, once
// for each set of policies.
func tiedPolicies(policies []v1beta1.InterruptionPolicy, nodes []corev1.Node) []finding.Finding {
	var all []finding.Finding
	for n := range nodes {
		var names []string
		highest := int32(0)
		for i := range policies {
			p := &policies[i]
			switch {
			case !policy.Selects(p, &nodes[n]):
			case len(names) == 0 || p.Spec.Priority > highest:
				names, highest = []string{p.Name}, p.Spec.Priority
			case p.Spec.Priority == highest:
				names = append(names, p.Name)
			}
		}
		if len(names) < 2 {
			continue
		}
		slices.Sort(names)
		object := "interruptionpolicies " + joinList(names)
		if slices.ContainsFunc(all, func(f finding.Finding) bool { return f.Object == object }) {
			continue
		}
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idPoliciesTied, Object: object,
			Problem: fmt.Sprintf("they select the same nodes, for example %s, with the same priority %d: only %s applies, because its name is first", nodes[n].Name, highest, names[0]),
			Fix:     fmt.Sprintf(`kubectl patch interruptionpolicy %s --type merge -p '{"spec":{"priority":%d}}', or select other nodes`, names[len(names)-1], int64(highest)+1),
		})
	}
	return all
}
