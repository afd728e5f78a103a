package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// Subject is a file or an image, with its SHA-256 in hex digits.
type Subject struct {
	Name   string `json:"name"`
	Digest digest `json:"digest"`
}

type digest struct {
	SHA256 string `json:"sha256"`
}

// NewSubject names something by its digest.
func NewSubject(name, sha256 string) Subject { return Subject{name, digest{sha256}} }

// Files returns the files in dir, sorted by name, as subjects. It does not look into directories.
func Files(dir string) ([]Subject, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []Subject
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		out = append(out, NewSubject(e.Name(), hex.EncodeToString(sum[:])))
	}
	return out, nil
}

// Sums returns the text of SHA256SUMS.
func Sums(files []Subject) []byte {
	var out strings.Builder
	for _, f := range files {
		fmt.Fprintf(&out, "%s  %s\n", f.Digest.SHA256, f.Name)
	}
	return []byte(out.String())
}

// Provenance returns an in-toto statement in the form of SLSA 1.0
// (https://slsa.dev/spec/v1.0/provenance). It says what a builder has to repeat; only a
// signature makes it evidence.
func Provenance(s source.Source, subjects []Subject) ([]byte, error) {
	type object = map[string]any
	subjects = slices.Clone(subjects)
	statement := object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          source.Repository + "/blob/main/docs/guides/releases.md",
				"externalParameters": object{"target": "make release", "version": s.Tag()},
				"internalParameters": object{"SOURCE_DATE_EPOCH": s.Time.Unix(), "go": runtime.Version(), "workingTreeChanged": s.Dirty},
				"resolvedDependencies": []object{{
					"uri":    "git+" + source.Repository + "@refs/tags/" + s.Tag(),
					"digest": object{"gitCommit": s.Commit},
				}},
			},
			"runDetails": object{"builder": object{"id": source.Repository + "/blob/main/.github/workflows/release.yaml"}},
		},
	}
	return json.MarshalIndent(statement, "", "  ")
}
