package main

import (
	"os"
	"testing"
)

func TestDiagramsAreCurrent(t *testing.T) {
	for _, name := range names {
		source, err := os.ReadFile("../../docs/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		want, err := draw(string(source))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../docs/" + name + ".svg")
		if err != nil || string(got) != want {
			t.Errorf("docs/%s.svg is not what docs/%s.txt says (%v): run `go run ./hack/diagram`", name, name, err)
		}
	}
}

func TestDrawRejectsUnknownLines(t *testing.T) {
	for _, source := range []string{"box a", "column\ncircle a"} {
		if _, err := draw(source); err == nil {
			t.Errorf("draw accepted %q", source)
		}
	}
}
