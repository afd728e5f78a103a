package cli

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
	shBlock    = regexp.MustCompile("(?ms)^[ \t>]*```sh\n(.*?)^[ \t>]*```")
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

// TestCommandsInTheDocs checks that the commands in the docs exist, so that
// readers can copy them. A command in running text may be incomplete.
func TestCommandsInTheDocs(t *testing.T) {
	t.Parallel()
	whole, parts := 0, 0
	for page, text := range pages(t) {
		for _, args := range commands(shBlock, text) {
			whole++
			if err := checkCommand(args, true); err != nil {
				t.Errorf("%s: lifeboat %s: %v", page, strings.Join(args, " "), err)
			}
		}
		for _, args := range commands(inlineCode, anyBlock.ReplaceAllString(text, "")) {
			parts++
			if err := checkCommand(args, false); err != nil {
				t.Errorf("%s: `lifeboat %s`: %v", page, strings.Join(args, " "), err)
			}
		}
	}
	if whole < 50 || parts < 50 {
		t.Errorf("only %d commands to copy, and %d that are spoken of", whole, parts)
	}
}

func TestWrongCommandsInTheDocsAreFound(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]bool{
		"lifeboat wire hooks --cluster prod":                             true,
		"lifeboat wire iam --role controller  # and --cluster":           true,
		"lifeboat doctor --claster prod":                                 true,
		"kubectl get x | lifeboat konvert -f -":                          true,
		`eval "$(lifeboat sandbox enf)"`:                                 true,
		"lifeboat wire apply --yes \\\n  --cluster prod":                 false,
		"lifeboat wire iam --cluster prod -o json | jq '.a | .b' > x":    false,
		"helm install lifeboat charts/lifeboat --namespace lifeboat-ops": false,
	} {
		var problems error
		for _, args := range commands(shBlock, "```sh\n"+text+"\n```\n") {
			problems = errors.Join(problems, checkCommand(args, true))
		}
		if (problems != nil) != wrong {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

// pages returns the texts of the docs by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"../../README.md": ""}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
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

// commands returns the arguments of all calls of this program in the matches of
// a pattern.
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

// checkCommand returns what is wrong with arguments: an unknown command, an
// unknown flag or, for a complete command, a missing required argument.
func checkCommand(args []string, whole bool) error {
	cmd, rest, err := newRoot(newSession(Env{Args: []string{"lifeboat"}, Getenv: func(string) string { return "" }})).Find(args)
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
	return errors.Join(cmd.ValidateArgs(cmd.Flags().Args()), requiredFlags(cmd))
}

// requiredFlags returns an error for required flags that are not set.
func requiredFlags(cmd *cobra.Command) error {
	var missing error
	for _, m := range requiredFlag.FindAllStringSubmatch(cmd.Use, -1) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == m[1] && !f.Changed {
				missing = errors.Join(missing, errors.New("it lacks --"+f.Name))
			}
		})
	}
	return missing
}
