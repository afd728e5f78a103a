// Package lifeboatchart embeds the Helm chart, for the code of this repository that
// installs it. sandbox/chart renders it.
package lifeboatchart

import "embed"

// Files are the chart's files: Chart.yaml, values.yaml and its schema, the templates,
// alerts/*.yaml, dashboards/*.json, crds/*.yaml and rbac/role.yaml. crds/*.yaml is generated from the Go types,
// rbac/role.yaml from the markers beside the code that needs each permission.
//
//go:embed Chart.yaml values.yaml values.schema.json alerts crds dashboards rbac all:templates
var Files embed.FS

// CRDs are crds/*.yaml, and Role is rbac/role.yaml: what `lifeboat doctor` compares with the
// cluster. The program links only these parts.
var (
	//go:embed crds
	CRDs embed.FS
	//go:embed rbac/role.yaml
	Role []byte
)
