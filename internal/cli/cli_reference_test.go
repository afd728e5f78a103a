package cli

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/doccommands"
)

func TestCommandReferenceIsCurrent(t *testing.T) {
	doccommands.Reference(t, newRoot(newSession(Env{Args: []string{"lifeboat"}, Getenv: func(string) string { return "" }})), "../../docs/reference/cli.md", `# Commands of the CLI

<!-- go test ./internal/cli -run Reference -update writes this page from the code. -->

This is the help of each command, without the flags of `+"`lifeboat`"+` that all commands take. [Errors](errors.md)
lists the errors. The program of the sandbox is separate: `+"`lifeboat sandbox --help`"+`.
`, "go test ./internal/cli -run Reference -update", *update)
}
