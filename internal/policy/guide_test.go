package policy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// The examples of the guide must work when copied. sandbox/e2e tests that the API server accepts
// them too.
func TestGuidePoliciesAreValid(t *testing.T) {
	var blocks [][]string
	for page, least := range map[string]int{"policy.md": 8, "eks.md": 2} {
		text, err := os.ReadFile("../../docs/guides/" + page)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1)
		if len(found) < least {
			t.Fatalf("only %d examples in %s", len(found), page)
		}
		blocks = append(blocks, found...)
	}
	for _, block := range blocks {
		for document := range strings.SplitSeq(block[1], "\n---\n") {
			var p v1beta1.InterruptionPolicy
			if err := yaml.UnmarshalStrict([]byte(document), &p); err != nil {
				t.Errorf("%v in\n%s", err, document)
			}
			if problems := policy.Validate(p.Spec); len(problems) > 0 || p.Name == "" {
				t.Errorf("policy %q: %q", p.Name, problems)
			}
		}
	}
}

// Users need the reasons to configure notifications.
func TestGuideNamesEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range policy.TimelineReasons() {
		if !strings.Contains(string(text), "`"+reason+"`") {
			t.Errorf("docs/guides/policy.md does not name %s", reason)
		}
	}
}
