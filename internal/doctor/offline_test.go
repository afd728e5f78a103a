package doctor_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// readOffline diagnoses a file, without a cluster name.
func readOffline(t *testing.T, path string) []finding.Finding {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := template.Read([]template.File{{Name: filepath.Base(path), Data: data}}, template.Given{Region: regionOf(path)})
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Run(s, awssetup.Desired("", "", ""), doctor.Cluster{})
}

// regionOf returns the region for a file; most files need none.
func regionOf(path string) string {
	if strings.Contains(path, "region") {
		return "eu-west-1"
	}
	return ""
}

func text(all []finding.Finding) string {
	var b strings.Builder
	for _, f := range all {
		if f.ID == "kind-uncovered" {
			fmt.Fprintf(&b, "%s %s: %s\n", f.Severity, f.ID, f.Object) // the same in every file
			continue
		}
		fmt.Fprintf(&b, "%s %s: %s\n\t%s\n\tfix: %s\n", f.Severity, f.ID, f.Object, f.Problem, f.Fix)
		if len(f.Kinds) > 0 {
			fmt.Fprintf(&b, "\tkinds: %s\n", strings.Join(f.Kinds, ", "))
		}
	}
	return b.String()
}

func TestOfflineFindings(t *testing.T) {
	files, err := filepath.Glob("testdata/offline/*.[jy][sa]*")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			golden := "testdata/offline/golden/" + filepath.Base(path) + ".txt"
			got := text(readOffline(t, path))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs from %s; go test -update rewrites it (-want +got):\n%s", golden, diff)
			}
		})
	}
}
