package testkit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// unboundedFields are the fields of the CRDs without a maximum length, with the reason.
var unboundedFields = map[string]string{
	`\.(matchLabels|matchExpressions|selector)\b`:                        "selectors are Kubernetes' own types, which cannot carry markers",
	`\.(nodeUID|uid)$`:                                                   "UIDs are Kubernetes' own type, and the API server writes them",
	`\.(timeout|drainTimeout|notBefore|duration|waitForDeregistration)$`: "CEL rules limit durations",
	`\.(headers|tags)\{\}$`:                                              "values of maps cannot carry markers; the number of entries is limited",
}

// schema is the part of a schema that the test reads.
type schema struct {
	Type, Format                       string
	Enum                               []any
	MaxLength, MaxItems, MaxProperties *int64
	Properties                         map[string]schema
	Items, AdditionalProperties        *schema
	PreservesUnknownFields             bool `json:"x-kubernetes-preserve-unknown-fields"`
}

// An API server estimates the cost of CEL rules from these limits, and no object grows without one.
func TestFieldsOfCRDsAreBounded(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root(t), "charts", "lifeboat", "crds", "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	used := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema schema }
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			for _, part := range []string{"spec", "status"} {
				for _, path := range unbounded("."+part, v.Schema.OpenAPIV3Schema.Properties[part]) {
					if reason := reasonFor(path, used); reason == "" {
						t.Errorf("%s: %s has no maxLength, enum or format, maxItems or maxProperties", filepath.Base(name), path)
					}
				}
			}
		}
	}
	for pattern := range unboundedFields {
		if !used[pattern] {
			t.Errorf("no field matches the exception %s: remove it", pattern)
		}
	}
}

func reasonFor(path string, used map[string]bool) string {
	for pattern, reason := range unboundedFields {
		if regexp.MustCompile(pattern).MatchString(path) {
			used[pattern] = true
			return reason
		}
	}
	return ""
}

// unbounded lists the paths of strings, lists and maps without a limit.
func unbounded(path string, s schema) (paths []string) {
	switch {
	case s.PreservesUnknownFields: // a template of another API
		return nil
	case s.Type == "string" && s.MaxLength == nil && s.Enum == nil && s.Format == "",
		s.Type == "array" && s.MaxItems == nil,
		s.AdditionalProperties != nil && s.MaxProperties == nil:
		paths = append(paths, path)
	}
	for name, property := range s.Properties {
		paths = append(paths, unbounded(path+"."+name, property)...)
	}
	if s.Items != nil {
		paths = append(paths, unbounded(path+"[]", *s.Items)...)
	}
	if s.AdditionalProperties != nil {
		paths = append(paths, unbounded(path+"{}", *s.AdditionalProperties)...)
	}
	slices.Sort(paths)
	return paths
}
