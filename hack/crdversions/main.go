// Command crdversions adds the previous API version to the generated CRDs in charts/lifeboat/crds.
package main

import (
	"bytes"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// previous is the older version that the CRDs serve. The API server stores objects in it for
// as long as a rollback may install CRDs that have no other version.
const previous = "v1alpha1"

func main() {
	files, err := filepath.Glob("charts/lifeboat/crds/*.yaml")
	if err != nil || len(files) == 0 {
		log.Fatalf("there are no CRDs (%v): run it in the root of the repository", err)
	}
	for _, file := range files {
		if err := add(file); err != nil {
			log.Fatalf("%s: %v", file, err)
		}
	}
}

func add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err = withPrevious(text)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// withPrevious returns the CRD with a copy of its only version under the previous name.
func withPrevious(text []byte) ([]byte, error) {
	var crd struct {
		Spec struct {
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []map[string]any `json:"versions"`
		} `json:"spec"`
	}
	var all map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	versions := crd.Spec.Versions
	if len(versions) != 1 {
		return nil, fmt.Errorf("it has %d versions, not one: run `make gen`", len(versions))
	}
	current, older := versions[0], maps.Clone(versions[0])
	current["storage"] = false
	older["name"], older["storage"], older["deprecated"] = previous, true, true
	older["deprecationWarning"] = fmt.Sprintf("lifeboat.dev/%s %s is deprecated: use lifeboat.dev/%s, which has the same fields",
		previous, crd.Spec.Names.Kind, current["name"])
	all["spec"].(map[string]any)["versions"] = []any{current, older}
	out, err := yaml.Marshal(all)
	return append([]byte("---\n"), bytes.TrimPrefix(out, []byte("---\n"))...), err
}
