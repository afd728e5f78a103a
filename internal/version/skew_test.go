package version

import (
	"strings"
	"testing"
)

func TestSkewStartsAtTwoMinorVersions(t *testing.T) {
	for _, c := range []struct {
		client, server string
		warns          bool
	}{
		{"v0.3.0", "0.3.9", false},
		{"v0.3.0", "0.4.0", false},
		{"v0.4.0-rc.1", "0.3.0", false},
		{"v0.5.0", "0.3.0", true},
		{"v0.3.0", "0.5.0", true},
		{"v1.0.0", "0.9.0", true},
		{"dev", "0.3.0", false},
		{"f099a2aa", "0.3.0", false},
		{"v0.3.0", "", false},
		{"v0.9.0", "0.0.0-gf099a2aa", true},
	} {
		if got := Skew(c.client, c.server); (got != "") != c.warns || c.warns && !strings.Contains(got, c.server) {
			t.Errorf("%s with %s: %q, want a warning: %t", c.client, c.server, got, c.warns)
		}
	}
}
