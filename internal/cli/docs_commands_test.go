package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/doccommands"
)

// TestCommandsInTheDocs are commands of this program, so that what is copied from a
// page is no wrong usage. One that is only spoken of need not be whole. The module sandbox/
// tests the arguments of `lifeboat sandbox`.
func TestCommandsInTheDocs(t *testing.T) {
	t.Parallel()
	whole, parts := 0, 0
	for page, text := range doccommands.Pages(t, "../..") {
		for _, args := range doccommands.ToCopy(text) {
			whole++
			if err := understood(args, true); err != nil {
				t.Errorf("%s: lifeboat %s: %v", page, strings.Join(args, " "), err)
			}
		}
		for _, args := range doccommands.SpokenOf(text) {
			parts++
			if err := understood(args, false); err != nil {
				t.Errorf("%s: `lifeboat %s`: %v", page, strings.Join(args, " "), err)
			}
		}
	}
	if whole < 50 || parts < 50 {
		t.Errorf("only %d commands to copy, and %d that are spoken of", whole, parts)
	}
}

func TestUnknownCommandsAreFoundInDocs(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]bool{
		"lifeboat aws hooks --cluster prod":                              true,
		"lifeboat aws iam --role controller  # and --cluster":            true,
		"lifeboat doctor --claster prod":                                 true,
		"kubectl get x | lifeboat konvert -f -":                          true,
		"lifeboat aws setup --yes \\\n  --cluster prod":                  false,
		"lifeboat aws iam --cluster prod -o json | jq '.a | .b' > x":     false,
		"helm install lifeboat charts/lifeboat --namespace lifeboat-ops": false,
	} {
		var problems error
		for _, args := range doccommands.ToCopy("```sh\n" + text + "\n```\n") {
			problems = errors.Join(problems, understood(args, true))
		}
		if (problems != nil) != wrong {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

// understood says what is wrong with arguments of this program.
func understood(args []string, whole bool) error {
	s := newSession(Env{Args: []string{"lifeboat"}, Getenv: func(string) string { return "" }})
	return doccommands.Understood(newRoot(s), args, whole)
}
