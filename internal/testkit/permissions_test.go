package testkit_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

var update = flag.Bool("update", false, "rewrite the generated documents")

// permission is one verb on one resource, in the cluster or in Lifeboat's namespace.
type permission struct{ where, resource, verb string }

var rbacMarker = regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:(.+)$`)

// markedPermissions returns the permissions that the packages declare, with the packages.
func markedPermissions(t *testing.T) map[permission][]string {
	t.Helper()
	top, found := root(t), map[permission][]string{}
	texts(t, " .go ", func(name, text string) {
		for _, m := range rbacMarker.FindAllStringSubmatch(text, -1) {
			fields := map[string]string{}
			for _, field := range strings.Split(m[1], ",") {
				key, value, _ := strings.Cut(field, "=")
				fields[key] = strings.Trim(value, `"`)
			}
			where := "cluster"
			if fields["namespace"] != "" {
				where = "namespace"
			}
			for _, resource := range strings.Split(fields["resources"], ";") {
				for _, verb := range strings.Split(fields["verbs"], ";") {
					p := permission{where, qualified(fields["groups"], resource), verb}
					if dir := filepath.ToSlash(filepath.Dir(name)); !slices.Contains(found[p], dir) {
						found[p] = append(found[p], dir)
					}
				}
			}
		}
	})
	if len(found) == 0 {
		t.Fatalf("no RBAC marker in %s", top)
	}
	return found
}

func qualified(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// grantedPermissions returns the rules that the chart gives the controller.
func grantedPermissions(t *testing.T) map[permission]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "charts", "lifeboat", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	granted := map[permission]bool{}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := yaml.Unmarshal(doc, &role); err != nil {
			t.Fatal(err)
		}
		where := "cluster"
		if role.Kind == "Role" {
			where = "namespace"
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[permission{where, qualified(rule.APIGroups[0], resource), verb}] = true
				}
			}
		}
	}
	return granted
}

// The chart's rules are generated from the markers, so each has a package that needs it.
func TestEveryPermissionHasAPackage(t *testing.T) {
	marked := markedPermissions(t)
	for p := range grantedPermissions(t) {
		if len(marked[p]) == 0 {
			t.Errorf("%s %s in the %s: no package declares it; run make gen", p.verb, p.resource, p.where)
		}
	}
}

func rbacTable(t *testing.T) string {
	t.Helper()
	type row struct{ where, resource string }
	verbs, packages := map[row][]string{}, map[row][]string{}
	for p, dirs := range markedPermissions(t) {
		r := row{p.where, p.resource}
		verbs[r] = append(verbs[r], p.verb)
		packages[r] = append(packages[r], dirs...)
	}
	rows := slices.SortedFunc(maps.Keys(verbs), func(a, b row) int {
		return strings.Compare(a.where+" "+a.resource, b.where+" "+b.resource)
	})
	var out strings.Builder
	out.WriteString("| where | resource | verbs | packages that need them |\n|---|---|---|---|\n")
	for _, r := range rows {
		slices.Sort(packages[r])
		slices.Sort(verbs[r])
		fmt.Fprintf(&out, "| %s | `%s` | %s | %s |\n", r.where, r.resource, strings.Join(verbs[r], ", "),
			"`"+strings.Join(slices.Compact(packages[r]), "`, `")+"`")
	}
	return out.String()
}

// iamTable lists the statements of a policy.
func iamTable(d iam.Document) string {
	var out strings.Builder
	out.WriteString("| statement | effect | actions | resources | conditions |\n|---|---|---|---|---|\n")
	for _, s := range d.Statement {
		var conditions []string
		for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
			for _, key := range slices.Sorted(maps.Keys(s.Condition[operator])) {
				conditions = append(conditions, fmt.Sprintf("`%s %s %s`", operator, key, fmt.Sprint(s.Condition[operator][key])))
			}
		}
		fmt.Fprintf(&out, "| %s | %s | `%s` | `%s` | %s |\n", s.Sid, s.Effect, strings.Join(s.Action, "`, `"), strings.Join(s.Resource, "`, `"),
			strings.Join(conditions, ", "))
	}
	return out.String()
}

func permissionsPage(t *testing.T) string {
	t.Helper()
	w := awssetup.Desired("CLUSTER", "111122223333", "eu-west-1")
	g, err := w.ForGroups([]string{"GROUP"})
	if err != nil {
		t.Fatal(err)
	}
	shared := w
	shared.Topic = "TOPIC"
	var out strings.Builder
	out.WriteString("# Permissions\n\n" +
		"`go test ./internal/testkit -run Permissions -update` writes this page from the code. The chart's roles are generated from\n" +
		"the same markers. [Install](guides/install.md#permissions) explains them.\n\n" +
		"## The controller in the cluster\n\n" +
		"*Namespace* is Lifeboat's own namespace. The admission policy `lifeboat-controller` limits patches of pods and nodes.\n\n")
	out.WriteString(rbacTable(t))
	for _, part := range []struct {
		title, text string
		document    iam.Document
	}{
		{"The controller on AWS", "With the canary, and with the cluster's Auto Scaling groups.", iam.Controller(w, true)},
		{"In addition, for NodeGroups that Lifeboat manages", "For the group `GROUP`.", iam.ManageGroups(iam.Document{}, g, "NODE-ROLE")},
		{"In addition, to read CloudTrail's event history", "For `--cloudtrail-interval`.", iam.ReadEventHistory(iam.Document{}, w)},
		{"In addition, to read whether load balancers have deregistered an instance", "For `waitForDeregistration` of a policy.", iam.ReadTargetHealth(iam.Document{}, w)},
		{"In addition, to forward notices to Karpenter", "For Karpenter's queue `KARPENTER`.", iam.FeedKarpenter(iam.Document{}, w, "KARPENTER")},
		{"`lifeboatd agent boot`, if it completes launch hooks", "A node's role has it.", iam.Boot(w)},
		{"AWS Fault Injection Service, for drills", "No part of Lifeboat has it: FIS assumes the role.", iam.Drill(w)},
		{"The person or pipeline that sets AWS up", "No part of Lifeboat in the cluster has it.", iam.Setup(w)},
		{"In addition, with `--groups`", "For the lifecycle hooks of the group `GROUP`.", added(iam.Setup(w), iam.Setup(g))},
		{"In addition, with `--shared-topic`", "For the topic `TOPIC`.", added(iam.Setup(w), iam.Setup(shared))},
	} {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n%s", part.title, part.text, iamTable(part.document))
	}
	out.WriteString("\n## A person who runs drills and probes\n\n" +
		"`lifeboat interrupt --via queue` needs `sqs:SendMessage` on the queue, and a queue that was set up with `--sender` for that person.\n" +
		"`lifeboat doctor --probe` needs `events:PutEvents` on the default event bus. [Drills with\n" +
		"FIS](guides/rehearse.md#reclaim-take-a-spot-node-away) call `fis:CreateExperimentTemplate`, `fis:StartExperiment`,\n" +
		"`fis:GetExperiment`, `fis:StopExperiment`, `fis:DeleteExperimentTemplate`, `fis:ListExperimentTemplates` and\n" +
		"`fis:ListExperiments`.\n")
	return out.String()
}

// added are the statements of a policy that another lacks.
func added(without, with iam.Document) (d iam.Document) {
	for _, s := range with.Statement {
		if !slices.ContainsFunc(without.Statement, func(other iam.Statement) bool { return other.Sid == s.Sid }) {
			d.Statement = append(d.Statement, s)
		}
	}
	return d
}

func TestPermissionsPageIsCurrent(t *testing.T) {
	name, want := filepath.Join(root(t), "docs", "permissions.md"), permissionsPage(t)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("docs/permissions.md is stale (%v): run go test ./internal/testkit -run Permissions -update", err)
	}
}
