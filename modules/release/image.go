package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/evidence"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/image"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/program"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// imageTargets are the platforms of the image.
var imageTargets = []program.Target{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}

const daemonPackage = "./cmd/lifeboatd"

// makeImage builds lifeboatd and writes its image to the layout dir, with a signature if there is a
// key. It returns the image's digest.
func makeImage(ctx context.Context, s source.Source, dir string) (v1.Hash, error) {
	licence, err := os.ReadFile(filepath.Join(s.Root, "LICENSE"))
	if err != nil {
		return v1.Hash{}, err
	}
	var contents []image.Content
	for _, t := range imageTargets {
		binary, err := build(ctx, s, ".", daemonPackage, t)
		if err != nil {
			return v1.Hash{}, err
		}
		licences, err := program.Licences(ctx, s, ".", t, daemonPackage)
		if err != nil {
			return v1.Hash{}, err
		}
		contents = append(contents, image.Content{Target: t, Program: binary, Licence: licence, Licences: licences})
	}
	index, err := image.Index(s, contents)
	if err != nil {
		return v1.Hash{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	images := []image.Tagged{{Tag: s.Version, Ref: index}}
	key, err := evidence.Key()
	if err != nil {
		return v1.Hash{}, err
	}
	if key != nil {
		signature, err := evidence.ImageSignature(key, os.Getenv("LIFEBOAT_IMAGE"), digest)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("signing the image: %w", err)
		}
		images = append(images, image.Tagged{Tag: evidence.SignatureTag(digest), Ref: signature})
	}
	return digest, image.WriteLayout(dir, images...)
}

// build returns a program of the repository.
func build(ctx context.Context, s source.Source, dir, pkg string, t program.Target) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "lifeboat-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "program")
	if err := program.Build(ctx, s, dir, pkg, t, out); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}
