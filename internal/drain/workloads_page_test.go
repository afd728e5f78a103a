package drain_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each row of the page names a file of this repository, and tests that are in it.
func TestPageOfWorkloadsNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/concepts/what-a-drain-does.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted, rows := regexp.MustCompile("`([^`]+)`"), 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "---") || strings.Contains(cells[0], "workload ") && rows == 0 {
			continue
		}
		rows++
		var file string
		for _, name := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if strings.Contains(name[1], "/") {
				data, err := os.ReadFile(filepath.Join("../..", name[1]))
				if err != nil {
					t.Errorf("%s: %v", cells[0], err)
				}
				file = string(data)
			} else if !strings.Contains(file, "func "+name[1]+"(t *testing.T)") {
				t.Errorf("%s: no test %s", cells[0], name[1])
			}
		}
		if file == "" {
			t.Errorf("no test: %s", cells[0])
		}
	}
	if rows < 20 {
		t.Errorf("only %d rows", rows)
	}
}
