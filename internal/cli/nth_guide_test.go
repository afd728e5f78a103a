package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func nthGuide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/from-nth.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNTHGuideListsEveryFlag checks that the table of flags has each
// flag exactly once in its first column.
func TestNTHGuideListsEveryFlag(t *testing.T) {
	t.Parallel()
	flags, err := os.ReadFile("testdata/nth-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(nthGuide(t), "\n## Every flag\n")
	table, _, _ = strings.Cut(table, "\n### ")
	answered := map[string]int{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			answered[m[1]]++
		}
	}
	wanted := strings.Fields(string(flags))
	for _, flag := range wanted {
		if answered[flag] != 1 {
			t.Errorf("docs/guides/from-nth.md has %d rows for %s", answered[flag], flag)
		}
	}
	if len(wanted) < 50 || len(answered) != len(wanted) {
		t.Errorf("%d flags in testdata, %d in the guide", len(wanted), len(answered))
	}
}

// TestNTHGuidePoliciesAreValid checks that the policies in the guide
// work when copied.
func TestNTHGuidePoliciesAreValid(t *testing.T) {
	t.Parallel()
	policies := 0
	for _, block := range regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n").FindAllStringSubmatch(nthGuide(t), -1) {
		if !strings.Contains(block[1], "kind: InterruptionPolicy") {
			continue // a manifest of kOps
		}
		policies++
		var p v1beta1.InterruptionPolicy
		if err := yaml.UnmarshalStrict([]byte(block[1]), &p); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
		if problems := policy.Validate(p.Spec); len(problems) > 0 || p.Name == "" {
			t.Errorf("policy %q: %q", p.Name, problems)
		}
	}
	if policies < 8 {
		t.Errorf("only %d policies", policies)
	}
}

// TestNTHGuideLinks checks that links lead to existing
// headings and files.
func TestNTHGuideLinks(t *testing.T) {
	t.Parallel()
	for _, m := range regexp.MustCompile(`\]\(([^)#:]*)(#[^)]+)?\)`).FindAllStringSubmatch(nthGuide(t), -1) {
		name := m[1]
		if name == "" {
			name = "from-nth.md"
		}
		text, err := os.ReadFile(filepath.Join("../../docs/guides", name))
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
			continue
		}
		if m[2] != "" && !strings.Contains(anchors(string(text)), m[2]+"\n") {
			t.Errorf("%s leads to no heading of %s", m[0], name)
		}
	}
}

// anchors returns the anchors that GitHub generates for a text's headings.
func anchors(text string) string {
	var b strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		b.WriteString("#" + strings.ReplaceAll(anchor, " ", "-") + "\n")
	}
	return b.String()
}
