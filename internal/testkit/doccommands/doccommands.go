// Package doccommands finds the commands of the program lifeboat in the docs, and says what
// is wrong with them, for the tests of the modules that have the commands.
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
	"github.com/spf13/pflag"
)

var (
	shBlock  = regexp.MustCompile("(?ms)^[ \t>]*```sh\n(.*?)^[ \t>]*```")
	anyBlock = regexp.MustCompile("(?ms)^[ \t>]*```.*?^[ \t>]*```")
	spoken   = regexp.MustCompile("`([^`]+)`")
	// aComment, aText and aBreak are what a shell takes out of a line, takes for one
	// word, and ends a command at.
	aComment = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	aText    = regexp.MustCompile(`"(?:[^"$\n]|\$[^("\n])*"|'[^']*'`)
	aBreak   = regexp.MustCompile(`\$\(|[|&;<>()"\n]`)
	// aDemand is a flag outside brackets in the usage of a command.
	aDemand = regexp.MustCompile(`(?:^| )--([a-z-]+)`)
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

// ToCopy are the arguments of the commands in the blocks for a shell.
func ToCopy(text string) [][]string { return commands(shBlock, text) }

// SpokenOf are those of the commands in sentences, which need not be whole.
func SpokenOf(text string) [][]string {
	return commands(spoken, anyBlock.ReplaceAllString(text, ""))
}

// commands are the arguments that this program is called with where a pattern matches.
func commands(where *regexp.Regexp, text string) [][]string {
	var all [][]string
	for _, m := range where.FindAllStringSubmatch(text, -1) {
		script := m[1]
		if where == spoken {
			script = strings.ReplaceAll(script, "\n", " ") // the paragraph was broken there
		}
		script = aText.ReplaceAllString(aComment.ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), ""), "text")
		for _, command := range aBreak.Split(script, -1) {
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(command), "sudo -E "))
			if len(words) > 0 && strings.TrimPrefix(words[0], "bin/") == "lifeboat" {
				all = append(all, words[1:])
			}
		}
	}
	return all
}

// Understood says what is wrong with arguments of a program: no such command, no such
// flag, or, of a whole command, something that it demands and that is not there.
func Understood(root *cobra.Command, args []string, whole bool) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	var bare *pflag.ValueRequiredError
	if err := cmd.ParseFlags(rest); err != nil && (whole || !errors.As(err, &bare)) {
		return err
	}
	if !whole && !cmd.HasSubCommands() {
		return nil
	}
	return errors.Join(cmd.ValidateArgs(cmd.Flags().Args()), demanded(cmd))
}

// demanded says which flags a command's usage demands that were not given.
func demanded(cmd *cobra.Command) error {
	var missing error
	for _, m := range aDemand.FindAllStringSubmatch(cmd.Use, -1) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == m[1] && !f.Changed {
				missing = errors.Join(missing, errors.New("it lacks --"+f.Name))
			}
		})
	}
	return missing
}
