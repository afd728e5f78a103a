package main

import (
	"archive/tar"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/image"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

func testSource(t *testing.T) source.Source {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s, err := source.Read(t.Context(), root, "v9.9.9")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, img v1.Image) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	r := tar.NewReader(mutate.Extract(img))
	for {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode&0o022 != 0 || header.Uid != 0 {
			t.Errorf("%s has mode %o and owner %d: only root may write it", header.Name, header.Mode, header.Uid)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// smallIndex is an image with a program of one line.
func smallIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	var contents []image.Content
	for _, target := range imageTargets {
		contents = append(contents, image.Content{Target: target, Program: []byte(target.Arch), Licence: []byte("L"), Licences: []byte("M")})
	}
	index, err := image.Index(testSource(t), contents)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestPushedImageHasItsDigest(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/lifeboatd"
	index := smallIndex(t)
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := image.WriteLayout(dir, image.Tagged{Tag: "9.9.9", Ref: index}); err != nil {
		t.Fatal(err)
	}
	var pushed []string
	if err := image.Push(t.Context(), dir, repository, false, func(ref string) { pushed = append(pushed, ref) }); err != nil {
		t.Fatal(err)
	}
	if ref := repository + ":9.9.9@" + want.String(); !slices.Equal(pushed, []string{ref}) {
		t.Errorf("pushed %v, want %s", pushed, ref)
	}
	for _, target := range imageTargets {
		tag, err := name.NewTag(repository + ":9.9.9")
		if err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: target.OS, Architecture: target.Arch}))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(read(t, img)["lifeboatd"]); got != target.Arch {
			t.Errorf("the registry gave %s the program of %q", target, got)
		}
	}
	if err := image.Push(t.Context(), dir, "NOT A REPOSITORY", false, nil); err == nil {
		t.Error("a name that is not valid was accepted")
	}
	if err := image.Push(t.Context(), os.DevNull, repository, false, nil); err == nil {
		t.Error("a layout that is not there was pushed")
	}
}
