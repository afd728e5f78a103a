package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/installed"
)

// admissionPolicies checks that the chart's admission policies exist, are those of this
// version and are in force; and that its FlowSchemas exist. It checks nothing if the
// chart is not installed.
func (d *doctorRun) admissionPolicies(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, nil
	}
	var accounts corev1.ServiceAccountList
	if err := d.kube.list(ctx, "Lifeboat's service accounts", &accounts, client.InNamespace(lifeboatNamespace)); err != nil {
		return nil, err
	}
	has := func(account string) bool {
		return slices.ContainsFunc(accounts.Items, func(a corev1.ServiceAccount) bool { return a.Name == account })
	}
	agents := has(admission.Agent) || d.agentNamespace != ""
	if !has(lifeboatController) {
		return nil, nil
	}
	var own appsv1.Deployment
	if _, err := d.kube.findController(ctx, &own); err != nil {
		return nil, err
	}
	var jobs []string
	if t := tool("deployment", own.ObjectMeta, own.Spec.Template.Spec, "", "--hook-namespaces"); t.Queue != "" {
		jobs = strings.Split(t.Queue, ",")
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := d.kube.list(ctx, "admission policies", &policies); err != nil {
		return nil, err
	}
	if err := d.kube.list(ctx, "bindings of admission policies", &bindings); err != nil {
		return nil, err
	}
	found := admission.Found{
		Policies: policies.Items, Bindings: bindings.Items, Agents: agents, Jobs: len(jobs) > 0,
		Guard: tool("deployment", own.ObjectMeta, own.Spec.Template.Spec, "", "--karpenter-guard").Queue != "",
	}
	all, err := admission.Check(found)
	if err != nil {
		return nil, err
	}
	guard, err := d.guard(ctx, found)
	if err != nil {
		return nil, err
	}
	all = append(all, guard...)
	if len(all) == 0 { // a request that a missing policy does not refuse says nothing new
		all = d.tryPolicies(ctx, jobs)
	}
	flows, err := d.flowSchemas(ctx, agents)
	return append(all, flows...), err
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
	default:
		f = admission.Untried(policy, err)
	}
	return &f
}
