//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// doctorUser has every permission that the doctor uses.
const doctorUser = "doctor"

const doctorAudit = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "users": ["` + doctorUser + `"]}, {"level": "None"}]}`

// doctorRights are the permissions of the doctor, as group/resource and verb, with the findings
// that it cannot have without it.
var doctorRights = map[string][]string{
	"/nodes list":                  {"policies-tied", "grace-exceeds-notice", "single-replica", "not-ready-in-rotation", "no-prestop", "no-readiness-probe", "write-refused"},
	"/pods list":                   {"grace-exceeds-notice", "single-replica", "not-ready-in-rotation", "no-prestop", "no-readiness-probe"},
	"/services list":               {"not-ready-in-rotation", "no-prestop", "no-readiness-probe"},
	"/serviceaccounts get":         nil,
	"/serviceaccounts list":        nil,
	"/serviceaccounts impersonate": {"role-incomplete", "write-refused"},
	"/groups impersonate":          {"role-incomplete", "write-refused"},
	"admissionregistration.k8s.io/mutatingwebhookconfigurations list":     nil,
	"admissionregistration.k8s.io/validatingadmissionpolicies list":       nil,
	"admissionregistration.k8s.io/validatingadmissionpolicybindings list": nil,
	"admissionregistration.k8s.io/validatingwebhookconfigurations list":   {"eviction-webhook"},
	"apiextensions.k8s.io/customresourcedefinitions get":                  {"crd-old"},
	"apps/daemonsets list":                          {"lifeboat-versions"},
	"apps/deployments get":                          {"lifeboat-versions"},
	"apps/deployments list":                         {"karpenter-same-queue", "karpenter-polls", "single-replica"},
	"apps/statefulsets list":                        nil,
	"coordination.k8s.io/leases get":                nil,
	"flowcontrol.apiserver.k8s.io/flowschemas list": {"flow-schema-missing"},
	"lifeboat.dev/interruptionpolicies list":        {"policies-tied"},
	"lifeboat.dev/interruptions create":             nil,
	"lifeboat.dev/interruptions list":               nil,
	"lifeboat.dev/nodegroups list":                  nil,
	"policy/poddisruptionbudgets list":              {"budget-never-allows"},
}

// unchecked are the findings about what could not be checked.
var unchecked = []string{"part-not-checked", "lifeboat-not-checked", "role-not-checked", "admission-policy-not-tried", "write-not-tried"}

// withoutEffect are permissions that change no verdict: other answers are used instead.
var withoutEffect = []string{"/serviceaccounts get"}

// withoutOnePermission checks that users who lack one permission of the doctor get the findings
// that do not need it. They get no other finding, and read that something was not checked.
func (p *patient) withoutOnePermission(log string) {
	t := p.t
	p.breakMuch()
	users := p.doctorUsers()
	var all []reported
	p.until("the permissions to be in force", 20*time.Second, func(context.Context) (bool, error) {
		all = p.findingsAs(t, doctorUser, users)
		return !slices.ContainsFunc(all, isUnchecked), errFound(all)
	})
	p.checkRightsUsed(log)
	lost := map[string]bool{}
	for _, ids := range doctorRights {
		for _, id := range ids {
			lost[id] = true
		}
	}
	for id := range lost {
		if !has(all, id) {
			t.Errorf("the installation lacks the finding %s to begin with", id)
		}
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, 3)
	for _, right := range slices.Sorted(maps.Keys(doctorRights)) {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			for _, wrong := range compareFindings(right, all, p.findingsAs(t, right, users)) {
				t.Errorf("without %q: %s", right, wrong)
			}
		})
	}
	running.Wait()
}

// compareFindings says what is wrong about the findings of a user without a permission.
func compareFindings(right string, all, got []reported) (wrong []string) {
	same := func(a reported) func(reported) bool {
		return func(b reported) bool { return a.ID == b.ID && a.Object == b.Object && a.Severity == b.Severity }
	}
	said := slices.ContainsFunc(got, isUnchecked)
	if said == slices.Contains(withoutEffect, right) {
		wrong = append(wrong, fmt.Sprintf("something was not checked: %v", said))
	}
	for _, f := range all {
		if !slices.ContainsFunc(got, same(f)) && !slices.Contains(doctorRights[right], f.ID) {
			wrong = append(wrong, fmt.Sprintf("the finding %s of %s is lost", f.ID, f.Object))
		}
	}
	for _, f := range got {
		if !slices.ContainsFunc(all, same(f)) && !isUnchecked(f) {
			wrong = append(wrong, fmt.Sprintf("a false finding: %s %s of %s: %s", f.Severity, f.ID, f.Object, f.Problem))
		}
	}
	return wrong
}

func isUnchecked(f reported) bool { return slices.Contains(unchecked, f.ID) }

// breakMuch breaks several parts of the installation.
func (p *patient) breakMuch() {
	p.t.Helper()
	name := p.spotRule()
	_, err := p.events.DisableRule(p.t.Context(), &eventbridge.DisableRuleInput{Name: &name})
	p.must(err)
	p.must(p.AWS().States.AutoScaling.DeleteHook(workers, v1beta1.TerminateHook))
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, PublishNotReadyAddresses: true, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	url, none := "https://127.0.0.1/", admissionv1.SideEffectClassNone
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "evictions"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "evictions.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			}},
		}},
	}
	karpenter := karpenterOn(p.Wiring().Queue.Name)
	karpenter.Labels["app.kubernetes.io/version"] = "1.14.0"
	p.must(p.client.DeleteAllOf(p.t.Context(), &policyv1.PodDisruptionBudget{}, client.InNamespace("default")))
	for _, o := range []client.Object{service, webhook, karpenter, pdbOf("never", "web", 0), policyNamed("first"), policyNamed("second")} {
		p.must(client.IgnoreNotFound(p.client.Delete(p.t.Context(), o))) // one of an earlier subtest
		o.SetUID("")
		o.SetResourceVersion("")
		p.apply(o)
	}
	patch := func(o client.Object, namespace, name, patch string) {
		o.SetNamespace(namespace)
		o.SetName(name)
		p.must(p.client.Patch(p.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	patch(webDeployment(), "default", "web", `{"spec":{"replicas":1,"template":{"spec":{"terminationGracePeriodSeconds":600}}}}`)
	patch(&appsv1.DaemonSet{}, chart.Namespace, chart.AgentAccount, `{"metadata":{"labels":{"app.kubernetes.io/version":"0.0.1"}}}`)
	flow := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: chart.ControllerAccount}}
	p.must(p.client.Delete(p.t.Context(), flow))
	oldCRD(p)
	p.deny("replicasets", "get")
}

// doctorUsers creates a user with all permissions, and for each permission a user without it. It
// returns their kubeconfigs.
func (p *patient) doctorUsers() map[string]string {
	p.t.Helper()
	paths := map[string]string{}
	for i, without := range append([]string{doctorUser}, slices.Sorted(maps.Keys(doctorRights))...) {
		user := doctorUser
		if i > 0 {
			user = fmt.Sprintf("doctor-without-%d", i)
		}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
		for right := range doctorRights {
			if right == without {
				continue
			}
			place, verb, _ := strings.Cut(right, " ")
			group, resource, _ := strings.Cut(place, "/")
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}})
		}
		p.apply(role, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
		path, err := p.UserKubeconfig(user)
		p.must(err)
		paths[without] = path
	}
	return paths
}

// findingsAs returns the findings of one of the users.
func (p *patient) findingsAs(t *testing.T, user string, paths map[string]string) []reported {
	t.Helper()
	return p.of(t).findingsWith("--kubeconfig", paths[user])
}

// checkRightsUsed compares the permissions with the requests of the user who has all of them, and
// with the guide. The log has no line for an impersonation.
func (p *patient) checkRightsUsed(log string) {
	p.t.Helper()
	used := map[string]bool{"/serviceaccounts impersonate": true, "/groups impersonate": true}
	for _, q := range readAudit(p.t, log)[doctorUser] {
		if q.ImpersonatedUser.Username == "" {
			used[q.String()] = true
		}
	}
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "doctor.md"))
	p.must(err)
	for right := range doctorRights {
		if !used[right] {
			p.t.Errorf("the doctor never used %q", right)
		}
		place, _, _ := strings.Cut(right, " ")
		if _, resource, _ := strings.Cut(place, "/"); !strings.Contains(string(guide), "`"+resource+"`") {
			p.t.Errorf("docs/guides/doctor.md does not name %q among the permissions", right)
		}
	}
	for right := range used {
		if _, known := doctorRights[right]; !known {
			p.t.Errorf("the doctor used %q: add it to the list, and to docs/guides/doctor.md", right)
		}
	}
}
