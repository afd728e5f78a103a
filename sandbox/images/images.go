// Package images writes container images without a container tool: an OCI
// archive with the sandbox's own images, which containerd imports.
//
// An image is one static program: no shell, no libraries, no users. The same program gives the same
// bytes each time.
package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Names of the sandbox's images. They are in no registry: a pod names them with
// imagePullPolicy Never.
const (
	// Workload is modules/workload, a server and a load generator. Its command is /workload, and
	// needs an argument.
	Workload = "lifeboat.dev/sandbox/workload:dev"
	// Pause is the same program in the role of the pause container.
	Pause = "lifeboat.dev/sandbox/pause:dev"
)

// ProgramPath is where the program is within an image, for exec hooks.
const ProgramPath = "/workload"

// Image is one image of an archive: the program and its arguments.
type Image struct {
	Name string // with a registry host and a tag
	Args []string
}

// WriteFile writes the sandbox's images, Workload and Pause, into an archive. It replaces the file in
// one step.
func WriteFile(file, program string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("making the sandbox's images: reading the program: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".images-*")
	if err != nil {
		return fmt.Errorf("making the sandbox's images: %w", err)
	}
	defer func() {
		_ = tmp.Close()
		_ = os.Remove(tmp.Name()) // after the rename there is none
	}()
	images := []Image{{Name: Workload}, {Name: Pause, Args: []string{"pause"}}}
	if err := Write(tmp, binary, images); err != nil {
		return fmt.Errorf("making the sandbox's images: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("making the sandbox's images: %w", err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("making the sandbox's images: %w", err)
	}
	return nil
}

// Write writes an OCI archive: an image layout (OCI Image Format Specification,
// Image Layout) in a tar. Its images share the one layer. It is for the platform
// of this process.
func Write(w io.Writer, program []byte, images []Image) error {
	layer, err := layerOf(program)
	if err != nil {
		return fmt.Errorf("making the layer: %w", err)
	}
	blobs := &blobs{seen: map[string]bool{}}
	layerAt := blobs.add("application/vnd.oci.image.layer.v1.tar", layer)
	index := index{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json", Manifests: []descriptor{}}
	for _, im := range images {
		at, err := blobs.addImage(im, layerAt)
		if err != nil {
			return fmt.Errorf("image %s: %w", im.Name, err)
		}
		index.Manifests = append(index.Manifests, at)
	}
	text, err := json.Marshal(index)
	if err != nil {
		return fmt.Errorf("encoding the index: %w", err)
	}
	files := append([]file{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", text},
	}, blobs.files...)
	return writeTar(w, files, 0o644)
}

// layerOf is a file system with the program in it. A layer's digest is that of its tar, so the tar has
// no times or owners.
func layerOf(program []byte) ([]byte, error) {
	var layer bytes.Buffer
	if err := writeTar(&layer, []file{{ProgramPath[1:], program}}, 0o755); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}

// file is a file of an archive.
type file struct {
	name string
	data []byte
}

func writeTar(w io.Writer, files []file, mode int64) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)), Mode: mode, Format: tar.FormatUSTAR,
		}
		if err := t.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
		if _, err := t.Write(f.data); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("writing the end: %w", err)
	}
	return nil
}

// blobs are the contents of an image layout, by digest.
type blobs struct {
	files []file
	seen  map[string]bool
}

// add adds a blob unless it exists, and returns its descriptor.
func (b *blobs) add(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if !b.seen[digest] {
		b.seen[digest] = true
		b.files = append(b.files, file{"blobs/sha256/" + digest, data})
	}
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: int64(len(data))}
}

func (b *blobs) addImage(im Image, layer descriptor) (descriptor, error) {
	here := platform{Architecture: runtime.GOARCH, OS: "linux"}
	config, err := json.Marshal(imageConfig{
		platform: here,
		Config:   runConfig{Entrypoint: append([]string{ProgramPath}, im.Args...), WorkingDir: "/"},
		// The layer is not compressed, so that this is its digest too.
		RootFS: rootFS{Type: "layers", DiffIDs: []string{layer.Digest}},
	})
	if err != nil {
		return descriptor{}, fmt.Errorf("encoding the configuration: %w", err)
	}
	manifest, err := json.Marshal(manifest{
		SchemaVersion: 2, MediaType: "application/vnd.oci.image.manifest.v1+json",
		Config: b.add("application/vnd.oci.image.config.v1+json", config),
		Layers: []descriptor{layer},
	})
	if err != nil {
		return descriptor{}, fmt.Errorf("encoding the manifest: %w", err)
	}
	at := b.add("application/vnd.oci.image.manifest.v1+json", manifest)
	at.Platform = &here
	// The first is how containerd's importer calls the image (containerd,
	// images/annotations.go); the second is OCI's own, for others.
	at.Annotations = map[string]string{
		"io.containerd.image.name":          im.Name,
		"org.opencontainers.image.ref.name": im.Name,
	}
	return at, nil
}
