// Package listing writes what package managers read: krew's manifest and Homebrew's formula.
package listing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"text/template"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/program"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// Archive is an archive of the CLI.
type Archive struct {
	Program string // lifeboat, kubectl-lifeboat
	program.Target
	URL    string // in NewArchive: the name of the file
	SHA256 string
}

// download is where the files of a release are.
const download = source.Repository + "/releases/download/"

// NewArchive describes a file of the release.
func NewArchive(name, file string, t program.Target, data []byte) Archive {
	sum := sha256.Sum256(data)
	return Archive{Program: name, Target: t, URL: file, SHA256: hex.EncodeToString(sum[:])}
}

// Krew returns the manifest of the kubectl plugin
// (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/).
func Krew(s source.Source, archives []Archive) ([]byte, error) {
	return write(krew, s, archives, "kubectl-lifeboat")
}

// Homebrew returns the formula of the CLI.
func Homebrew(s source.Source, archives []Archive) ([]byte, error) {
	return write(homebrew, s, archives, "lifeboat")
}

func write(t *template.Template, s source.Source, archives []Archive, name string) ([]byte, error) {
	var chosen []Archive
	for _, a := range archives {
		if a.Program == name {
			a.URL = download + s.Tag() + "/" + a.URL
			chosen = append(chosen, a)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no archive of %s", name)
	}
	var out bytes.Buffer
	err := t.Execute(&out, map[string]any{"Source": s, "Archives": chosen, "Repository": source.Repository})
	return out.Bytes(), err
}

var krew = template.Must(template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: lifeboat
spec:
  version: {{.Source.Tag}}
  homepage: {{.Repository}}
  shortDescription: Move pods off AWS nodes before an interruption
  description: |
    Shows and plans what Lifeboat does about interruptions of AWS nodes, checks its
    wiring, and runs drills. The controller is installed with its Helm chart.
  platforms:
{{- range .Archives}}
  - selector:
      matchLabels:
        os: {{.OS}}
        arch: {{.Arch}}
    uri: {{.URL}}
    sha256: {{.SHA256}}
    bin: kubectl-lifeboat
{{- end}}
`))

var homebrew = template.Must(template.New("homebrew").Funcs(template.FuncMap{
	"os": func(t program.Target) string {
		return map[string]string{"darwin": "macos"}[t.OS] + map[string]string{"linux": "linux"}[t.OS]
	},
	"cpu": func(t program.Target) string { return map[string]string{"arm64": "arm", "amd64": "intel"}[t.Arch] },
}).Parse(`class Lifeboat < Formula
  desc "Move pods off AWS nodes before an interruption"
  homepage "{{.Repository}}"
  version "{{.Source.Version}}"
  license "Apache-2.0"
{{range .Archives}}
  on_{{os .Target}} do
    on_{{cpu .Target}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
  end
{{end}}
  def install
    bin.install "lifeboat"
    bin.install_symlink bin/"lifeboat" => "kubectl-lifeboat"
    generate_completions_from_executable(bin/"lifeboat", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lifeboat version --client")
  end
end
`))
