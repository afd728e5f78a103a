//go:build e2e

package main

import (
	"bytes"
	"debug/elf"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/evidence"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// Both builds compile lifeboatd in full only if the cache of Go is empty.
func TestImageIsReproducible(t *testing.T) {
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
	checkRuns(t, arch, files["lifeboatd"])
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

// checkRuns runs the check of `helm test` with the program, on other processors by emulation.
func checkRuns(t *testing.T, arch string, program []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lifeboatd")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	command := []string{path, "check", "--url=" + server.URL}
	if arch != runtime.GOARCH {
		names := map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}
		emulator, err := exec.LookPath(names[arch])
		if err != nil {
			if os.Getenv("LIFEBOAT_CI") != "" {
				t.Errorf("%s: CI must have Debian's qemu-user-static: %v", arch, err)
			}
			return
		}
		command = append([]string{emulator}, command...)
	}
	if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%s: lifeboatd check: %v\n%s", arch, err, out)
	}
}
