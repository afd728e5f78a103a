package assets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// keepOthers is how many binaries of other keys stay in the cache, so that switching between two
// branches does not rebuild each time.
const keepOthers = 2

// module is a nested module that is built into one program, or several.
type module struct {
	name     string                      // of the first program, and of the directory in modules/
	minor    string                      // of pinned, such as 1.35: its requirements are in vMINOR.mod; empty: in go.mod
	pinned   string                      // the required module whose version names the program's; empty: it requires none
	cold     string                      // duration of a first build, in words
	ldflags  func(version string) string // stamps the version
	packages []string                    // as the go command names them; nil: the one in the directory
	tags     string                      // build tags
}

// unpinned is the version of a program that is made only of Lifeboat's own sources.
const unpinned = "v0"

type builder struct {
	prebuilt  string // a directory as Export writes it; empty: there is none
	source    string // Lifeboat's root directory; empty: see sourceErr
	sourceErr error
	cache     string
	progress  *progress
}

// entry is a module's place in the cache.
type entry struct {
	module
	dir     string // the module's sources
	modfile string // its requirements: go.mod, or another file beside it
	prefix  string // of its places in the cache, and of those of its other versions
	version string
	flags   string // the linker's
	home    string // the directory of the cached binary
}

func (e entry) binary() string { return filepath.Join(e.home, e.name) }

// ensure returns the program of m and its version, and builds it first if the cache lacks it.
func (b *builder) ensure(ctx context.Context, m module) (path, version string, err error) {
	if path, version, found := prebuilt(b.prebuilt, m.name); found && m.is(version) {
		return path, version, nil
	}
	if b.source == "" {
		return "", "", fmt.Errorf("looking for %s: %w", m.name, b.sourceErr)
	}
	e, err := b.locate(m)
	if err != nil {
		return "", "", fmt.Errorf("looking for %s: %w", m.name, err)
	}
	if e.exists() {
		return e.binary(), e.version, nil
	}
	if err := os.MkdirAll(b.cache, 0o755); err != nil {
		return "", "", fmt.Errorf("building %s: making the cache: %w: set %s to a writable directory", m.name, err, CacheEnv)
	}
	unlock, err := b.lock(ctx, m.name)
	if err != nil {
		return "", "", fmt.Errorf("building %s: %w", m.name, err)
	}
	defer unlock()
	if !e.exists() { // another process may have built it meanwhile
		if err := b.build(ctx, e); err != nil {
			return "", "", fmt.Errorf("building %s %s: %w", m.name, e.version, err)
		}
	}
	return e.binary(), e.version, nil
}

func (b *builder) locate(m module) (entry, error) {
	e := entry{module: m, dir: filepath.Join(b.source, "modules", m.name), modfile: "go.mod", prefix: m.name, version: unpinned}
	if m.pinned != "" {
		var err error
		if e.version, err = e.pinnedVersion(); err != nil {
			return entry{}, err
		}
	}
	if !m.is(e.version) {
		var err error
		e.modfile, e.prefix = "v"+m.minor+".mod", m.name+"-"+m.minor
		if e.version, err = e.pinnedVersion(); err != nil {
			return entry{}, fmt.Errorf("there is no version %s: %w", m.minor, err)
		}
	}
	e.flags = strings.TrimSpace("-s -w " + m.ldflags(e.version))
	key, err := buildKey(e.dir, e.modfile, strings.TrimSpace(strings.Join([]string{e.flags, m.tags, strings.Join(m.packages, " ")}, " ")), goVersion(e.dir))
	if err != nil {
		return entry{}, err
	}
	e.home = filepath.Join(b.cache, fmt.Sprintf("%s-%s-%s", e.prefix, e.version, key))
	return e, nil
}

// is reports whether a version is of the wanted minor version.
func (m module) is(version string) bool {
	return m.minor == "" || strings.HasPrefix(version, "v"+m.minor+".")
}

// pinnedVersion is the version of the pinned module in the entry's requirements.
func (e entry) pinnedVersion() (string, error) {
	text, err := os.ReadFile(filepath.Join(e.dir, e.modfile))
	if err != nil {
		return "", fmt.Errorf("reading the requirements of %s: %w", e.name, err)
	}
	version, err := pinnedVersion(text, e.pinned)
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.dir, err)
	}
	return version, nil
}

// exists reports whether the binary exists, and marks it as used.
func (e entry) exists() bool {
	if _, err := os.Stat(e.binary()); err != nil {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(e.home, now, now) // only orders clearOld; a read-only cache still works
	return true
}

// build builds into a temporary directory, and renames the result into its place in one step.
func (b *builder) build(ctx context.Context, e entry) error {
	gocmd, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("there is no go command: install Go, at least the version in %s, and run this again", filepath.Join(e.dir, "go.mod"))
	}
	if err := b.clearUnfinished(e.name); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(b.cache, unfinishedPrefix(e.name))
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer os.RemoveAll(tmp)
	out, gotmp := filepath.Join(tmp, "out"), filepath.Join(tmp, "gotmp")
	if err := errors.Join(os.Mkdir(out, 0o755), os.Mkdir(gotmp, 0o755)); err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}

	log := filepath.Join(tmp, "build.log")
	started := time.Now()
	p, err := process.Start(ctx, process.Options{
		Name: "go build", Path: gocmd, Dir: e.dir, LogFile: log,
		Args: e.buildArgs(out),
		// GOTMPDIR within tmp, so that a stopped build leaves nothing elsewhere.
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTMPDIR="+gotmp),
	})
	if err != nil {
		return err
	}
	err = b.progress.follow(ctx, p, buildLog{path: log}, fmt.Sprintf("%s %s", e.name, e.version), e.cold)
	p.Kill9() // the whole group, compilers included; nothing to do when it has ended
	if err != nil {
		return err
	}
	if err := os.Rename(out, e.home); err != nil {
		return fmt.Errorf("putting it into the cache: %w", err)
	}
	b.progress.built(e.name, e.version, e.binary(), time.Since(started))
	return b.clearOld(e)
}

// buildArgs are the go command's, to build into the directory out.
func (e entry) buildArgs(out string) []string {
	args := []string{"build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath", "-tags=" + e.tags, "-ldflags=" + e.flags}
	if e.modfile != "go.mod" {
		args = append(args, "-modfile="+e.modfile)
	}
	args = append(args, "-o")
	if e.packages == nil {
		return append(args, filepath.Join(out, e.name), ".")
	}
	return append(append(args, out), e.packages...) // each by the name of its directory
}

// unfinishedPrefix ends with a dot, because a name can begin with another one.
func unfinishedPrefix(name string) string { return ".building-" + name + "." }

// clearUnfinished removes the remains of killed builds. It is called under the lock, so no build is
// running.
func (b *builder) clearUnfinished(name string) error {
	left, err := filepath.Glob(filepath.Join(b.cache, unfinishedPrefix(name)+"*"))
	if err != nil {
		return fmt.Errorf("looking for unfinished builds: %w", err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing an unfinished build: %w", err)
		}
	}
	return nil
}

// clearOld removes the binaries of other keys except the most recently used.
func (b *builder) clearOld(e entry) error {
	all, err := filepath.Glob(filepath.Join(b.cache, e.prefix+"-v*-*"))
	if err != nil {
		return fmt.Errorf("looking for old builds: %w", err)
	}
	used := map[string]time.Time{}
	for _, dir := range all {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for old builds: %w", err)
		}
		used[dir] = info.ModTime()
	}
	delete(used, e.home)
	others := slices.Collect(maps.Keys(used))
	slices.SortFunc(others, func(a, b string) int { return used[b].Compare(used[a]) })
	for _, dir := range others[min(keepOthers, len(others)):] {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing an old build: %w", err)
		}
	}
	return nil
}
