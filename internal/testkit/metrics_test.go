package testkit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Metrics that are made outside of internal/metric would be missing in the reference.
func TestMetricsAreDeclaredInTables(t *testing.T) {
	direct := regexp.MustCompile(`prometheus\.(New(Counter|Gauge|Histogram|Summary|Desc|Untyped)|(Counter|Gauge|Histogram|Summary)Opts)`)
	declares := regexp.MustCompile(`metric\.Definition\{\s*\n?\s*Name: "`)
	tables, err := os.ReadFile(filepath.Join(root(t), "internal/app/metrics_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packagesIn(t, root(t)) {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if path != "internal/metric" && direct.Match(text) {
				t.Errorf("%s/%s makes a metric directly: declare it as a metric.Definition", path, name)
			}
			if declares.Match(text) && path != "internal/app" && !strings.Contains(string(tables), `"`+p.ImportPath+`"`) {
				t.Errorf("%s/%s declares metrics that internal/app/metrics_test.go does not list", path, name)
			}
		}
	}
}
