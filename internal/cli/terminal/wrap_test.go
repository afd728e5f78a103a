package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"ten chars!", []string{"ten chars!"}},
		{"ten chars! and more", []string{"ten chars!", "and more"}},
		{"a word-that-is-too-long for it", []string{"a", "word-that-is-too-long", "for it"}},
		{"vierzehn Größen", []string{"vierzehn", "Größen"}},
	} {
		if diff := cmp.Diff(c.want, Wrap(c.text, 10)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestFactsAndRowDetails(t *testing.T) {
	var out bytes.Buffer
	s := Stream{Writer: &out, Width: 24}
	s.Fact(6, "why", Plain, "because it is so and not otherwise")
	table := NewTable("A", "B")
	table.Row(Cell{Text: "one"}, Cell{Text: "two"})
	table.Under(Cell{Text: "what there is to say of it"})
	table.Row(Cell{Text: "three"})
	table.Write(s)
	want := "why   because it is so\n      and not otherwise\nA      B\none    two\n    what there is to say\n    of it\nthree\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The last column is the reason of a row, and no terminal is too narrow for it.
func TestTableKeepsLastColumn(t *testing.T) {
	const reason = "shop/db-0 waits: PodDisruptionBudget db-pdb allows 0 disruptions"
	for columns := 24; columns < 90; columns++ {
		var out bytes.Buffer
		table := NewTable("NAME", "PHASE", "WAITS FOR")
		table.Row(Cell{Text: "a-name"}, Cell{Text: "Draining"}, Cell{Text: reason})
		table.Row(Cell{Text: "a-long-name"}, Cell{Text: "Drained"}, Cell{Text: "short"})
		table.WriteFit(Stream{Writer: &out, Width: columns}, columns)
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > columns {
				t.Errorf("%d columns where there are %d: %q", n, columns, line)
			}
		}
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, reason) {
			t.Errorf("the reason is cut at %d columns:\n%s", columns, out.String())
		}
	}
}

func TestTableCutsOtherColumns(t *testing.T) {
	var out bytes.Buffer
	table := NewTable("NAME", "REASON", "MORE")
	table.Row(Cell{Text: "a-name", Style: Bad}, Cell{Text: "a long reason", Style: Dim}, Cell{Text: "seen"})
	table.WriteFit(Stream{Writer: &out, Color: true, Width: 12}, 12)
	want := "\x1b[2mNAME\x1b[0m    \x1b[2mREA…\x1b[0m\n\x1b[31ma-name\x1b[0m  \x1b[2ma l…\x1b[0m\n    seen\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFrameOverwritesPreviousFrame(t *testing.T) {
	var out bytes.Buffer
	p := NewPicture(Stream{Writer: &out})
	p.Draw("one\ntwo\n")
	p.Draw("one\ntwo\n")
	p.Draw("three\n")
	want := "\r\x1b[Kone\n\r\x1b[Ktwo\n\x1b[J" + "\x1b[2A\r\x1b[Kthree\n\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
