package testkit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPrinterColumnsExist checks that each column of kubectl names a field of the schema. The API server
// prints an empty column otherwise.
func TestPrinterColumnsExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), "charts", "lifeboat", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	columns := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					AdditionalPrinterColumns []struct{ Name, JSONPath string }
					Schema                   struct{ OpenAPIV3Schema schemaOfFields }
				}
			}
		}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			for _, column := range version.AdditionalPrinterColumns {
				path, _, _ := strings.Cut(strings.TrimPrefix(column.JSONPath, "."), "[")
				if strings.HasPrefix(path, "metadata.") {
					continue
				}
				columns++
				if !version.Schema.OpenAPIV3Schema.has(strings.Split(path, ".")) {
					t.Errorf("%s: column %s shows %s, which the schema does not have", filepath.Base(file), column.Name, column.JSONPath)
				}
			}
		}
	}
	if columns < 10 {
		t.Errorf("only %d columns were checked", columns)
	}
}

// schemaOfFields is what a schema says about the fields of an object.
type schemaOfFields struct{ Properties map[string]schemaOfFields }

func (s schemaOfFields) has(path []string) bool {
	if len(path) == 0 {
		return true
	}
	next, ok := s.Properties[path[0]]
	return ok && next.has(path[1:])
}
