// Package lifeboatchart carries the manifests of the Helm chart that tools of
// this repository install by themselves: the CRDs and the RBAC rules.
package lifeboatchart

import "embed"

// CRDs holds crds/*.yaml, generated from the Go types.
//
//go:embed crds/*.yaml
var CRDs embed.FS

// RBAC holds rbac/role.yaml, generated from the markers beside the code that
// needs each right.
//
//go:embed rbac/*.yaml
var RBAC embed.FS
