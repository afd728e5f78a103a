package testkit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			for _, column := range version.AdditionalPrinterColumns {
				path, _, _ := strings.Cut(strings.TrimPrefix(column.JSONPath, "."), "[")
				if strings.HasPrefix(path, "metadata.") {
					continue
				}
				columns++
				if !hasField(version.Schema.OpenAPIV3Schema, strings.Split(path, ".")) {
					t.Errorf("%s: column %s shows %s, which the schema does not have", crd.Name, column.Name, column.JSONPath)
				}
			}
		}
	}
	if columns < 10 {
		t.Errorf("only %d columns were checked", columns)
	}
}

func hasField(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	if len(path) == 0 {
		return true
	}
	next, ok := schema.Properties[path[0]]
	return ok && hasField(&next, path[1:])
}
