package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestEveryCommandHasAnExampleAndAShortText(t *testing.T) {
	for _, name := range []string{"lifeboat", "/usr/local/bin/kubectl-lifeboat", `kubectl-lifeboat.exe`} {
		s := newSession(Env{Args: []string{name}, Getenv: func(string) string { return "" }})
		seen := 0
		var visit func(*cobra.Command)
		visit = func(cmd *cobra.Command) {
			seen++
			if cmd.Short == "" || !strings.Contains(cmd.Example, s.name+" ") {
				t.Errorf("%s: short %q, example %q", cmd.CommandPath(), cmd.Short, cmd.Example)
			}
			for _, sub := range cmd.Commands() {
				visit(sub)
			}
		}
		visit(newRoot(s))
		if seen < 5 {
			t.Errorf("only %d commands", seen)
		}
	}
}

func TestHelpUsesTheNameItWasCalledBy(t *testing.T) {
	h := &harness{t: t, name: "/opt/bin/kubectl-lifeboat"}
	r := h.run(t.Context(), "plan", "--help")
	for _, want := range []string{"  kubectl lifeboat plan ip-10-0-1-5.ec2.internal\n", "kubectl lifeboat plan NODE|INSTANCE [flags]"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("help does not have %q:\n%s", want, r.out)
		}
	}
	if r.code != ExitOK || r.err != "" {
		t.Errorf("exit code %d, standard error %q", r.code, r.err)
	}
	if r := h.run(t.Context(), "--help"); !strings.Contains(r.out, "Exit codes:") {
		t.Errorf("the exit codes are not in the help:\n%s", r.out)
	}
}

func TestVersion(t *testing.T) {
	r := (&harness{t: t}).run(t.Context(), "version", "-o", "json")
	if r.code != ExitOK || !strings.Contains(r.out, `"goVersion"`) {
		t.Errorf("exit code %d: %s", r.code, r.out)
	}
}
