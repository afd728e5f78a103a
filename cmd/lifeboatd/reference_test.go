package main

import (
	"flag"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/doccommands"
)

var update = flag.Bool("update", false, "write the reference of the flags")

func TestFlagReferenceIsCurrent(t *testing.T) {
	doccommands.Reference(t, root(), "../../docs/reference/lifeboatd.md", `# Flags of lifeboatd

<!-- go test ./cmd/lifeboatd -run Reference -update writes this page from the code. -->

The chart sets these flags. `+"`controller.extraArgs` and `agent.extraArgs`"+` of [the chart](../../charts/lifeboat/README.md) add others.
`, "go test ./cmd/lifeboatd -run Reference -update", *update)
}
