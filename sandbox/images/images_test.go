package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contents reads a tar; every entry must be a plain file without a time or an owner.
func contents(t *testing.T, archive []byte, mode int64) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || h.Mode != mode || h.ModTime.Unix() != 0 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("entry %+v", h)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := out[h.Name]; twice {
			t.Errorf("%s exists twice", h.Name)
		}
		out[h.Name] = data
	}
}

// blob returns what a descriptor refers to; its size and digest must match.
func blob(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	data, ok := files["blobs/"+strings.ReplaceAll(d.Digest, ":", "/")]
	if !ok {
		t.Fatalf("there is no blob %s", d.Digest)
	}
	sum := sha256.Sum256(data)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != d.Digest || int64(len(data)) != d.Size {
		t.Errorf("blob %s of %d bytes is %s of %d", d.Digest, d.Size, got, len(data))
	}
	return data
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func TestArchiveIndexReferencesProgram(t *testing.T) {
	program := []byte("\x7fELF, a program")
	var archive bytes.Buffer
	images := []Image{{Name: "example.com/a:1"}, {Name: "example.com/b:2", Args: []string{"pause", "--long"}}}
	if err := Write(&archive, program, images); err != nil {
		t.Fatal(err)
	}
	files := contents(t, archive.Bytes(), 0o644)
	if got := string(files["oci-layout"]); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	idx := decode[index](t, files["index.json"])
	if len(idx.Manifests) != len(images) {
		t.Fatalf("%d manifests", len(idx.Manifests))
	}
	for i, at := range idx.Manifests {
		if at.Annotations["io.containerd.image.name"] != images[i].Name {
			t.Errorf("image %d is called %v", i, at.Annotations)
		}
		if want := (platform{runtime.GOARCH, "linux"}); *at.Platform != want {
			t.Errorf("it is for %+v", *at.Platform)
		}
		m := decode[manifest](t, blob(t, files, at))
		if len(m.Layers) != 1 {
			t.Fatalf("%d layers", len(m.Layers))
		}
		config := decode[imageConfig](t, blob(t, files, m.Config))
		want := imageConfig{
			platform: platform{runtime.GOARCH, "linux"},
			Config:   runConfig{Entrypoint: append([]string{"/workload"}, images[i].Args...), WorkingDir: "/"},
			RootFS:   rootFS{Type: "layers", DiffIDs: []string{m.Layers[0].Digest}},
		}
		if diff := cmp.Diff(want, config, cmp.AllowUnexported(imageConfig{})); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
		inside := contents(t, blob(t, files, m.Layers[0]), 0o755)
		if diff := cmp.Diff(map[string][]byte{"workload": program}, inside); diff != "" {
			t.Errorf("layer (-want +got):\n%s", diff)
		}
	}
	if want := 2 + 1 + 2*2; len(files) != want { // one shared layer
		t.Errorf("%d files, want %d", len(files), want)
	}
}

func TestWriteFileIsReproducible(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, bytes.Repeat([]byte("program"), 1000), 0o755); err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, name := range []string{"one.tar", "two.tar", "two.tar"} {
		file := filepath.Join(dir, name)
		if err := WriteFile(file, program); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	if !bytes.Equal(all[0], all[1]) || !bytes.Equal(all[1], all[2]) {
		t.Error("it differs")
	}
	idx := decode[index](t, contents(t, all[0], 0o644)["index.json"])
	var names []string
	for _, m := range idx.Manifests {
		names = append(names, m.Annotations["io.containerd.image.name"])
	}
	if diff := cmp.Diff([]string{Workload, Pause}, names); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".images-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteFileReportsMissingFile(t *testing.T) {
	dir := t.TempDir()
	err := WriteFile(filepath.Join(dir, "images.tar"), filepath.Join(dir, "nothing"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "reading the program") {
		t.Errorf("error %v", err)
	}
}
