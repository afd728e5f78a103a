package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

func TestEveryCommandHasExampleAndSummary(t *testing.T) {
	for _, name := range []string{"lifeboat", "kubectl lifeboat"} {
		s := newSession(command.Env{Getenv: func(key string) string {
			return map[string]string{command.CalledAsEnv: name}[key]
		}})
		seen := 0
		var visit func(*cobra.Command)
		visit = func(cmd *cobra.Command) {
			seen++
			if cmd.Short == "" || !strings.Contains(cmd.Example, name+" sandbox ") {
				t.Errorf("%s: short %q, example %q", cmd.CommandPath(), cmd.Short, cmd.Example)
			}
			for _, sub := range cmd.Commands() {
				visit(sub)
			}
		}
		visit(newRoot(s).Commands()[0])
		if seen < 8 {
			t.Errorf("only %d commands", seen)
		}
	}
}

// Help and errors name the commands as the user writes them.
func TestCommandsUseInvokedName(t *testing.T) {
	h := &harness{t: t, getenv: map[string]string{command.CalledAsEnv: "kubectl lifeboat"}}
	for args, want := range map[string]string{
		"--help":       "kubectl lifeboat sandbox [command]",
		"up --help":    "kubectl lifeboat sandbox up [flags]",
		"upp":          `kubectl lifeboat sandbox has no command "upp"; did you mean up?`,
		"down x":       "kubectl lifeboat sandbox down takes no arguments, got 1",
		"list -o ya":   `does not support the output format "ya": use -o text or -o json`,
		"__complete u": "up\tBring a sandbox up",
	} {
		r := h.run(t.Context(), strings.Fields(args)...)
		if !strings.Contains(r.out+r.err, want) {
			t.Errorf("%s lacks %q: %s%s", args, want, r.out, r.err)
		}
	}
}
