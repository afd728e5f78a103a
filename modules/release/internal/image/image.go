// Package image assembles lifeboatd's image, without Docker.
package image

import (
	"bytes"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/archive"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/program"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// user is the one that the chart runs pods as.
const user = "65532"

// Content is what an image contains for one platform.
type Content struct {
	Target   program.Target
	Program  []byte // lifeboatd, linked statically; it contains the time zones (time/tzdata)
	Licence  []byte // Lifeboat's own
	Licences []byte // of what it links
}

// Index returns the image for all platforms.
func Index(s source.Source, contents []Content) (v1.ImageIndex, error) {
	roots, err := certificates()
	if err != nil {
		return nil, fmt.Errorf("reading the root certificates: %w", err)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, c := range contents {
		img, err := platform(s, c, roots)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", c.Target, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: c.Target.OS, Architecture: c.Target.Arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, labels(s)).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotating the index: it is no index any more")
	}
	return annotated, nil
}

func platform(s source.Source, c Content, roots []byte) (v1.Image, error) {
	// The files that seldom change have a layer of their own, which nodes keep.
	base, err := layer(s, []archive.File{
		{Path: "etc/passwd", Data: []byte("root:x:0:0:root:/:/sbin/nologin\nlifeboat:x:" + user + ":" + user + ":lifeboat:/:/sbin/nologin\n")},
		{Path: "etc/group", Data: []byte("root:x:0:\nlifeboat:x:" + user + ":\n")},
		{Path: "etc/ssl/certs/ca-certificates.crt", Data: roots},
	})
	if err != nil {
		return nil, err
	}
	own, err := layer(s, []archive.File{
		{Path: "lifeboatd", Data: c.Program, Program: true},
		{Path: "usr/share/doc/lifeboat/LICENSE", Data: c.Licence},
		{Path: "usr/share/doc/lifeboat/THIRD-PARTY-LICENSES", Data: c.Licences},
	})
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := v1.History{Created: v1.Time{Time: s.Time}, CreatedBy: "make image"}
	img, err = mutate.Append(img, mutate.Addendum{Layer: base, History: history}, mutate.Addendum{Layer: own, History: history})
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = c.Target.OS, c.Target.Arch
	file.Created = v1.Time{Time: s.Time}
	file.Config = v1.Config{User: user + ":" + user, Entrypoint: []string{"/lifeboatd"}, WorkingDir: "/", Labels: labels(s)}
	img, err = mutate.ConfigFile(img, file)
	if err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(img, labels(s)).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotating the image: it is no image any more")
	}
	return annotated, nil
}

func layer(s source.Source, files []archive.File) (v1.Layer, error) {
	var tar bytes.Buffer
	if err := archive.Tar(&tar, files, s.Time); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tar.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
}

// labels are those of https://github.com/opencontainers/image-spec/blob/main/annotations.md.
func labels(s source.Source) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         "lifeboatd",
		"org.opencontainers.image.description":   "Moves pods off AWS nodes before their instances disappear.",
		"org.opencontainers.image.version":       s.Version,
		"org.opencontainers.image.revision":      s.Commit,
		"org.opencontainers.image.created":       s.Time.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.source":        source.Repository,
		"org.opencontainers.image.url":           source.Repository,
		"org.opencontainers.image.documentation": source.Repository + "/blob/main/docs/guides/install.md",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.vendor":        "Lifeboat",
	}
}
