// Package program builds Lifeboat's programs for release, and collects the licences of what
// they contain.
package program

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// Target is a platform.
type Target struct{ OS, Arch string }

func (t Target) String() string { return t.OS + "/" + t.Arch }

const versionVar = "github.com/lifeboat-dev/lifeboat/internal/version.version"

// Build builds a package of the module in dir, a directory of the repository, into the file out.
// The result depends on the sources, the toolchain and the target only: not on the machine's
// paths, its environment or the time.
func Build(ctx context.Context, s source.Source, dir, pkg string, t Target, out string) error {
	cmd := goCommand(ctx, filepath.Join(s.Root, dir), t, "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags=-s -w -buildid= -X "+versionVar+"="+s.Tag(), "-o", out, pkg)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s for %s: %w", pkg, t, err)
	}
	return nil
}

// goCommand fixes the variables that select other instructions or flags.
func goCommand(ctx context.Context, dir string, t Target, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=",
		"GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0")
	return cmd
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)(\..*|-.*)?$`)

// Licences returns one text with the licences of all modules that the packages link for
// the target, and of Go's own libraries.
func Licences(ctx context.Context, s source.Source, dir string, t Target, pkgs ...string) ([]byte, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}	{{.Dir}}{{end}}{{end}}`
	out, err := goCommand(ctx, filepath.Join(s.Root, dir), t, append([]string{"list", "-deps", "-f", format}, pkgs...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing modules: %w", err)
	}
	goroot, err := goCommand(ctx, s.Root, t, "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("finding Go's licence: %w", err)
	}
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	modules = append(modules, "The Go programming language\t"+strings.TrimSpace(string(goroot)))
	slices.Sort(modules)
	var text bytes.Buffer
	for _, line := range slices.Compact(modules) {
		name, dir, found := strings.Cut(line, "\t")
		if !found || dir == "" { // of a package in this repository
			continue
		}
		if err := writeLicences(&text, name, dir); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func writeLicences(w *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the licence of %s: %w", name, err)
	}
	found := false
	for _, e := range entries {
		if e.Type() != fs.FileMode(0) || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("reading the licence of %s: %w", name, err)
		}
		fmt.Fprintf(w, "%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return fmt.Errorf("reading the licence of %s: there is no file with a licence in %s", name, dir)
	}
	return nil
}
