// Package chart renders Lifeboat's Helm chart with Helm's engine, to the objects that
// `helm install` would create.
package chart

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	lifeboatchart "github.com/lifeboat-dev/lifeboat/charts/lifeboat"
)

// The name and namespace of a release. The chart refuses other namespaces.
const (
	Release   = "lifeboat"
	Namespace = "lifeboat-system"

	// ControllerAccount and AgentAccount are the ServiceAccounts of controller and
	// agent in Namespace.
	ControllerAccount = "lifeboat-controller"
	AgentAccount      = "lifeboat-agent"
)

const notesFile = "NOTES.txt"

// Options configure the rendering.
type Options struct {
	// Values override those of values.yaml, as `helm --values` does; null removes a
	// value.
	Values map[string]any
	// Namespace defaults to the constant.
	Namespace string
	// Cluster is the cluster for lookups in templates. If nil, lookups find nothing,
	// as with `helm template`.
	Cluster *rest.Config
	// Upgrade renders as `helm upgrade` does, not as `helm install`.
	Upgrade bool
}

// Manifests are the parts of a release.
type Manifests struct {
	// CRDs are the files of crds/, which Helm installs first and never upgrades.
	CRDs []*unstructured.Unstructured
	// Objects are in Helm's installation order.
	Objects []*unstructured.Unstructured
	// Tests are the Pods of `helm test`.
	Tests []*unstructured.Unstructured
	// Notes is the text that Helm prints at the end.
	Notes string
}

// Render renders the chart. The error names the invalid value and the reason.
func Render(ctx context.Context, o Options) (Manifests, error) {
	m, err := render(ctx, o)
	if err != nil {
		return m, fmt.Errorf("rendering the chart: %w", err)
	}
	return m, nil
}

func render(ctx context.Context, o Options) (Manifests, error) {
	c, err := load(lifeboatchart.Files)
	if err != nil {
		return Manifests{}, err
	}
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	options := common.ReleaseOptions{
		Name: Release, Namespace: o.Namespace, Revision: 1, IsInstall: !o.Upgrade, IsUpgrade: o.Upgrade,
	}
	values, err := util.ToRenderValues(c, o.Values, options, nil)
	if err != nil {
		return Manifests{}, err
	}
	var e engine.Engine
	if o.Cluster != nil {
		e = engine.New(o.Cluster)
	}
	files, err := e.RenderWithContext(ctx, c, values)
	if err != nil {
		return Manifests{}, err
	}
	return splitManifests(c, files)
}

// load reads the chart's files.
func load(files fs.FS) (*helmchart.Chart, error) {
	var all []*archive.BufferedFile
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		all = append(all, &archive.BufferedFile{Name: path, Data: text})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart's files: %w", err)
	}
	return loader.LoadFiles(all)
}

// splitManifests splits rendered files into objects, in Helm's order.
func splitManifests(c *helmchart.Chart, files map[string]string) (Manifests, error) {
	var m Manifests
	for _, crd := range c.CRDObjects() {
		obj, err := parse(crd.Name, string(crd.File.Data))
		if err != nil {
			return m, err
		}
		m.CRDs = append(m.CRDs, obj)
	}
	notes := c.Name() + "/templates/" + notesFile
	m.Notes = files[notes]
	delete(files, notes)
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return m, err
	}
	for _, hook := range hooks {
		if !slices.Equal(hook.Events, []release.HookEvent{release.HookTest}) {
			return m, fmt.Errorf("the chart has the hook %s, which only Helm can run", hook.Path)
		}
		obj, err := parse(hook.Path, hook.Manifest)
		if err != nil {
			return m, err
		}
		m.Tests = append(m.Tests, obj)
	}
	for _, manifest := range manifests {
		obj, err := parse(manifest.Name, manifest.Content)
		if err != nil {
			return m, err
		}
		m.Objects = append(m.Objects, obj)
	}
	return m, nil
}

// parse reads one object. A duplicate key is an error.
func parse(name, text string) (*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(asJSON); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return obj, nil
}
