package installed

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	lifeboatchart "github.com/lifeboat-dev/lifeboat/charts/lifeboat"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

const namespace = "lifeboat-system"

// Permission is one verb on one resource. An empty namespace means all of them.
type Permission struct{ Namespace, Group, Resource, Name, Verb string }

// Uses are the optional features in use that need permissions of their own.
type Uses struct {
	Surge bool // moves pods
	// Deregistration is that a policy waits for load balancers.
	Deregistration bool
}

// targetGroupBindings are what the controller lists for Uses.Deregistration.
const targetGroupBindings = "targetgroupbindings"

// Required returns the permissions that the controller needs. It leaves out the Role for hooks and that
// of the metrics, which depend on values, and what uses does not need.
func Required(uses Uses) ([]Permission, error) {
	var all []Permission
	for doc := range bytes.SplitSeq(lifeboatchart.Role, []byte("\n---\n")) {
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := yaml.Unmarshal(doc, &role); err != nil {
			return nil, fmt.Errorf("reading the chart's roles: %w", err)
		}
		if role.Name != "lifeboat-controller" || role.Namespace != "" && role.Namespace != namespace {
			continue
		}
		for _, rule := range role.Rules {
			all = append(all, permissions(role.Namespace, rule)...)
		}
	}
	return slices.DeleteFunc(all, func(p Permission) bool {
		return !uses.Surge && p.Resource == "pods" && p.Verb == "patch" || !uses.Deregistration && p.Resource == targetGroupBindings
	}), nil
}

func permissions(namespace string, rule rbacv1.PolicyRule) []Permission {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []Permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, Permission{namespace, group, resource, name, verb})
				}
			}
		}
	}
	return all
}

// Denied returns the permissions that rules do not grant. everywhere are the rules of
// a namespace without Roles, and own those of Lifeboat's namespace.
func Denied(required []Permission, everywhere, own []authorizationv1.ResourceRule) []Permission {
	return slices.DeleteFunc(slices.Clone(required), func(p Permission) bool {
		rules := everywhere
		if p.Namespace != "" {
			rules = own
		}
		return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool { return p.in(r) })
	})
}

func (p Permission) in(r authorizationv1.ResourceRule) bool {
	has := func(list []string, what string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, what)
	}
	return has(r.APIGroups, p.Group) && has(r.Resources, p.Resource) && has(r.Verbs, p.Verb) &&
		(len(r.ResourceNames) == 0 || p.Name != "" && slices.Contains(r.ResourceNames, p.Name))
}

// Attributes returns the request by which the API server tells whether it is allowed.
func (p Permission) Attributes() *authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(p.Resource, "/")
	return &authorizationv1.ResourceAttributes{
		Namespace: p.Namespace, Group: p.Group, Resource: resource, Subresource: sub, Name: p.Name, Verb: p.Verb,
	}
}

// String formats it as in "patch nodes".
func (p Permission) String() string {
	resource := p.Resource
	if p.Group != "" && p.Group != "apps" && p.Group != "policy" {
		resource += "." + p.Group
	}
	return p.Verb + " " + resource
}

// Upgrade is the command that installs the chart's objects again, with further flags. Helm 4
// applies them on the server: without --force-conflicts it refuses to change a field that
// a user edited. Helm 3 does not know that flag.
func Upgrade(flags string) string {
	if flags != "" {
		flags = " " + flags
	}
	return "helm upgrade lifeboat charts/lifeboat --namespace " + namespace + " --reuse-values --force-conflicts" + flags + " (Helm 3: without --force-conflicts)"
}

// Incomplete returns the finding about permissions that the controller does not have.
func Incomplete(denied []Permission) finding.Finding {
	var all []string
	var flags string
	for _, p := range denied {
		if p.Resource == targetGroupBindings {
			flags = "--set waitForDeregistration.enabled=true"
		}
		if !slices.Contains(all, p.String()) {
			all = append(all, p.String())
		}
	}
	const shown = 5
	named := strings.Join(all[:min(shown, len(all))], ", ")
	if more := len(all) - shown; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return finding.Finding{
		Severity: finding.Broken, ID: RoleIncomplete, Object: "serviceaccount " + namespace + "/lifeboat-controller",
		Problem: "the controller may not " + named + ": an interruption cannot take the step that needs it",
		Fix:     Upgrade(flags),
	}
}

// NotChecked returns the finding about permissions that the user could not check.
func NotChecked(err error) finding.Finding {
	return finding.Finding{
		Severity: finding.Unknown, ID: RoleNotChecked, Object: "serviceaccount " + namespace + "/lifeboat-controller",
		Problem: fmt.Sprintf("its permissions were not checked: %v", err),
		Fix:     "run the doctor as a user who may impersonate Lifeboat's ServiceAccounts, such as an administrator",
	}
}
