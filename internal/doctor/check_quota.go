package doctor

import (
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkRuleQuota reports a default bus whose rules soon reach the quota. Then no rule can be
// created, also not for another cluster. An account with more rules than the default quota
// evidently has a higher one, which the check does not know.
func checkRuleQuota(e *diagnosis) []finding.Finding {
	quota := defaultRuleQuota(e.Region)
	if e.BusRules*100 < quota*quotaWarning || e.BusRules > quota {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Warning, ID: idRuleQuota, Object: "bus default",
		Problem: fmt.Sprintf("it has %d rules, and the default quota in this region is %d: at the quota, no rule can be created or repaired. A cluster of Lifeboat has %d",
			e.BusRules, quota, len(e.desired.Rules)),
		Fix: e.mergeRules() + "delete rules that are not needed, or request a higher quota of EventBridge rules from AWS (Service Quotas). If the account has one, accept the finding: --baseline FILE --write-baseline",
	}}
}

// mergeRules is the command that merges the rules of this cluster, if they are separate.
func (e *diagnosis) mergeRules() string {
	if slices.ContainsFunc(e.desired.Rules, func(r awssetup.Rule) bool { return r.Role == awssetup.RoleEC2 }) {
		return ""
	}
	return "merge this cluster's rules to three: " + e.applyCommand() + " --few-rules; "
}

// quotaWarning is the percentage of a quota from which the doctor warns.
const quotaWarning = 80

// defaultRuleQuota is the default number of rules on a bus (EventBridge User Guide, "Amazon
// EventBridge quotas").
func defaultRuleQuota(region string) int {
	switch region {
	case "af-south-1", "eu-south-1":
		return 100
	}
	return 300
}
