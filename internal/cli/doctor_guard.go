package cli

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// guard checks what the guard of Karpenter's NodeClaims depends on: the name of Karpenter's
// account, and the lease that is its clock.
func (d *doctorRun) guard(ctx context.Context, found admission.Found) ([]finding.Finding, error) {
	namespace, name := admission.Clock(found.Bindings)
	if !found.Guard || name == "" {
		return nil, nil
	}
	var deployments appsv1.DeploymentList
	if err := d.kube.list(ctx, "deployments of Karpenter", &deployments, client.MatchingLabels{nameLabel: karpenterName}); err != nil {
		return nil, err
	}
	g := admission.Guard{Lease: namespace + "/" + name}
	for _, o := range deployments.Items {
		g.Account = "system:serviceaccount:" + o.Namespace + ":" + o.Spec.Template.Spec.ServiceAccountName
	}
	var leases coordinationv1.LeaseList
	if err := d.kube.list(ctx, "leases of Karpenter", &leases, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for _, lease := range leases.Items {
		if lease.Name == name && lease.Spec.RenewTime != nil {
			g.Renewed = lease.Spec.RenewTime.Time
		}
	}
	return admission.CheckGuard(found, g, d.now()), nil
}

// defeated adds the policies that Karpenter defeats if it deletes their nodes, and whether the
// guard prevents that. Without the controller's arguments it is not known.
func (d *doctorRun) defeated(ctx context.Context, found *doctor.Cluster) error {
	if d.lifeboat.Controller == nil && len(d.lifeboat.Failed) > 0 {
		return nil
	}
	found.Guard = argument(d.controllerArgs, "--karpenter-guard") != ""
	var policies v1beta1.InterruptionPolicyList
	if err := d.kube.list(ctx, "policies", &policies); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range d.nodes {
		if !replacement.IsKarpenters(&d.nodes[i]) {
			continue
		}
		if name, what := policy.Restriction(policies.Items, &d.nodes[i]); name != "" && !seen[name] {
			seen[name] = true
			found.Void = append(found.Void, "policy "+name+" ("+what+")")
		}
	}
	return nil
}
