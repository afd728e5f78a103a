package testkit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reportRow    = regexp.MustCompile(`(?m)^\| (\d)\.(\d+) \| ([^|]+) \| (\w+) \| ([^|]+) \|$`)
	namedTest    = regexp.MustCompile("`(Test[A-Z]\\w+)[`/]")
	namedPlay    = regexp.MustCompile("`([a-z-]+\\.txtar)`")
	declaredTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// wishes is the number of wishes in each of the four reports.
var wishes = [4]int{19, 26, 28, 35}

// TestDocumentsNameExistingTests checks that each test that a document names exists.
func TestDocumentsNameExistingTests(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	texts(t, " .go ", func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range declaredTest.FindAllStringSubmatch(text, -1) {
				tests[m[1]] = true
			}
		}
	})
	texts(t, " .md ", func(name, text string) {
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
	})
}

// TestFieldReportsHaveEvidence checks that each wish has a row, that each named scenario exists, and
// that a row without full evidence says why.
func TestFieldReportsHaveEvidence(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "field-reports.md"))
	if err != nil {
		t.Fatal(err)
	}
	var seen [4]int
	states := map[string]int{}
	for _, row := range reportRow.FindAllStringSubmatch(string(page), -1) {
		report := int(row[1][0] - '0')
		seen[report]++
		if want := fmt.Sprint(seen[report]); row[2] != want {
			t.Errorf("row %s.%s, want number %s", row[1], row[2], want)
		}
		states[row[4]]++
		checkReportRow(t, row[1]+"."+row[2], row[4], row[5])
	}
	if seen != wishes {
		t.Errorf("rows of the reports: %v, want %v", seen, wishes)
	}
	for state, count := range states {
		if text := fmt.Sprintf("%d ", count); !strings.Contains(string(page), text+"are "+state) && !strings.Contains(string(page), text+"work,") {
			t.Errorf("the page does not say that %d rows are %s", count, state)
		}
	}
}

func checkReportRow(t *testing.T, row, state, evidence string) {
	t.Helper()
	named := len(namedTest.FindAllString(evidence, -1))
	for _, m := range namedPlay.FindAllStringSubmatch(evidence, -1) {
		named++
		if _, err := os.Stat(filepath.Join(root(t), "sandbox", "scenarios", m[1])); err != nil {
			t.Errorf("row %s names %s: %v", row, m[1], err)
		}
	}
	switch state {
	case "works":
		if named == 0 {
			t.Errorf("row %s works, and names no test", row)
		}
	case "partly", "unproven", "missing", "refused":
		if len(strings.Fields(evidence)) < 10 || !strings.HasSuffix(evidence, ".") {
			t.Errorf("row %s is %s, and does not say why in a sentence: %s", row, state, evidence)
		}
	default:
		t.Errorf("row %s has the unknown state %q", row, state)
	}
}
