package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
)

const unitsDir = "../../deploy/systemd"

func unit(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(unitsDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The systemd units and the flags' defaults must have the same paths and names.
func TestUnitsMatchFlags(t *testing.T) {
	t.Parallel()
	flags := bootAgent().Flags()
	gate, state := flags.Lookup("gate-file").DefValue, flags.Lookup("state-dir").DefValue
	for name, wants := range map[string][]string{
		"lifeboat-gate.service":              {"[ -e " + gate + " ]", "TimeoutStartSec=infinity", "RemainAfterExit=yes"},
		"lifeboat-boot.service":              {"lifeboatd agent boot $LIFEBOAT_BOOT_FLAGS", "Restart=always", "StateDirectory=" + strings.TrimPrefix(state, "/var/lib/")},
		"kubelet.service.d/05-lifeboat.conf": {"Requires=lifeboat-gate.service", "After=lifeboat-gate.service"},
		"../../docs/guides/warm-pools.md":    {"lifeboat-boot.service", "lifeboat-gate.service", "05-lifeboat.conf"},
	} {
		for _, want := range wants {
			if !strings.Contains(unit(t, name), want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
	}
	if strings.Contains(unit(t, "lifeboat-boot.service"), "\nRuntimeDirectory=") {
		t.Error("the gate would go with a restart of the agent")
	}
	if !strings.Contains(bootagent.DefaultStop, "lifeboat-gate.service") {
		t.Error("the gate stays open when the kubelet is stopped")
	}
}

func TestSystemdAcceptsUnits(t *testing.T) {
	t.Parallel()
	analyze := need.Program(t, "systemd-analyze")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("kubelet.service.d/05-lifeboat.conf", unit(t, "kubelet.service.d/05-lifeboat.conf"))
	args := []string{
		"verify", write("kubelet.service", "[Unit]\nDescription=kubelet\n[Service]\nExecStart=/bin/true\n"),
		write("lifeboat-gate.service", unit(t, "lifeboat-gate.service")),
		write("lifeboat-boot.service", strings.ReplaceAll(unit(t, "lifeboat-boot.service"), "/usr/local/bin/lifeboatd", "/bin/true")),
	}
	cmd := exec.CommandContext(t.Context(), analyze, args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
	if out, err := cmd.CombinedOutput(); err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
