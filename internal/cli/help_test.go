package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestEveryCommandHasExampleAndShortHelp(t *testing.T) {
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

var sentenceEnd = regexp.MustCompile(`[.!?:;](\s|$)|\n\s*\n|\n +`)

// Many readers are not native speakers.
func TestHelpHasShortSentences(t *testing.T) {
	s := newSession(Env{Args: []string{"lifeboat"}, Getenv: func(string) string { return "" }})
	read := 0
	check := func(where, text string) {
		for _, sentence := range sentenceEnd.Split(text, -1) {
			read++
			if n := len(strings.Fields(sentence)); n > 25 {
				t.Errorf("%s: a sentence of %d words, at most 25: %s", where, n, sentence)
			}
		}
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		check(cmd.CommandPath(), cmd.Short+".\n\n"+cmd.Long)
		check(cmd.CommandPath()+" flags", cmd.LocalFlags().FlagUsages())
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(s))
	if read < 200 {
		t.Errorf("only %d sentences were read", read)
	}
}

func TestHelpUsesInvokedName(t *testing.T) {
	h := &harness{t: t, name: "/opt/bin/kubectl-lifeboat"}
	r := h.run(t.Context(), "plan", "--help")
	for _, want := range []string{"  kubectl lifeboat plan ip-10-0-1-5.ec2.internal\n", "kubectl lifeboat plan [NODE|INSTANCE] [flags]"} {
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
