package version

import (
	"runtime/debug"
	"testing"
)

func TestFrom(t *testing.T) {
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "3f1c9a526d0b4f0e9d0a7b6f0c2f4f1112345678"},
		{Key: "vcs.modified", Value: "true"},
	}
	for _, c := range []struct {
		name    string
		stamped string
		build   debug.BuildInfo
		want    string
	}{
		{"the stamped version wins", "v0.1.0", debug.BuildInfo{Main: debug.Module{Version: "v0.0.9"}}, "v0.1.0"},
		{"go install recorded one", "", debug.BuildInfo{Main: debug.Module{Version: "v0.0.9"}}, "v0.0.9"},
		{"built in the tree", "", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "dev"},
		{"the commit is shortened and marked dirty", "v0.1.0", debug.BuildInfo{Settings: vcs}, "v0.1.0 (3f1c9a526d0b+dirty)"},
		{"a clean commit", "", debug.BuildInfo{Settings: vcs[:1]}, "dev (3f1c9a526d0b)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := from(c.stamped, &c.build).String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
