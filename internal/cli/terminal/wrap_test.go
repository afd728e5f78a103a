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

func TestTableIsTruncated(t *testing.T) {
	var out bytes.Buffer
	table := NewTable("NAME", "REASON", "MORE")
	table.Row(Cell{Text: "a-name", Style: Bad}, Cell{Text: "a long reason", Style: Dim}, Cell{Text: "unseen"})
	for columns := 1; columns < 40; columns++ {
		out.Reset()
		table.WriteCut(Stream{Writer: &out}, columns)
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > columns {
				t.Errorf("%d columns where there are %d: %q", n, columns, line)
			}
		}
	}
	out.Reset()
	table.WriteCut(Stream{Writer: &out, Color: true}, 12)
	want := "\x1b[2mNAME\x1b[0m    \x1b[2mREA…\x1b[0m\n\x1b[31ma-name\x1b[0m  \x1b[2ma l…\x1b[0m\n"
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
