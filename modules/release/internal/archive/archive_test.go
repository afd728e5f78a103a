package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"testing"
	"time"
)

func TestArchiveDependsOnContentOnly(t *testing.T) {
	at := time.Unix(1700000000, 0)
	files := []File{{Path: "b/run", Data: []byte("x"), Program: true}, {Path: "a", Data: []byte("y")}, {Path: "b/c/d", Data: []byte("z")}}
	first, err := TarGz(files, at)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	second, err := TarGz(files, at.In(time.FixedZone("east", 3600)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("another order of the files gives another archive")
	}
	zip, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	r := tar.NewReader(zip)
	for header, err := r.Next(); err != io.EOF; header, err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, header.FileInfo().Mode().String()+" "+header.Name)
		if !header.ModTime.Equal(at) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%s has the time %s and the owner %d %q", header.Name, header.ModTime, header.Uid, header.Uname)
		}
	}
	want := []string{"-rw-r--r-- a", "drwxr-xr-x b/", "drwxr-xr-x b/c/", "-rw-r--r-- b/c/d", "-rwxr-xr-x b/run"}
	if !slices.Equal(got, want) {
		t.Errorf("the archive has %q, want %q", got, want)
	}
}

func TestArchiveRefusesRepeatedPath(t *testing.T) {
	if _, err := TarGz([]File{{Path: "a"}, {Path: "a"}}, time.Time{}); err == nil {
		t.Error("a path that is there twice was accepted")
	}
}
