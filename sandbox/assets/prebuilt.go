package assets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ProgramsEnv names a directory with programs that are already built, instead of the
// directory programs beside the executable. Archives of the sandbox contain one.
const ProgramsEnv = "LIFEBOAT_PROGRAMS"

// findPrebuilt returns that directory, or nothing if there is none.
func findPrebuilt() (string, error) {
	if dir := os.Getenv(ProgramsEnv); dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("finding the sandbox's programs: $%s: %w", ProgramsEnv, err)
		}
		return filepath.Abs(dir)
	}
	exe, err := os.Executable()
	if err != nil {
		return "", nil // then it is not from an archive
	}
	if target, err := filepath.EvalSymlinks(exe); err == nil {
		exe = target
	}
	dir := filepath.Join(filepath.Dir(exe), "programs")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", nil
	}
	return dir, nil
}

// prebuilt returns the program of a module and its version, if dir has it as Export
// writes it.
func prebuilt(dir, name string) (path, version string, found bool) {
	if dir == "" {
		return "", "", false
	}
	homes, err := filepath.Glob(filepath.Join(dir, name+"-v*"))
	if err != nil || len(homes) != 1 {
		return "", "", false
	}
	path = filepath.Join(homes[0], name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", "", false
	}
	return path, strings.TrimPrefix(filepath.Base(homes[0]), name+"-"), true
}

// Export copies the programs into dir, each with the others of its module:
// NAME-VERSION/NAME. dir must not have them already.
func Export(p Paths, dir string) error {
	for path, version := range map[string]string{
		p.Kubernetes: p.KubernetesVersion, p.Kwok: p.KwokVersion, p.Karpenter: p.KarpenterVersion,
	} {
		if path == "" {
			continue
		}
		to := filepath.Join(dir, filepath.Base(path)+"-"+version)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("copying %s: %w", path, err)
		}
		if err := os.CopyFS(to, os.DirFS(filepath.Dir(path))); err != nil {
			return fmt.Errorf("copying %s: %w", path, err)
		}
	}
	return nil
}
