package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
)

func TestChaosListsFaults(t *testing.T) {
	t.Parallel()
	h := &harness{t: t}
	if r := h.run(t.Context(), "chaos", "list"); r.code != 0 || !strings.Contains(r.out, "kill-lifeboatd") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	var rows []struct {
		Name string
		Text string
	}
	r := h.run(t.Context(), "chaos", "list", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil || len(rows) != len(chaos.Menu()) || rows[0].Text == "" {
		t.Errorf("%d faults, %v: %s", len(rows), err, r.out)
	}
}

func TestChaosErrors(t *testing.T) {
	t.Parallel()
	dead := status("dead")
	dead.Running = false
	m := &testHarness{up: map[string]sandbox.Status{"dead": dead}}
	h := &harness{t: t, setup: m.use}
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"chaos kil-lifeboatd":                   {command.ExitUsage, "the closest is kill-lifeboatd"},
		"chaos":                                 {command.ExitUsage, "the name of a fault"},
		"chaos kill-lifeboatd":                  {command.ExitFailed, "does not run"},
		"chaos kill-lifeboatd --sandbox dead":   {command.ExitFailed, "does not run"},
		"chaos random --sandbox dead --for 1m":  {command.ExitFailed, "does not run"},
		"chaos kill-lifeboatd --for ten --name": {command.ExitUsage, ""},
	} {
		r := h.run(t.Context(), strings.Fields(args)...)
		if r.code != want.code || !strings.Contains(r.err, want.text) {
			t.Errorf("%s: exit code %d, want %d with %q: %s", args, r.code, want.code, want.text, r.err)
		}
	}
}
