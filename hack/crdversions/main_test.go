package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const crds = "../../charts/lifeboat/crds/"

func versionsOf(t *testing.T, text []byte) (versions []map[string]any) {
	t.Helper()
	var crd struct {
		Spec struct {
			Versions []map[string]any `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions
}

// TestPreviousVersionIsServed checks the CRDs of the chart: both versions have the same fields,
// and objects are stored in the version that the previous release knows.
func TestPreviousVersionIsServed(t *testing.T) {
	files, err := os.ReadDir(crds)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(crds + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		versions := versionsOf(t, text)
		if len(versions) != 2 {
			t.Errorf("%s has %d versions: run `make gen`", file.Name(), len(versions))
			continue
		}
		current, older := versions[0], versions[1]
		if older["name"] != previous || older["storage"] != true || older["served"] != true || older["deprecated"] != true {
			t.Errorf("%s: %v, storage %v, served %v", file.Name(), older["name"], older["storage"], older["served"])
		}
		if current["storage"] != false || !reflect.DeepEqual(current["schema"], older["schema"]) {
			t.Errorf("%s: the schemas differ, or both are stored", file.Name())
		}
		if _, err := withPrevious(text); err == nil || !strings.Contains(err.Error(), "2 versions") {
			t.Errorf("%s: adding the version twice: %v", file.Name(), err)
		}
	}
}
