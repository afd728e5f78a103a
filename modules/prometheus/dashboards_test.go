package prometheus

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the dashboards of the chart")

const dashboardsDir = "../../charts/lifeboat/dashboards"

func TestDashboardsAreCurrent(t *testing.T) {
	files := map[string]bool{}
	for _, d := range dashboards() {
		want, err := d.json()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dashboardsDir, d.name+".json")
		files[d.name+".json"] = true
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s differs from the table: run go test -C modules/prometheus . -run Dashboards -update (%v)", path, err)
		}
	}
	entries, err := os.ReadDir(dashboardsDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !files[e.Name()] {
			t.Errorf("%s is not in the table", e.Name())
		}
	}
}

// Every query parses, names metrics of the reference with labels that they have, and is used by one panel.
func TestDashboardQueriesNameKnownMetrics(t *testing.T) {
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if m := regexp.MustCompile("^\\| `(lifeboat_[a-z_]+)` \\|").FindStringSubmatch(line); m != nil {
			rows[m[1]] = line
		}
	}
	grouped := regexp.MustCompile(`by \(([^)]*)\)`)
	used := map[string]bool{}
	for _, d := range dashboards() {
		for _, p := range d.panels {
			for _, q := range p.queries {
				expr := strings.ReplaceAll(q.expr, "$__rate_interval", "5m")
				if _, err := promqlParser.ParseExpr(expr); err != nil {
					t.Errorf("%s, %s: %v", d.title, p.title, err)
				}
				name := strings.TrimSuffix(regexp.MustCompile(`lifeboat_[a-z_]+`).FindString(expr), "_bucket")
				row, found := rows[name]
				if !found {
					t.Errorf("%s, %s: the reference does not have %s", d.title, p.title, name)
				}
				used[name] = true
				for _, by := range grouped.FindAllStringSubmatch(expr, -1) {
					for label := range strings.SplitSeq(by[1], ", ") {
						if label != "le" && !strings.Contains(row, "`"+label+"`") {
							t.Errorf("%s, %s: %s has no label %s", d.title, p.title, name, label)
						}
					}
				}
			}
		}
	}
	if len(used) < 30 {
		t.Errorf("the panels show only %d of %d metrics", len(used), len(rows))
	}
}
