package iam_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, d iam.Document) {
	t.Helper()
	got, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s; go test -update rewrites it (-want +got):\n%s", path, diff)
	}
}

func TestGolden(t *testing.T) {
	w := awssetup.Desired("prod", "210987654321", "eu-west-1")
	golden(t, "controller", iam.Controller(w, true))
	golden(t, "karpenter", iam.FeedKarpenter(iam.Controller(w, false), w, "karpenter"))
	golden(t, "event-history", iam.ReadEventHistory(iam.Document{Version: "2012-10-17"}, w))
	golden(t, "target-health", iam.ReadTargetHealth(iam.Document{Version: "2012-10-17"}, w))
	golden(t, "setup", iam.Setup(w))
	golden(t, "boot", iam.Boot(w))
	shared, err := w.Shared("lifeboat-shared")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "setup-shared", iam.Setup(shared))
	g, err := w.ForGroups([]string{"nodes-a", "nodes-b"})
	if err != nil {
		t.Fatal(err)
	}
	p := w
	p.Groups = []string{"prod-*"}
	golden(t, "manage-groups", iam.ManageGroups(iam.Document{Version: "2012-10-17"}, p, "nodes.prod"))
	golden(t, "controller-groups", iam.Controller(g, false))
	golden(t, "boot-groups", iam.Boot(g))
	golden(t, "setup-groups", iam.Setup(g))
	golden(t, "manage-groups-named", iam.ManageGroups(iam.Document{Version: "2012-10-17"}, g, ""))
	golden(t, "drill", iam.Drill(w))
	golden(t, "drill-trust", iam.DrillTrust(w))
	golden(t, "pod-identity", iam.PodIdentity(w))
	golden(t, "web-identity", iam.WebIdentity(w, "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B716D3041E"))
}

func TestPoliciesAreWellFormedAndNarrow(t *testing.T) {
	w := awssetup.Desired("prod", "210987654321", "us-gov-west-1")
	g, err := w.ForGroups([]string{"nodes-a"})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]iam.Document{"controller": iam.Controller(w, false), "canary": iam.Controller(w, true), "setup": iam.Setup(w),
		"drill": iam.Drill(w), "event history": iam.ReadEventHistory(iam.Document{}, w), "target health": iam.ReadTargetHealth(iam.Document{}, w),
		"karpenter": iam.FeedKarpenter(iam.Controller(w, false), w, "karpenter"),
		"boot":      iam.Boot(w), "boot of groups": iam.Boot(g), "controller of groups": iam.Controller(g, false), "setup of groups": iam.Setup(g),
		"groups": iam.ManageGroups(iam.Controller(w, true), w, "nodes"), "named groups": iam.ManageGroups(iam.Controller(g, true), g, ""),
	} {
		for _, s := range d.Statement {
			if s.Effect != "Allow" || len(s.Action) == 0 || len(s.Resource) == 0 || len(s.Principal) > 0 {
				t.Errorf("%s: statement %+v", name, s)
			}
			for _, action := range s.Action {
				if strings.Contains(action, "*") {
					t.Errorf("%s: %s allows more than one action", name, action)
				}
			}
			if s.Resource[0] == "*" && s.Condition == nil {
				t.Errorf("%s: %s has no limit", name, s.Sid)
			}
			if slices.ContainsFunc(s.Action, changesGroup) && strings.HasSuffix(s.Resource[0], "autoScalingGroupName/*") && !isOfCluster(s.Condition["StringEquals"]) {
				t.Errorf("%s: %s reaches every group of the account", name, s.Sid)
			}
			if slices.Contains(s.Action, "ec2:TerminateInstances") && s.Condition["Null"]["aws:ResourceTag/k8s.io/role/control-plane"] != "true" {
				t.Errorf("%s: %s reaches the control plane", name, s.Sid)
			}
			if slices.Contains(s.Action, "ec2:RunInstances") && (s.Condition["ArnLike"]["ec2:LaunchTemplate"] == nil ||
				s.Sid != "LaunchIntoSubnets" && s.Condition["Bool"]["ec2:IsLaunchTemplateResource"] != "true") {
				t.Errorf("%s: %s launches more than templates say", name, s.Sid)
			}
			if s.Resource[0] != "*" && !strings.HasPrefix(s.Resource[0], "arn:aws-us-gov:") {
				t.Errorf("%s: %s allows %s, which is in another partition", name, s.Sid, s.Resource[0])
			}
		}
	}
	for _, s := range iam.Controller(w, false).Statement {
		for _, action := range s.Action {
			verb := action[strings.Index(action, ":")+1:]
			reads := strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "List") || strings.HasPrefix(verb, "Get") || verb == "TestEventPattern"
			ofCluster := action == "ec2:TerminateInstances" && isOfCluster(s.Condition["StringEquals"])
			hooks := strings.HasPrefix(s.Sid, "AnswerHooks") && isOfCluster(s.Condition["StringEquals"])
			if !reads && s.Sid != "ReadTheQueue" && !ofCluster && !hooks {
				t.Errorf("the controller may %s without the canary", action)
			}
		}
	}
	if issuer := iam.WebIdentity(w, "").Statement[0].Principal["Federated"]; !strings.HasSuffix(issuer, iam.UnknownIssuer) {
		t.Errorf("without an issuer: %s", issuer)
	}
}

// changesGroup reports whether an action changes an Auto Scaling group, or its tags.
func changesGroup(action string) bool {
	verb, ok := strings.CutPrefix(action, "autoscaling:")
	return ok && !strings.HasPrefix(verb, "Describe")
}

// isOfCluster reports whether a condition limits a statement to the cluster's own
// resources.
func isOfCluster(condition map[string]any) bool {
	return condition["aws:ResourceTag/kubernetes.io/cluster/prod"] == "owned" || condition["aws:ResourceTag/eks:cluster-name"] == "prod"
}

// The policy must allow every call that the code names. A missing permission would
// otherwise appear only on AWS.
func TestWirePolicyAllowsEveryCall(t *testing.T) {
	allowed := map[string]bool{}
	w, err := awssetup.Desired("prod", "210987654321", "eu-west-1").ForGroups([]string{"nodes-a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range iam.Setup(w).Statement {
		for _, action := range s.Action {
			allowed[action] = true
		}
	}
	found := 0
	for _, name := range []string{"apply.go", "observe.go"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), `"`) {
			if strings.HasPrefix(part, "sqs:") || strings.HasPrefix(part, "events:") {
				found++
				if !allowed[part] {
					t.Errorf("%s needs %s, which the policy does not allow", name, part)
				}
			}
		}
	}
	if found < 14 {
		t.Errorf("only %d permissions found in the code", found)
	}
}

// A completion names its instance, and IAM cannot compare that with the caller: a
// node with the permission can complete hooks of other nodes. So nodes need no
// permission if the controller completes the hooks. If the agent does, its policy is
// limited to the named groups and to credentials of instances.
func TestRace33AnotherAnswersForIt(t *testing.T) {
	w := awssetup.Desired("prod", "210987654321", "eu-west-1")
	g, err := w.ForGroups([]string{"nodes-a", "nodes-b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]iam.Document{"by tags": iam.Boot(w), "by names": iam.Boot(g)} {
		for _, s := range d.Statement {
			answers := slices.ContainsFunc(s.Action, func(a string) bool { return !strings.Contains(a, ":Describe") })
			if !answers {
				continue
			}
			if s.Condition["Null"]["ec2:SourceInstanceARN"] != "false" {
				t.Errorf("%s: %s also allows credentials that are not an instance's", name, s.Sid)
			}
			named := !slices.ContainsFunc(s.Resource, func(r string) bool { return strings.HasSuffix(r, "/*") })
			if !named && !isOfCluster(s.Condition["StringEquals"]) {
				t.Errorf("%s: %s allows foreign groups: %v", name, s.Sid, s.Resource)
			}
			for _, action := range s.Action {
				if action == "autoscaling:DetachInstances" || strings.HasPrefix(action, "ec2:") {
					t.Errorf("%s: a node may %s", name, action)
				}
			}
		}
	}
	if text, err := json.Marshal(iam.Controller(w, false)); err != nil || !strings.Contains(string(text), "autoscaling:CompleteLifecycleAction") {
		t.Errorf("the controller cannot complete hooks: %s, %v", text, err)
	}
}

// The policy must allow every action that the controller's code names in errors and
// findings. A missing permission would otherwise appear only on AWS.
func TestControllerPolicyAllowsEveryCall(t *testing.T) {
	w := awssetup.Desired("prod", "210987654321", "eu-west-1")
	w.Groups = []string{"prod-*"}
	allowed := map[string]bool{}
	for _, s := range iam.ManageGroups(iam.Controller(w, true), w, "nodes").Statement {
		for _, action := range s.Action {
			allowed[action] = true
		}
	}
	named := regexp.MustCompile(`\b(autoscaling|ec2):[A-Z][a-z]+[A-Za-z]+`)
	found := 0
	for _, dir := range []string{"cloud/aws", "asg/groupcache", "asg/nodegroup", "intake/autoscaling", "intake/ec2", "controller/instancelaunch", "controller/interruption", "controller/interruption/capacity"} {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, action := range named.FindAllString(string(text), -1) {
				found++
				if !allowed[action] {
					t.Errorf("%s needs %s, which the policy does not allow", name, action)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d permissions found in the code", found)
	}
}
