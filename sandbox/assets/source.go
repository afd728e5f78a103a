package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

const rootModule = "github.com/lifeboat-dev/lifeboat"

var errNoSource = errors.New("the sandbox builds its programs from Lifeboat's sources, which were not found")

// findSource returns Lifeboat's root directory: $LIFEBOAT_SOURCE, or the first one at or above the
// working directory or this program.
func findSource() (string, error) {
	if dir := os.Getenv(SourceEnv); dir != "" {
		if !isRoot(dir) {
			return "", fmt.Errorf("finding Lifeboat's sources: $%s is %s, which has no go.mod of %s: set it to a clone", SourceEnv, dir, rootModule)
		}
		return filepath.Abs(dir)
	}
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(exe); err == nil {
			exe = target
		}
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			if isRoot(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("finding Lifeboat's sources: %w: run this within a clone, or set %s to one", errNoSource, SourceEnv)
}

var rootLine = regexp.MustCompile(`(?m)^module\s+` + regexp.QuoteMeta(rootModule) + `\s*$`)

func isRoot(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && rootLine.Match(mod)
}

// pinnedVersion reads the required version of a module from a go.mod.
func pinnedVersion(goMod []byte, path string) (string, error) {
	line := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(path) + `\s+(v\S+)`)
	m := line.FindSubmatch(goMod)
	if m == nil {
		return "", fmt.Errorf("go.mod does not require %s", path)
	}
	return string(m[1]), nil
}

// buildKey is a digest of all inputs of a binary: the module's requirements with their sums, its Go
// files, the toolchain, the platform and the linker's flags.
func buildKey(dir, modfile, ldflags, goVersion string) (string, error) {
	h, sums := sha256.New(), strings.TrimSuffix(modfile, ".mod")+".sum"
	fmt.Fprintf(h, "%s %s/%s %q\n", goVersion, runtime.GOOS, runtime.GOARCH, ldflags)
	// WalkDir goes in lexical order, so the digest is stable.
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		isSource := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if !isSource && name != modfile && name != sums {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", rel, len(data))
		h.Write(data)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the sources: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// goVersion is the toolchain that the go command uses in dir. Without a go command it is the toolchain
// of this program, so that earlier builds are still found.
func goVersion(dir string) string {
	cmd := exec.Command("go", "env", "GOVERSION")
	cmd.Dir = dir
	out, err := cmd.Output()
	if v := strings.TrimSpace(string(out)); err == nil && v != "" {
		return v
	}
	return runtime.Version()
}
