package cli

import (
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/doccommands"
)

// TestCommandsInTheDocs are commands of this program, as far as they are about sandboxes.
func TestCommandsInTheDocs(t *testing.T) {
	t.Parallel()
	seen := 0
	for page, text := range doccommands.Pages(t, "../..") {
		for _, whole := range []bool{true, false} {
			found := doccommands.SpokenOf(text)
			if whole {
				found = doccommands.ToCopy(text)
			}
			for _, args := range found {
				if len(args) == 0 || args[0] != "sandbox" {
					continue
				}
				seen++
				if err := understood(args, whole); err != nil {
					t.Errorf("%s: lifeboat %s: %v", page, strings.Join(args, " "), err)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d commands", seen)
	}
}

func TestUnknownCommandsAreFoundInDocs(t *testing.T) {
	t.Parallel()
	found := doccommands.ToCopy("```sh\neval \"$(lifeboat sandbox enf)\"\n```\n")
	if len(found) != 1 || understood(found[0], true) == nil {
		t.Errorf("found %q, and no error in it", found)
	}
}

// understood returns the error in arguments of this program, if any.
func understood(args []string, whole bool) error {
	s := newSession(command.Env{Args: []string{"lifeboat-sandbox"}, Getenv: func(string) string { return "" }})
	return doccommands.Understood(newRoot(s), args, whole)
}
