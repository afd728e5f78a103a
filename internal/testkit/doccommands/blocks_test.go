package doccommands

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocksOfPage(t *testing.T) {
	t.Parallel()
	page := "text\n```sh\na\nb\n```\n\n> ```yaml\n> c: d\n> ```\n```sh no-run: it needs AWS\ne\n```\n```sh later\n```\n```\nf\n```\n"
	want := []Block{
		{Line: 2, Lang: "sh", Text: "a\nb\n"},
		{Line: 7, Lang: "yaml", Text: "> c: d\n"},
		{Line: 10, Lang: "sh", NoRun: "it needs AWS", Marked: true, Text: "e\n"},
		{Line: 13, Lang: "sh", Marked: true},
		{Line: 15, Text: "f\n"},
	}
	if diff := cmp.Diff(want, Blocks(page)); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

// program matches the first word of a block without a language that is a command.
var program = regexp.MustCompile(`^(sudo|kubectl|helm|lifeboat|aws|kops|terraform|systemctl|eksctl) `)

// TestShellBlocksAreMarkedAsSuch finds commands that no test would run: in a block without a
// language, or with a mark without a reason.
func TestShellBlocksAreMarkedAsSuch(t *testing.T) {
	t.Parallel()
	seen := 0
	for page, text := range Pages(t, "../../..") {
		for _, b := range Blocks(text) {
			switch {
			case b.Lang == "" && program.MatchString(b.Text):
				t.Errorf("%s:%d: commands in a block without a language: write ```sh", filepath.Base(page), b.Line)
			case b.Lang != "sh":
			case b.Marked && len(strings.Fields(b.NoRun)) < 3:
				t.Errorf("%s:%d: write ```sh, or ```sh no-run: and the reason", filepath.Base(page), b.Line)
			default:
				seen++
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d shell blocks", seen)
	}
}
