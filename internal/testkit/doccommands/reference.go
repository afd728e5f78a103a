package doccommands

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Reference compares a page of the docs with the help of all commands of a program. intro is the page up
// to the first command. With update it writes the page; command is what to run for that.
func Reference(t *testing.T, root *cobra.Command, page, intro, command string, update bool) {
	t.Helper()
	var b strings.Builder
	b.WriteString(intro)
	writeHelp(&b, root)
	if update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s differs from the code: run %s\n%s", page, command, diff)
	}
}

// writeHelp writes a section for a command and for each one below it.
func writeHelp(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```text\n%s\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."), cmd.UseLine())
	for _, part := range []struct{ title, text string }{
		{"", cmd.Long}, {"Examples:\n", cmd.Example}, {"Flags:\n", cmd.NonInheritedFlags().FlagUsages()},
	} {
		if text := strings.Trim(part.text, "\n"); text != "" {
			fmt.Fprintf(b, "\n%s%s\n", part.title, text)
		}
	}
	b.WriteString("```\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
			writeHelp(b, sub)
		}
	}
}
