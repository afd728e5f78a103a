package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/installed"
	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

// admissionPolicies checks that the chart's admission policies exist, are those of this
// version and are in force; and that its FlowSchemas exist. It checks nothing if the
// chart is not installed.
func (d *doctorRun) admissionPolicies(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, nil
	}
	var accounts corev1.ServiceAccountList
	err := d.kube.list(ctx, "Lifeboat's service accounts", &accounts, client.InNamespace(lifeboatNamespace))
	has := func(account string, program *doctor.Program) bool {
		return err != nil && program != nil || slices.ContainsFunc(accounts.Items, func(a corev1.ServiceAccount) bool { return a.Name == account })
	}
	if !has(lifeboatController, d.lifeboat.Controller) {
		return nil, err
	}
	var jobs []string
	if namespaces := argument(d.controllerArgs, "--hook-namespaces"); namespaces != "" {
		jobs = strings.Split(namespaces, ",")
	}
	agents := has(admission.Agent, d.lifeboat.Agents) || d.agentNamespace != ""
	all, errPolicies := d.comparePolicies(ctx, admission.Found{
		Agents: agents, Jobs: len(jobs) > 0, Guard: argument(d.controllerArgs, "--karpenter-guard") != "",
	})
	if len(all) == 0 { // a request that a missing policy does not refuse says nothing new
		all = d.tryPolicies(ctx, jobs)
	}
	flows, errFlows := d.flowSchemas(ctx, agents)
	return append(all, flows...), errors.Join(err, errPolicies, errFlows)
}

// comparePolicies compares the policies and their bindings with those of the chart. found says
// which of them are expected.
func (d *doctorRun) comparePolicies(ctx context.Context, found admission.Found) ([]finding.Finding, error) {
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := d.kube.list(ctx, "admission policies", &policies); err != nil {
		return nil, err
	}
	unbound := d.kube.list(ctx, "bindings of admission policies", &bindings)
	found.Policies, found.Bindings = policies.Items, bindings.Items
	all, err := admission.Check(found)
	if unbound != nil {
		all = slices.DeleteFunc(all, func(f finding.Finding) bool { return f.ID == admission.PolicyUnbound })
		return all, errors.Join(err, unbound)
	}
	guard, errGuard := d.guard(ctx, found)
	return append(all, guard...), errors.Join(err, errGuard)
}

// flowSchemas checks the chart's FlowSchemas.
func (d *doctorRun) flowSchemas(ctx context.Context, agents bool) ([]finding.Finding, error) {
	var found flowcontrolv1.FlowSchemaList
	if err := d.kube.list(ctx, "flow schemas", &found); err != nil {
		return nil, err
	}
	return flowFindings(found.Items, agents), nil
}

// flowFindings reports missing FlowSchemas. Without any, the values turn them off.
func flowFindings(found []flowcontrolv1.FlowSchema, agents bool) []finding.Finding {
	wanted := []string{"lifeboat-leader-election", "lifeboat-controller-background", "lifeboat-controller"}
	if agents {
		wanted = append(wanted, "lifeboat-agent")
	}
	var missing []string
	for _, name := range wanted {
		if !slices.ContainsFunc(found, func(s flowcontrolv1.FlowSchema) bool { return s.Name == name && !dangling(s) }) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	severity := finding.Warning
	if len(missing) == len(wanted) {
		severity = finding.Info
	}
	return []finding.Finding{{
		Severity: severity, ID: admission.FlowMissing, Object: "flowschema " + strings.Join(missing, ", "),
		Problem: "it does not exist, or refers to a priority level that does not: requests of other clients can delay evictions and lease renewals",
		Fix:     installed.Upgrade("--set flowControl.enabled=true"),
	}}
}

// dangling reports whether the schema refers to a missing priority level.
func dangling(s flowcontrolv1.FlowSchema) bool {
	return slices.ContainsFunc(s.Status.Conditions, func(c flowcontrolv1.FlowSchemaCondition) bool {
		return c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionTrue
	})
}

// verdict turns the answer to a test request into a finding, or nil.
func verdict(policy string, err error) *finding.Finding {
	var f finding.Finding
	switch {
	case err == nil:
		f = admission.Ineffective(policy)
	case strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s'", policy)):
		return nil
	case rejection.ByAdmission(err):
		f = admission.Masked(policy, err)
	default:
		f = admission.Untried(policy, err)
	}
	return &f
}
