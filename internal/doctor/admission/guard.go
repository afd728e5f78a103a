package admission

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// isKarpenter is the condition that names Karpenter's account.
const isKarpenter = "is-karpenter"

// clockLimit is how old the last renewal of Karpenter's lease may be. A leader renews it every
// two seconds.
const clockLimit = 2 * time.Minute

// Clock returns the namespace and name of the lease from which the guard takes the time. They are
// empty without a binding.
func Clock(bindings []admissionv1.ValidatingAdmissionPolicyBinding) (namespace, name string) {
	for _, b := range bindings {
		if b.Spec.PolicyName == Karpenter && b.Spec.ParamRef != nil {
			return b.Spec.ParamRef.Namespace, b.Spec.ParamRef.Name
		}
	}
	return "", ""
}

// Guard is what the guard of NodeClaims depends on.
type Guard struct {
	// Account is the user name of Karpenter's ServiceAccount; empty if Karpenter was not found.
	Account string
	// Lease is the namespace and name of the lease, and Renewed its last renewal; zero if there is
	// no such lease.
	Lease   string
	Renewed time.Time
}

// CheckGuard returns the findings about a guard whose policy and binding exist.
func CheckGuard(found Found, g Guard, now time.Time) []finding.Finding {
	i := slices.IndexFunc(found.Policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == Karpenter })
	if i < 0 || g.Account == "" {
		return nil
	}
	var all []finding.Finding
	object := "validatingadmissionpolicy " + Karpenter
	names := slices.ContainsFunc(found.Policies[i].Spec.MatchConditions, func(c admissionv1.MatchCondition) bool {
		return c.Name == isKarpenter && strings.Contains(c.Expression, "'"+g.Account+"'")
	})
	if !names {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: GuardAccount, Object: object,
			Problem: fmt.Sprintf("Karpenter runs as %s, and the guard is about another account: %s", g.Account, effects[Karpenter]),
			Fix:     "set karpenter.namespace and karpenter.serviceAccount of Lifeboat's chart to those of Karpenter",
		})
	}
	if now.Sub(g.Renewed) > clockLimit {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: GuardNoClock, Object: object,
			Problem: fmt.Sprintf("the guard takes the time from the lease %s, which Karpenter does not renew: %s", g.Lease, effects[Karpenter]),
			Fix:     "run Karpenter with leader election, as its chart does, and set karpenter.namespace of Lifeboat's chart to its namespace",
		})
	}
	return all
}
