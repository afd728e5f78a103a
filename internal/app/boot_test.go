package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
)

func bootConfig(t *testing.T, file string) BootConfig {
	t.Helper()
	c := BootConfig{StateDir: "/var/lib/lifeboat", GateFile: "/run/lifeboat/gate", Settings: bootagent.Settings{Interval: 7 * time.Second, AbsentFor: time.Minute}}
	if file != "" {
		c.File = filepath.Join(t.TempDir(), "boot.yaml")
		if err := os.WriteFile(c.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestFlagsOverrideFileAndListsMerge(t *testing.T) {
	t.Parallel()
	c := bootConfig(t, `
images: [b]
prepare: ["second command"]
wipePaths: [/var/lib/cni/networks]
hooks: [from-file]
pull: crictl pull REF
start: from file
nodeName: from-file
`)
	c.Images, c.Prepare, c.Start = []string{"a"}, []string{"first"}, "from flag"
	got, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	want := c
	want.Images, want.Prepare = []string{"a", "b"}, []string{"first", "second command"}
	want.WipePaths, want.Hooks = []string{"/var/lib/cni/networks"}, []string{"from-file"}
	want.Pull, want.NodeName = []string{"crictl", "pull", "REF"}, "from-file"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigFileErrorsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{
		"image: [a]":        "valid keys are the lists images, prepare, hooks and wipePaths",
		"images: a":         "valid keys are the lists",
		"wipePaths: [/etc]": "would remove too much",
		"pull: ctr pull":    "add REF",
		"images: ['']":      "remove it",
	} {
		if _, err := bootConfig(t, file).complete(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", file, err, says)
		}
	}
	if _, err := bootConfig(t, "").complete(); err != nil {
		t.Error(err)
	}
}
