// Package chart packages the Helm chart, as a file and as an OCI artifact.
package chart

import (
	"encoding/json"
	"fmt"
	"regexp"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/archive"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// Media types of https://helm.sh/docs/topics/registries/.
const (
	configType  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	contentType = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

const metadataFile = "lifeboat/Chart.yaml"

// Package is a packaged chart.
type Package struct {
	Tgz      []byte
	Metadata []byte // Chart.yaml
}

var versions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// Pack packages the chart from its files, with the release's version. The files' paths begin with
// lifeboat/, as Helm wants it.
func Pack(s source.Source, files []archive.File) (Package, error) {
	var p Package
	for i, f := range files {
		if f.Path == metadataFile {
			p.Metadata = versions.ReplaceAll(f.Data, []byte("${1}: "+s.Version))
			files[i].Data = p.Metadata
		}
		files[i].Program = false
	}
	if p.Metadata == nil {
		return Package{}, fmt.Errorf("packaging the chart: there is no %s", metadataFile)
	}
	var err error
	p.Tgz, err = archive.TarGz(files, s.Time)
	return p, err
}

// Artifact returns the chart as `helm push` would store it.
func (p Package) Artifact(s source.Source) (v1.Image, error) {
	config, err := yaml.YAMLToJSON(p.Metadata)
	if err != nil {
		return nil, err
	}
	content := static.NewLayer(p.Tgz, contentType)
	return newArtifact(config, content, map[string]string{
		"org.opencontainers.image.title":    "lifeboat",
		"org.opencontainers.image.version":  s.Version,
		"org.opencontainers.image.revision": s.Commit,
		"org.opencontainers.image.created":  s.Time.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.source":   source.Repository,
	})
}

// artifact is an image whose configuration is Helm's.
type artifact struct {
	v1.Image
	config, manifest []byte
}

func newArtifact(config []byte, content v1.Layer, annotations map[string]string) (v1.Image, error) {
	base, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), content)
	if err != nil {
		return nil, err
	}
	manifest, err := base.Manifest()
	if err != nil {
		return nil, err
	}
	manifest = manifest.DeepCopy()
	configLayer := static.NewLayer(config, configType)
	desc, err := partial.Descriptor(configLayer)
	if err != nil {
		return nil, err
	}
	manifest.Config, manifest.Annotations = *desc, annotations
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	return artifact{base, config, raw}, nil
}

func (a artifact) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a artifact) Manifest() (*v1.Manifest, error)     { return partial.Manifest(a) }
func (a artifact) Digest() (v1.Hash, error)            { return partial.Digest(a) }
func (a artifact) Size() (int64, error)                { return partial.Size(a) }
func (a artifact) ConfigName() (v1.Hash, error)        { return partial.ConfigName(a) }
func (a artifact) ConfigFile() (*v1.ConfigFile, error) { return partial.ConfigFile(a) }
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
