package iam_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/iam"
)

var update = flag.Bool("update", false, "write the golden files anew")

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
		t.Errorf("differs from %s; go test -update writes it anew (-want +got):\n%s", path, diff)
	}
}

func TestGolden(t *testing.T) {
	w := wiring.Wanted("prod", "210987654321", "eu-west-1")
	golden(t, "controller", iam.Controller(w, true))
	golden(t, "karpenter", iam.FeedKarpenter(iam.Controller(w, false), w, "karpenter"))
	golden(t, "wire", iam.Wire(w))
	golden(t, "pod-identity", iam.PodIdentity(w))
	golden(t, "web-identity", iam.WebIdentity(w, "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B716D3041E"))
}

func TestPoliciesAreWellFormedAndNarrow(t *testing.T) {
	w := wiring.Wanted("prod", "210987654321", "us-gov-west-1")
	for name, d := range map[string]iam.Document{"controller": iam.Controller(w, false), "canary": iam.Controller(w, true), "wire": iam.Wire(w),
		"karpenter": iam.FeedKarpenter(iam.Controller(w, false), w, "karpenter"),
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
				t.Errorf("%s: %s reaches everything", name, s.Sid)
			}
			if s.Resource[0] != "*" && !strings.HasPrefix(s.Resource[0], "arn:aws-us-gov:") {
				t.Errorf("%s: %s reaches %s, in another partition", name, s.Sid, s.Resource[0])
			}
		}
	}
	for _, s := range iam.Controller(w, false).Statement {
		for _, action := range s.Action {
			verb := action[strings.Index(action, ":")+1:]
			reads := strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "List") || strings.HasPrefix(verb, "Get") || verb == "TestEventPattern"
			ofCluster := action == "ec2:TerminateInstances" && isOfCluster(s.Condition["StringEquals"])
			if !reads && s.Sid != "ReadTheQueue" && !ofCluster {
				t.Errorf("the controller may %s without being asked for a canary", action)
			}
		}
	}
	if issuer := iam.WebIdentity(w, "").Statement[0].Principal["Federated"]; !strings.HasSuffix(issuer, iam.UnknownIssuer) {
		t.Errorf("without an issuer: %s", issuer)
	}
}

// isOfCluster reports whether a condition holds for the cluster's own instances
// only.
func isOfCluster(condition map[string]string) bool {
	return condition["aws:ResourceTag/kubernetes.io/cluster/prod"] == "owned" || condition["aws:ResourceTag/eks:cluster-name"] == "prod"
}

// The wirer's permissions are those that the calls name: one that were missing
// here would only show on AWS.
func TestTheWirerMayMakeEveryCall(t *testing.T) {
	allowed := map[string]bool{}
	for _, s := range iam.Wire(wiring.Wanted("prod", "210987654321", "eu-west-1")).Statement {
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
