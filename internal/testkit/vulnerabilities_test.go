package testkit_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestVulnerabilityCheckFailsClosed runs hack/vulnerabilities.sh with a command in the
// place of govulncheck. govulncheck exits with 3 if it finds a vulnerability.
func TestVulnerabilityCheckFailsClosed(t *testing.T) {
	const unreachable = "Get https://vuln.go.dev/index/db.json: dial tcp: lookup vuln.go.dev: no such host"
	fresh, old := database(t, time.Now().Add(-24*time.Hour)), database(t, time.Now().Add(-15*24*time.Hour))
	for name, test := range map[string]struct {
		text string
		exit int
		env  []string
		want int
		says string
	}{
		"no vulnerability": {"No vulnerabilities found.", 0, nil, 0, ""},
		"a vulnerability":  {"GO-2026-0001", 3, nil, 1, "GO-2026-0001"},
		"a vulnerability whose text names a timeout": {"GO-2026-0001: an i/o timeout in net/http", 3, nil, 1, "i/o timeout"},
		"the same in CI":                               {"GO-2026-0001: dial tcp", 3, []string{"LIFEBOAT_CI=1", "LIFEBOAT_VULNDB_OPTIONAL=1"}, 1, "GO-2026-0001"},
		"another error":                                {"no required module provides package", 1, nil, 1, "no required module"},
		"an unreachable database":                      {unreachable, 1, nil, 2, "NOT CHECKED"},
		"an unreachable database in CI":                {unreachable, 1, []string{"LIFEBOAT_CI=1"}, 1, "NOT CHECKED"},
		"an unreachable database in CI that allows it": {unreachable, 1, []string{"LIFEBOAT_CI=1", "LIFEBOAT_VULNDB_OPTIONAL=1"}, 2, "NOT CHECKED"},
		"a copy of the database":                       {"", 0, []string{"LIFEBOAT_CI=1", "LIFEBOAT_VULNDB=" + fresh, "WANT=-db file://" + fresh}, 0, ""},
		"an old copy of the database":                  {"", 0, []string{"LIFEBOAT_VULNDB=" + old}, 1, "15 days old"},
		"a copy without an index":                      {"", 0, []string{"LIFEBOAT_VULNDB=" + t.TempDir()}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "govulncheck")
			script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *\"$WANT\"*) ;; *) exit 9;; esac\necho '%s'\nexit %d\n", test.text, test.exit)
			if err := os.WriteFile(fake, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(root(t), "hack", "vulnerabilities.sh"))
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GOVULNCHECK=" + fake}, test.env...)
			out, err := cmd.Output()
			got, exit := 0, &exec.ExitError{}
			if errors.As(err, &exit) {
				got = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if got != test.want || !strings.Contains(string(out), test.says) {
				t.Errorf("exit code %d, want %d, with %q in:\n%s", got, test.want, test.says, out)
			}
		})
	}
}

// database writes the index of a vulnerability database.
func database(t *testing.T, modified time.Time) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "index"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"modified":%q}`, modified.UTC().Format(time.RFC3339))
	if err := os.WriteFile(filepath.Join(dir, "index", "db.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
