package evidence

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// document is an SPDX 2.3 document (https://spdx.github.io/spdx-spec/v2.3/).
type document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID            string      `json:"SPDXID"`
	Name          string      `json:"name"`
	Version       string      `json:"versionInfo,omitempty"`
	Download      string      `json:"downloadLocation"`
	FilesAnalyzed bool        `json:"filesAnalyzed"`
	Concluded     string      `json:"licenseConcluded"`
	Declared      string      `json:"licenseDeclared"`
	Copyright     string      `json:"copyrightText"`
	Purpose       string      `json:"primaryPackagePurpose,omitempty"`
	Checksums     []checksum  `json:"checksums,omitempty"`
	References    []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// noAssertion is SPDX's word for what the document does not say.
const noAssertion = "NOASSERTION"

// Program is a built program, with the name that it has in the list.
type Program struct {
	Name string // lifeboatd-linux-amd64
	Data []byte
}

// SBOM lists the programs and the modules that the linker recorded in each, as SPDX.
func SBOM(s source.Source, programs []Program) ([]byte, error) {
	doc := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "lifeboat-" + s.Version,
		Namespace: source.Repository + "/spdx/" + s.Version + "/" + s.Commit,
		Creation:  creation{Created: s.Time.Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: lifeboat-release"}},
	}
	modules := map[string]spdxPackage{}
	for _, p := range programs {
		info, err := buildinfo.Read(bytes.NewReader(p.Data))
		if err != nil {
			return nil, fmt.Errorf("reading the modules of %s: %w", p.Name, err)
		}
		sum := sha256.Sum256(p.Data)
		own := spdxPackage{
			ID: spdxID("Program", p.Name), Name: p.Name, Version: s.Version, Download: source.Repository,
			Concluded: noAssertion, Declared: "Apache-2.0", Copyright: noAssertion, Purpose: "APPLICATION",
			Checksums: []checksum{{Algorithm: "SHA256", Value: hex.EncodeToString(sum[:])}},
		}
		doc.Packages = append(doc.Packages, own)
		doc.Relationships = append(doc.Relationships, relationship{doc.ID, "DESCRIBES", own.ID})
		std := modulePackage("stdlib", info.GoVersion)
		modules[std.ID] = std
		doc.Relationships = append(doc.Relationships, relationship{own.ID, "DEPENDS_ON", std.ID})
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			dep := modulePackage(m.Path, m.Version)
			modules[dep.ID] = dep
			doc.Relationships = append(doc.Relationships, relationship{own.ID, "DEPENDS_ON", dep.ID})
		}
	}
	for _, m := range modules {
		doc.Packages = append(doc.Packages, m)
	}
	slices.SortFunc(doc.Packages, func(a, b spdxPackage) int { return cmp.Compare(a.ID, b.ID) })
	return json.MarshalIndent(doc, "", "  ")
}

func modulePackage(path, version string) spdxPackage {
	return spdxPackage{
		ID: spdxID("Module", path+"-"+version), Name: path, Version: version, Download: noAssertion,
		Concluded: noAssertion, Declared: noAssertion, Copyright: noAssertion, Purpose: "LIBRARY",
		References: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func spdxID(kind, name string) string {
	return "SPDXRef-" + kind + "-" + notInID.ReplaceAllString(name, "-")
}

// Distinct leaves out programs with the name of an earlier one: builds are reproducible, so they
// are the same.
func Distinct(programs []Program) []Program {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(programs), func(p Program) bool {
		again := seen[p.Name]
		seen[p.Name] = true
		return again
	})
}
