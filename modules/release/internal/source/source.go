// Package source describes the commit that a release is made from.
package source

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Repository is where the sources are published.
const Repository = "https://github.com/lifeboat-dev/lifeboat"

// Source is a commit and the name of its release.
type Source struct {
	Root    string    // the repository's directory
	Version string    // semantic, without v: 0.1.0
	Commit  string    // 40 hex digits
	Dirty   bool      // the working tree differs from the commit
	Time    time.Time // of the commit; every file of the release has it
}

// Tag returns the version as binaries and git name it.
func (s Source) Tag() string { return "v" + s.Version }

// Read describes the repository at root. SOURCE_DATE_EPOCH replaces the commit's time
// (https://reproducible-builds.org/specs/source-date-epoch/).
func Read(ctx context.Context, root, version string) (Source, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return Source{}, err
	}
	changes, err := git("status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return Source{}, err
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		if epoch, err = git("log", "-1", "--format=%ct"); err != nil {
			return Source{}, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return Source{}, fmt.Errorf("reading SOURCE_DATE_EPOCH: %w", err)
	}
	return Source{
		Root: root, Version: semantic(version), Commit: commit, Dirty: changes != "", Time: time.Unix(seconds, 0).UTC(),
	}, nil
}

var (
	semver    = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$`)
	notSemver = regexp.MustCompile(`[^0-9A-Za-z-]+`)
)

// semantic makes a semantic version of what `git describe` prints, which is a bare commit
// without a tag. Helm rejects other versions. The g keeps a commit of digits from being a
// number with a leading zero.
func semantic(version string) string {
	if m := semver.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return "0.0.0-g" + strings.Trim(notSemver.ReplaceAllString(version, "-"), "-")
}
