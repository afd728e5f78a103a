// Package doccommands finds the commands of the program lifeboat in the docs and validates them,
// for the tests of the modules that have the commands.
package doccommands

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	shBlock    = regexp.MustCompile("(?ms)^[ \t>]*```sh(?: no-run:[^\n]*)?\n(.*?)^[ \t>]*```")
	anyBlock   = regexp.MustCompile("(?ms)^[ \t>]*```.*?^[ \t>]*```")
	inlineCode = regexp.MustCompile("`([^`]+)`")
	// shellComment, shellText and shellBreak match what a shell removes, treats as one
	// word, and treats as the end of a command.
	shellComment = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	shellText    = regexp.MustCompile(`"(?:[^"$\n]|\$[^("\n])*"|'[^']*'`)
	shellBreak   = regexp.MustCompile(`\$\(|[|&;<>()"\n]`)
	// requiredFlag matches a flag outside brackets in the usage line of a command.
	requiredFlag = regexp.MustCompile(`(?:^| )--([a-z-]+)`)
)

// Pages are the texts of the docs, by name. root is the directory of the repository.
func Pages(t testing.TB, root string) map[string]string {
	t.Helper()
	found := map[string]string{filepath.Join(root, "README.md"): ""}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			found[path] = ""
		}
		return err
	})
	for path := range maps.Clone(found) {
		text, readErr := os.ReadFile(path)
		found[path], err = string(text), errors.Join(err, readErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// ToCopy are the arguments of the commands in shell blocks.
func ToCopy(text string) [][]string { return commands(shBlock, text) }

// SpokenOf are the arguments of the commands in sentences, which may be incomplete.
func SpokenOf(text string) [][]string {
	return commands(inlineCode, anyBlock.ReplaceAllString(text, ""))
}

// commands are the arguments of the program where a pattern matches.
func commands(where *regexp.Regexp, text string) [][]string {
	var all [][]string
	for _, m := range where.FindAllStringSubmatch(text, -1) {
		script := m[1]
		if where == inlineCode {
			script = strings.ReplaceAll(script, "\n", " ") // a line break in the paragraph
		}
		script = shellText.ReplaceAllString(shellComment.ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), ""), "text")
		for _, command := range shellBreak.Split(script, -1) {
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(command), "sudo -E "))
			if len(words) > 0 && strings.TrimPrefix(words[0], "bin/") == "lifeboat" {
				all = append(all, words[1:])
			}
		}
	}
	return all
}

// Understood returns what is wrong with the arguments of a program: an unknown command or flag,
// or, for a complete command, a missing required flag.
func Understood(root *cobra.Command, args []string, whole bool) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil && (whole || !strings.HasPrefix(err.Error(), "flag needs an argument")) {
		return err
	}
	if !whole && !cmd.HasSubCommands() {
		return nil
	}
	return errors.Join(cmd.ValidateArgs(cmd.Flags().Args()), requiredFlags(cmd))
}

// requiredFlags returns an error for required flags that are not set.
func requiredFlags(cmd *cobra.Command) error {
	var missing error
	for _, m := range requiredFlag.FindAllStringSubmatch(cmd.Use, -1) {
		if f := cmd.Flags().Lookup(m[1]); f != nil && !f.Changed {
			missing = errors.Join(missing, errors.New("it lacks --"+f.Name))
		}
	}
	return missing
}
