package installed

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	lifeboatchart "github.com/lifeboat-dev/lifeboat/charts/lifeboat"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// IDs of the findings. docs/guides/doctor.md describes each of them.
const (
	CRDOld         = "crd-old"
	RoleIncomplete = "role-incomplete"
	RoleNotChecked = "role-not-checked"
)

// IDs returns the ids of all findings.
func IDs() []string { return []string{CRDOld, RoleIncomplete, RoleNotChecked} }

// ApplyCRDs installs the chart's CRDs. Helm never upgrades those that exist.
const ApplyCRDs = "helm show crds charts/lifeboat | kubectl apply --server-side --force-conflicts -f -"

// CRDs returns the CRDs of this version's chart, by name.
func CRDs() (map[string]*unstructured.Unstructured, error) {
	out := map[string]*unstructured.Unstructured{}
	paths, err := fs.Glob(lifeboatchart.CRDs, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the chart's CRDs: %w", err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(lifeboatchart.CRDs, path)
		if err != nil {
			return nil, fmt.Errorf("reading the chart's CRDs: %w", err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		out[crd.GetName()] = crd
	}
	return out, nil
}

// CheckCRD compares a CRD of the cluster with that of this version; got is nil if the
// cluster has none.
func CheckCRD(want, got *unstructured.Unstructured) *finding.Finding {
	f := &finding.Finding{Severity: finding.Warning, ID: CRDOld, Object: "crd " + want.GetName(), Fix: ApplyCRDs}
	if got == nil {
		f.Severity, f.Problem = finding.Broken, "it does not exist: Lifeboat cannot read or write such objects"
		return f
	}
	known := fields(got)
	if len(known) == 0 {
		f.Severity, f.Problem = finding.Broken, "it does not serve "+v1beta1.GroupVersion.String()+", which Lifeboat reads and writes"
		return f
	}
	missing := slices.DeleteFunc(fields(want), func(field string) bool { return slices.Contains(known, field) })
	if len(missing) == 0 {
		return nil
	}
	const shown = 3
	named := strings.Join(missing[:min(shown, len(missing))], ", ")
	if more := len(missing) - shown; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	f.Problem = "it is older than this version: the API server drops the fields " + named + ", which Lifeboat writes or reads"
	return f
}

// fields returns the paths of all fields that the version in use has in a CRD, sorted.
func fields(crd *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var all []string
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["name"] != v1beta1.GroupVersion.Version || version["served"] != true {
			continue
		}
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		collect("", schema, &all)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func collect(path string, schema map[string]any, into *[]string) {
	if items, ok := schema["items"].(map[string]any); ok {
		collect(path, items, into)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		collect(path, values, into)
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return
	}
	for name, p := range properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		*into = append(*into, at)
		if inner, ok := p.(map[string]any); ok {
			collect(at, inner, into)
		}
	}
}
