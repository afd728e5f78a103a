package workloads

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// AddValidatingWebhooks adds a configuration of webhooks.
func (s *Survey) AddValidatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration) {
	for _, w := range c.Webhooks {
		s.addWebhook("ValidatingWebhookConfiguration "+c.Name+" ("+w.Name+")", w.FailurePolicy, w.Rules)
	}
}

// AddMutatingWebhooks adds a configuration of webhooks.
func (s *Survey) AddMutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration) {
	for _, w := range c.Webhooks {
		s.addWebhook("MutatingWebhookConfiguration "+c.Name+" ("+w.Name+")", w.FailurePolicy, w.Rules)
	}
}

// addWebhook records a webhook without whose answer no pod is evicted. The default of
// failurePolicy is Fail.
func (s *Survey) addWebhook(name string, failure *admissionv1.FailurePolicyType, rules []admissionv1.RuleWithOperations) {
	if failure != nil && *failure != admissionv1.Fail || !slices.ContainsFunc(rules, coversEviction) {
		return
	}
	s.webhooks = append(s.webhooks, name)
}

// coversEviction reports whether the creation of a pod's subresource eviction matches.
func coversEviction(r admissionv1.RuleWithOperations) bool {
	creates := slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll)
	core := slices.Contains(r.APIGroups, "") || slices.Contains(r.APIGroups, "*")
	return creates && core && slices.ContainsFunc(r.Resources, func(name string) bool {
		return name == "pods/eviction" || name == "pods/*" || name == "*/eviction" || name == "*/*"
	})
}

func (s *Survey) checkWebhooks() listFinding {
	slices.Sort(s.webhooks)
	return listFinding{names: s.webhooks, Finding: finding.Finding{
		Severity: finding.Warning, ID: EvictionWebhook, Object: "webhooks for evictions",
		Problem: "with failurePolicy Fail, each eviction waits for their answer, and is refused without it: if their pods run on the interrupted node, evictions stop until Lifeboat deletes the pods at their last call",
		Fix:     "set failurePolicy to Ignore, or run two replicas of the webhook on different nodes with a timeoutSeconds of 5 or less",
	}}
}
