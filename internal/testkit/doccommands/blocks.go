package doccommands

import (
	"regexp"
	"strings"
)

// Block is a fenced block of a page.
type Block struct {
	// Line is the line of the fence, from 1.
	Line int
	// Lang is the language of the fence, such as sh; empty if it has none.
	Lang string
	// NoRun is the reason in the fence of a shell block that the tests cannot run:
	// ```sh no-run: REASON
	NoRun string
	// Marked reports whether the fence has a mark at all, with a reason or without.
	Marked bool
	Text   string
}

var fence = regexp.MustCompile("^[ \t>]*```(\\w*) *(.*)$")

const noRun = "no-run:"

// Blocks are the fenced blocks of a page, in order.
func Blocks(text string) []Block {
	var all []Block
	var open *Block
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m == nil && open != nil:
			open.Text += line + "\n"
		case m == nil:
		case open == nil:
			open = &Block{Line: i + 1, Lang: m[1], Marked: m[2] != ""}
			if reason, marked := strings.CutPrefix(m[2], noRun); marked {
				open.NoRun = strings.TrimSpace(reason)
			}
		default:
			all, open = append(all, *open), nil
		}
	}
	return all
}
