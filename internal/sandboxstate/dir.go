package sandboxstate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// DefaultName is the sandbox that commands mean unless they name one.
const DefaultName = "default"

var nameFormat = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$`)

// CheckName says what is wrong with the name of a sandbox.
func CheckName(name string) error {
	if !nameFormat.MatchString(name) {
		return fmt.Errorf("sandbox name %q: use lower-case letters, digits and -, at most 30 of them", name)
	}
	return nil
}

// DefaultDir is where a sandbox of this name is kept:
// $XDG_STATE_HOME/lifeboat/sandbox/<name>, or lifeboat/sandbox/<name> in the
// user's cache directory.
func DefaultDir(name string) (string, error) {
	base, err := baseDir()
	return filepath.Join(base, name), err
}

func baseDir() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "lifeboat", "sandbox"), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for sandboxes: %w: set XDG_STATE_HOME to a directory", err)
	}
	return filepath.Join(cache, "lifeboat", "sandbox"), nil
}
