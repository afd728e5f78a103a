// Package archive writes tar and gzip files that depend on nothing but their contents.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is one file of an archive.
type File struct {
	Path    string // with slashes, without a leading one
	Data    []byte
	Program bool // mode 0755 instead of 0644
}

// Tar writes files in the order of their paths, with the directories they are in. All
// belong to root and have the time of mtime.
func Tar(w io.Writer, files []File, mtime time.Time) error {
	out := tar.NewWriter(w)
	made := map[string]bool{".": true}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range files {
		if err := writeDirs(out, path.Dir(f.Path), made, mtime); err != nil {
			return err
		}
		if made[f.Path] {
			return fmt.Errorf("writing %s: it is there twice", f.Path)
		}
		made[f.Path] = true
		header := &tar.Header{Name: f.Path, Typeflag: tar.TypeReg, Mode: f.mode(), Size: int64(len(f.Data)), ModTime: mtime, Format: tar.FormatPAX}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", f.Path, err)
		}
		if _, err := out.Write(f.Data); err != nil {
			return fmt.Errorf("writing %s: %w", f.Path, err)
		}
	}
	return out.Close()
}

func (f File) mode() int64 {
	if f.Program {
		return 0o755
	}
	return 0o644
}

func writeDirs(out *tar.Writer, dir string, made map[string]bool, mtime time.Time) error {
	if made[dir] {
		return nil
	}
	if err := writeDirs(out, path.Dir(dir), made, mtime); err != nil {
		return err
	}
	made[dir] = true
	header := &tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: mtime, Format: tar.FormatPAX}
	if err := out.WriteHeader(header); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	return nil
}

// TarGz returns the compressed archive.
func TarGz(files []File, mtime time.Time) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := Tar(zip, files, mtime); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ReadDir returns the files below dir, with prefix before their paths. It keeps which of
// them are programs.
func ReadDir(dir, prefix string, keep func(path string) bool) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if keep != nil && !keep(rel) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, File{Path: path.Join(prefix, rel), Data: data, Program: info.Mode()&0o111 != 0})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	return files, nil
}
