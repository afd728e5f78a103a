package image

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// refName is the annotation that names a manifest in a layout.
const refName = "org.opencontainers.image.ref.name"

// Tagged is an image or an index, with its tag.
type Tagged struct {
	Tag string
	Ref partial.Describable
}

// WriteLayout writes an OCI layout with the images to dir, which it replaces.
func WriteLayout(dir string, images ...Tagged) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the layout: %w", err)
	}
	for _, i := range images {
		named := layout.WithAnnotations(map[string]string{refName: i.Tag})
		switch ref := i.Ref.(type) {
		case v1.ImageIndex:
			err = path.AppendIndex(ref, named)
		case v1.Image:
			err = path.AppendImage(ref, named)
		}
		if err != nil {
			return fmt.Errorf("writing the layout: %w", err)
		}
	}
	return nil
}

// Push pushes all that the layout in dir contains to a repository, such as HOST/lifeboatd, each
// by the tag that it has there. It uses the credentials of `docker login`, or none.
func Push(ctx context.Context, dir, repository string, insecure bool, pushed func(ref string)) error {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("reading the layout: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading the layout: %w", err)
	}
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	repo, err := name.NewRepository(repository, options...)
	if err != nil {
		return fmt.Errorf("reading the repository: %w", err)
	}
	access := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, d := range manifest.Manifests {
		tag := repo.Tag(d.Annotations[refName])
		if err := push(index, d, tag, access); err != nil {
			return fmt.Errorf("pushing %s: %w", tag, err)
		}
		pushed(fmt.Sprintf("%s@%s", tag, d.Digest))
	}
	return nil
}

func push(index v1.ImageIndex, d v1.Descriptor, tag name.Tag, access []remote.Option) error {
	if d.MediaType.IsIndex() {
		child, err := index.ImageIndex(d.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(tag, child, access...)
	}
	child, err := index.Image(d.Digest)
	if err != nil {
		return err
	}
	return remote.Write(tag, child, access...)
}
