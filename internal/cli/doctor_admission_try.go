package cli

import (
	"context"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission/try"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// tryPolicies sends, as dry runs, one request for each policy that the policy must
// refuse. The policy of agents depends on a claim of their tokens, which only the API
// server can issue: it is not tried.
func (d *doctorRun) tryPolicies(ctx context.Context, hookNamespaces []string) []finding.Finding {
	if d.kube.as == nil {
		return nil
	}
	ctx, cancel := d.kube.limit(ctx)
	defer cancel()
	var all []finding.Finding
	add := func(policy string, err error) {
		if f := verdict(policy, err); f != nil {
			all = append(all, *f)
		}
	}
	add(admission.Interruptions, try.Interruption(ctx, d.kube))
	as, err := d.kube.asController()
	if err != nil {
		return append(all, admission.Untried(admission.Controller, err))
	}
	if len(d.nodes) > 0 {
		add(admission.Controller, try.Node(ctx, as, d.nodes[0].Name))
	}
	for _, namespace := range hookNamespaces {
		add(admission.Hooks, try.Job(ctx, as, namespace))
	}
	return all
}
