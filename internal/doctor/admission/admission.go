// Package admission compares the admission policies in the cluster with those of this
// version's chart. It is pure.
package admission

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/installed"
)

// IDs of the findings. docs/guides/doctor.md describes each of them.
const (
	PolicyMissing = "admission-policy-missing"
	PolicyChanged = "admission-policy-changed"
	PolicyUnbound = "admission-policy-unbound"
	NotInForce    = "admission-policy-not-in-force"
	NotTried      = "admission-policy-not-tried"
	FlowMissing   = "flow-schema-missing"
	GuardAccount  = "karpenter-guard-account"
	GuardNoClock  = "karpenter-guard-no-clock"
	Refused       = "write-refused"
	NotWritten    = "write-not-tried"
)

// IDs returns the ids of all findings.
func IDs() []string {
	return []string{PolicyMissing, PolicyChanged, PolicyUnbound, NotInForce, NotTried, FlowMissing, GuardAccount, GuardNoClock, Refused, NotWritten}
}

// The policies of the chart.
const (
	Agent         = "lifeboat-agent"
	Controller    = "lifeboat-controller"
	Hooks         = "lifeboat-hooks"
	Interruptions = "lifeboat-interruptions"
	Pauses        = "lifeboat-pauses"
	Karpenter     = "lifeboat-karpenter"
)

// policies is the chart's rendering, which a test of sandbox/chart compares and updates.
//
//go:embed policies.yaml
var policies []byte

// fix is a command that installs the policies again.
var fix = installed.Upgrade("") + ", with the chart of this version"

// effects says what each policy prevents.
var effects = map[string]string{
	Agent:         "an agent's token can then write about every node, not only about its own",
	Controller:    "the controller's token can then change every pod and every node",
	Hooks:         "the author of a policy can then take over a node with a hook's Job",
	Interruptions: "an operator can then write notices, and act in another person's name",
	Pauses:        "an operator can then pause in another person's name",
	Karpenter:     "Karpenter can then delete nodes whose policy refuses or delays that",
}

// Found is what the cluster contains.
type Found struct {
	Policies []admissionv1.ValidatingAdmissionPolicy
	Bindings []admissionv1.ValidatingAdmissionPolicyBinding
	// Agents, Jobs and Guard say whether agents are installed, whether hooks may run Jobs,
	// and whether the controller guards NodeClaims from Karpenter.
	Agents, Jobs, Guard bool
}

// Expected returns the policies of this version's chart, by name.
func Expected() (map[string]admissionv1.ValidatingAdmissionPolicySpec, error) {
	out := map[string]admissionv1.ValidatingAdmissionPolicySpec{}
	for doc := range bytes.SplitSeq(policies, []byte("\n---\n")) {
		var p admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal(doc, &p); err != nil {
			return nil, fmt.Errorf("reading the expected admission policies: %w", err)
		}
		out[p.Name] = p.Spec
	}
	return out, nil
}

// Check returns the findings about policies and bindings.
func Check(found Found) ([]finding.Finding, error) {
	expected, err := Expected()
	if err != nil {
		return nil, err
	}
	var all []finding.Finding
	for _, name := range []string{Agent, Controller, Hooks, Interruptions, Pauses, Karpenter} {
		if name == Agent && !found.Agents || name == Hooks && !found.Jobs || name == Karpenter && !found.Guard {
			continue
		}
		if f := checkPolicy(name, expected[name], found); f != nil {
			all = append(all, *f)
		}
	}
	return all, nil
}

func checkPolicy(name string, want admissionv1.ValidatingAdmissionPolicySpec, found Found) *finding.Finding {
	f := &finding.Finding{Severity: finding.Broken, Object: "validatingadmissionpolicy " + name, Fix: fix}
	i := slices.IndexFunc(found.Policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
	if i < 0 {
		f.ID, f.Problem = PolicyMissing, "the policy does not exist: "+effects[name]
		return f
	}
	got := found.Policies[i]
	if difference := compare(want, got.Spec); difference != "" {
		f.ID, f.Problem = PolicyChanged, "the policy is not the one of this version, "+difference+": perhaps "+effects[name]
		return f
	}
	if !slices.ContainsFunc(found.Bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return binds(b, name) }) {
		f.ID, f.Problem = PolicyUnbound, "no binding makes the policy deny requests in all namespaces: "+effects[name]
		return f
	}
	return nil
}

// binds reports whether a binding makes a policy deny all requests that it matches.
func binds(b admissionv1.ValidatingAdmissionPolicyBinding, policy string) bool {
	if b.Spec.PolicyName != policy || !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
		return false
	}
	m := b.Spec.MatchResources
	return m == nil || len(m.ResourceRules)+len(m.ExcludeResourceRules) == 0 && isEmpty(m)
}

func isEmpty(m *admissionv1.MatchResources) bool {
	for _, s := range []*metav1.LabelSelector{m.NamespaceSelector, m.ObjectSelector} {
		if s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
			return false
		}
	}
	return true
}

// compare returns the first difference that matters, or "". It ignores what the API server
// fills in. Helm's line breaks within an expression mean nothing.
func compare(want, got admissionv1.ValidatingAdmissionPolicySpec) string {
	if policy := got.FailurePolicy; policy != nil && *policy != admissionv1.Fail && (want.FailurePolicy == nil || *policy != *want.FailurePolicy) {
		return "its failurePolicy is " + string(*got.FailurePolicy)
	}
	if m := got.MatchConstraints; m == nil || len(m.ExcludeResourceRules) > 0 || !isEmpty(m) || rules(want) != rules(got) {
		return "its matchConstraints differ"
	}
	for _, part := range []struct {
		name      string
		want, got []string
	}{
		{"matchConditions", conditions(want), conditions(got)},
		{"variables", variables(want), variables(got)},
		{"validations", validations(want), validations(got)},
	} {
		if !slices.Equal(part.want, part.got) {
			return "its " + part.name + " differ"
		}
	}
	return ""
}

func rules(s admissionv1.ValidatingAdmissionPolicySpec) string {
	if s.MatchConstraints == nil {
		return ""
	}
	var out []string
	for _, r := range s.MatchConstraints.ResourceRules {
		out = append(out, fmt.Sprint(r.APIGroups, r.APIVersions, r.Resources, r.Operations, r.ResourceNames))
	}
	return strings.Join(out, "\n")
}

func conditions(s admissionv1.ValidatingAdmissionPolicySpec) (out []string) {
	for _, c := range s.MatchConditions {
		if c.Name == isKarpenter { // the values of a release determine the account, and CheckGuard checks it
			c.Expression = ""
		}
		out = append(out, plain(c.Expression))
	}
	return out
}

func variables(s admissionv1.ValidatingAdmissionPolicySpec) (out []string) {
	for _, v := range s.Variables {
		out = append(out, v.Name+" = "+plain(v.Expression))
	}
	return out
}

func validations(s admissionv1.ValidatingAdmissionPolicySpec) (out []string) {
	for _, v := range s.Validations {
		out = append(out, plain(v.Expression))
	}
	return out
}

// hookNamespaces is a list that the values of a release determine.
var hookNamespaces = regexp.MustCompile(`object\.metadata\.namespace in \[[^]]*\]`)

// outOfServiceOption is whether the controller may set the out-of-service taint, which the values
// of a release determine.
var outOfServiceOption = regexp.MustCompile(`^(true|false) \|\| variables\.isPod \|\| !variables\.spec\.\?taints`)

func plain(expression string) string {
	expression = hookNamespaces.ReplaceAllString(strings.Join(strings.Fields(expression), " "), "object.metadata.namespace in []")
	return outOfServiceOption.ReplaceAllString(expression, "variables.isPod || !variables.spec.?taints")
}

// Ineffective returns the finding about a policy that let a request pass which it must deny.
func Ineffective(name string) finding.Finding {
	return finding.Finding{
		Severity: finding.Broken, ID: NotInForce, Object: "validatingadmissionpolicy " + name,
		Problem: "the API server accepted a test request that the policy must refuse: " + effects[name],
		Fix:     "kubectl get validatingadmissionpolicy,validatingadmissionpolicybinding -o yaml shows what is there; " + fix,
	}
}

// WriteRefused returns the finding about a request that Lifeboat sends for an interruption, and that
// admission refuses. The API server's answer names what refuses it.
func WriteRefused(object, request, effect string, err error) finding.Finding {
	return finding.Finding{
		Severity: finding.Broken, ID: Refused, Object: object,
		Problem: fmt.Sprintf("the API server refuses the %s that Lifeboat sends for an interruption, so that %s: %v", request, effect, err),
		Fix:     "exempt the service account lifeboat-system:lifeboat-controller in the policy or the webhook that the answer names",
	}
}

// WriteNotDry returns the finding about a request that cannot be tried: a webhook for it supports no dry
// runs. The real request may well be accepted.
func WriteNotDry(object, request string, err error) finding.Finding {
	return finding.Finding{
		Severity: finding.Info, ID: NotWritten, Object: object,
		Problem: fmt.Sprintf("cannot check whether the API server accepts the %s that Lifeboat sends for an interruption: %v", request, err),
		Fix:     "set sideEffects: None or NoneOnDryRun for the webhook, if that is true for it; or rehearse an interruption",
	}
}

// WriteNotTried returns the finding about writes that the user could not try.
func WriteNotTried(object string, err error) finding.Finding {
	return finding.Finding{
		Severity: finding.Info, ID: NotWritten, Object: object,
		Problem: fmt.Sprintf("whether the API server accepts what Lifeboat writes is not known: %v", err),
		Fix:     "run the doctor as a user who may impersonate Lifeboat's ServiceAccounts, such as an administrator",
	}
}

// Masked returns the finding about a policy whose test request something else refused.
func Masked(name string, err error) finding.Finding {
	return finding.Finding{
		Severity: finding.Info, ID: NotTried, Object: "validatingadmissionpolicy " + name,
		Problem: fmt.Sprintf("another policy or webhook refused the test request, so only the policy's content is checked: %v", err),
	}
}

// Untried returns the finding about a policy that the user could not try.
func Untried(name string, err error) finding.Finding {
	return finding.Finding{
		Severity: finding.Info, ID: NotTried, Object: "validatingadmissionpolicy " + name,
		Problem: fmt.Sprintf("no test request was possible, so only the policy's content is checked: %v", err),
		Fix:     "run the doctor as a user who may impersonate Lifeboat's ServiceAccounts and create Interruptions, such as an administrator",
	}
}
