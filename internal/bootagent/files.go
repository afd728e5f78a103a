package bootagent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Dir keeps files in a directory, which is created when first needed.
type Dir string

var _ Files = Dir("")

// Read reads a file; a missing one is empty.
func (d Dir) Read(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(d), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Write writes a temporary file, syncs and renames it, and syncs the directory. A power cut
// leaves the old or the new file, complete.
func (d Dir) Write(name string, data []byte) error {
	if err := os.MkdirAll(string(d), 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(string(d), "."+name+"-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(d), name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Remove removes a file if it exists.
func (d Dir) Remove(name string) error {
	if err := os.Remove(filepath.Join(string(d), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// File is a Files with a single file for all names.
type File string

var _ Files = File("")

func (f File) split() (Dir, string) { return Dir(filepath.Dir(string(f))), filepath.Base(string(f)) }

// Read reads the file; a missing one is empty.
func (f File) Read(string) ([]byte, error) { d, name := f.split(); return d.Read(name) }

// Write writes the file, as Dir does.
func (f File) Write(_ string, data []byte) error { d, name := f.split(); return d.Write(name, data) }

// Remove removes the file if it exists.
func (f File) Remove(string) error { d, name := f.split(); return d.Remove(name) }

// CheckWipe rejects dangerous paths: relative ones, and directories near the root that a machine
// needs.
func CheckWipe(paths []string) error {
	for _, p := range paths {
		clean := filepath.Clean(p)
		if !filepath.IsAbs(p) || strings.Count(clean, "/") < 3 {
			return fmt.Errorf("--wipe-path %s would remove too much: name a file or a directory at least three levels down, such as /var/lib/cni/networks", p)
		}
	}
	return nil
}
