package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/pem"
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
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/evidence"
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

// Both builds compile lifeboatd in full only if the cache of Go is empty.
func TestImageIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("builds lifeboatd for two platforms")
	}
	s := testSource(t)
	dir := t.TempDir()
	first, err := makeImage(t.Context(), s, filepath.Join(dir, "1"))
	if err != nil {
		t.Fatal(err)
	}
	// Another machine: other directories, user, time zone and flags.
	for key, value := range map[string]string{"TMPDIR": t.TempDir(), "USER": "other", "TZ": "Asia/Tokyo", "GOFLAGS": "-tags=other", "GOAMD64": "v3"} {
		t.Setenv(key, value)
	}
	second, err := makeImage(t.Context(), s, filepath.Join(dir, "2"))
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("two builds of one commit have the digests %s and %s", first, second)
	}
	index := only(t, filepath.Join(dir, "1"))
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkPlatform(t, s, img, d.Platform.Architecture, machines[d.Platform.Architecture])
	}
	if len(manifest.Manifests) != len(machines) {
		t.Errorf("the image is for %d platforms, want %d", len(manifest.Manifests), len(machines))
	}
}

func only(t *testing.T, dir string) v1.ImageIndex {
	t.Helper()
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %+v (%v), want one image", manifest, err)
	}
	index, err := all.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func checkPlatform(t *testing.T, s source.Source, img v1.Image, arch string, machine elf.Machine) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != arch || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/lifeboatd"}) ||
		config.Config.Labels["org.opencontainers.image.revision"] != s.Commit || !config.Created.Time.Equal(s.Time) {
		t.Errorf("%s: the configuration is %+v", arch, config)
	}
	files := read(t, img)
	program, err := elf.NewFile(bytes.NewReader(files["lifeboatd"]))
	if err != nil {
		t.Fatal(err)
	}
	if program.Machine != machine {
		t.Errorf("%s: lifeboatd is for %s", arch, program.Machine)
	}
	if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("%s: lifeboatd needs the libraries %v (%v), want a static program", arch, libraries, err)
	}
	if !bytes.Contains(files["lifeboatd"], []byte(s.Tag())) {
		t.Errorf("%s: lifeboatd does not contain its version", arch)
	}
	sbom, err := evidence.SBOM(s, []evidence.Program{{Name: arch, Data: files["lifeboatd"]}})
	if err != nil || !bytes.Contains(sbom, []byte("pkg:golang/k8s.io/client-go@v")) {
		t.Errorf("%s: the list of modules lacks client-go (%v)", arch, err)
	}
	roots := 0
	for block, rest := pem.Decode(files["etc/ssl/certs/ca-certificates.crt"]); block != nil; block, rest = pem.Decode(rest) {
		roots++
	}
	if roots < 100 {
		t.Errorf("%s: the image has %d root certificates", arch, roots)
	}
	licences := string(files["usr/share/doc/lifeboat/THIRD-PARTY-LICENSES"])
	for _, want := range []string{"k8s.io/client-go", "github.com/aws/aws-sdk-go-v2", "The Go programming language"} {
		if !strings.Contains(licences, want) {
			t.Errorf("%s: the licences lack %s", arch, want)
		}
	}
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
