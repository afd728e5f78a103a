package judge

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the rules into docs/promises.md")

func TestPromisesAreDocumented(t *testing.T) {
	const page = "../../docs/promises.md"
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, r := range Rules() {
		fmt.Fprintf(&rows, "| `%s` | %s |\n", r.Name, r.Promise)
	}
	const header = "| rule | promise |\n|---|---|\n"
	is := regexp.MustCompile(`(?s)\| rule \| promise \|\n\|---\|---\|\n.*?\n\n`).ReplaceAllLiteralString(string(was), header+rows.String()+"\n")
	if *update {
		if err := os.WriteFile(page, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is != string(was) {
		t.Error("docs/promises.md does not list the rules: run go test -C sandbox ./judge -update")
	}
}
