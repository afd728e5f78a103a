package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/evidence"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/image"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/listing"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/program"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// cheap writes the files of a release that need no compiler, and returns the checksums.
func cheap(t *testing.T, s source.Source, dir string) []byte {
	t.Helper()
	m := &maker{Source: s, dir: dir, licence: []byte("licence")}
	for _, target := range cliTargets {
		for _, name := range []string{"lifeboat", "kubectl-lifeboat"} {
			file := name + "_" + target.OS + "_" + target.Arch
			m.cli = append(m.cli, listing.NewArchive(name, file, target, []byte(file)))
		}
	}
	if err := m.packages(program.Target{OS: "linux", Arch: "arm64"}, []byte("program"), []byte("licences")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return m.chart(t.Context()) },
		func() error { return m.lists(t.Context()) },
		func() error { return m.evidence(t.Context()) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestReleaseFilesAreReproducible(t *testing.T) {
	t.Setenv(evidence.KeyEnv, "")
	s := testSource(t)
	first := cheap(t, s, t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TZ", "Asia/Tokyo")
	if second := cheap(t, s, t.TempDir()); !bytes.Equal(first, second) {
		t.Errorf("two runs of one commit differ:\n%s\n%s", first, second)
	}
	var names []string
	for line := range strings.Lines(string(first)) {
		names = append(names, strings.Fields(line)[1])
	}
	want := []string{
		"krew-lifeboat.yaml", "lifeboat-9.9.9.tgz", "lifeboat-boot-9.9.9-1.aarch64.rpm", "lifeboat-boot_9.9.9_arm64.deb",
		"lifeboat.rb", "lifeboat_9.9.9.intoto.json", "lifeboat_9.9.9.spdx.json", "lifeboat_9.9.9_chart.tar",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the checksums are of %q, want %q", names, want)
	}
}

// Only dpkg-deb knows whether it accepts the package.
func TestDebInstallsUnitsWithoutDropIn(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg-deb")
	if err != nil && os.Getenv("LIFEBOAT_CI") == "" {
		t.Skip("this machine has no dpkg-deb")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cheap(t, testSource(t), dir)
	out, err := exec.CommandContext(t.Context(), dpkg, "--contents", filepath.Join(dir, "lifeboat-boot_9.9.9_arm64.deb")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"-rwxr-xr-x root/root", "./usr/local/bin/lifeboatd", "./usr/lib/systemd/system/lifeboat-boot.service",
		"./usr/lib/systemd/system/lifeboat-gate.service", "./usr/share/lifeboat-boot/05-lifeboat.conf", "./usr/share/doc/lifeboat-boot/THIRD-PARTY-LICENSES",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the package lacks %s:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "kubelet.service.d") {
		t.Errorf("the package would keep the kubelet from starting:\n%s", out)
	}
}

func TestChartIsPackedForHelm(t *testing.T) {
	s := testSource(t)
	p, err := packChart(s)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(p.Tgz))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
	if metadata := files["lifeboat/Chart.yaml"]; !strings.Contains(metadata, "\nversion: 9.9.9\nappVersion: 9.9.9\n") {
		t.Errorf("Chart.yaml is\n%s", metadata)
	}
	for _, name := range []string{"values.yaml", "values.schema.json", "crds/lifeboat.dev_interruptions.yaml", "templates/_helpers.tpl", "rbac/role.yaml"} {
		if files["lifeboat/"+name] == "" {
			t.Errorf("the chart lacks %s", name)
		}
	}
	for name := range files {
		if strings.HasSuffix(name, ".go") || strings.Contains(name, "/examples/") {
			t.Errorf("the chart contains %s", name)
		}
	}
	artifact, err := p.Artifact(s)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := artifact.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" || manifest.Layers[0].MediaType != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" {
		t.Errorf("the media types are %s and %s", manifest.Config.MediaType, manifest.Layers[0].MediaType)
	}
	dir := t.TempDir()
	if err := image.WriteLayout(dir, image.Tagged{Tag: s.Version, Ref: artifact}); err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(artifact, validate.Fast); err != nil {
		t.Error(err)
	}
}

func TestSignedReleaseHasPublicKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(evidence.KeyEnv, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	dir := t.TempDir()
	cheap(t, testSource(t), dir)
	for _, name := range []string{"SHA256SUMS.sig", "cosign.pub"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
