// Package lifeboatchart carries the Helm chart itself, for what of this
// repository installs it: sandbox/chart renders it.
package lifeboatchart

import "embed"

// Files are the chart's files: Chart.yaml, values.yaml and its schema, the
// templates, crds/*.yaml, generated from the Go types, and rbac/role.yaml,
// generated from the markers beside the code that needs each right.
//
//go:embed Chart.yaml values.yaml values.schema.json crds rbac all:templates
var Files embed.FS
