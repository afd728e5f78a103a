// Package need decides what happens to a test whose requirements the machine does not meet: it
// is skipped with a message, but fails in CI.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// ciEnv is set in CI, where everything that a test needs must be installed.
const ciEnv = "LIFEBOAT_CI"

// Program returns the path of a program, or ends the test if it is missing.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, err.Error())
	}
	return path
}

// Root ends the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "root: run the test with sudo")
	}
}

// Missing ends a test whose requirement is not met.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(ciEnv) != "" {
		t.Fatalf("CI must have what this test needs: %s", what)
	}
	t.Skipf("NOT TESTED, this machine lacks what it needs: %s", what)
}
