package main

import (
	"os"
	"testing"
)

func TestDiagramIsCurrent(t *testing.T) {
	source, err := os.ReadFile("../../docs/architecture.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, err := draw(string(source))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/architecture.svg")
	if err != nil || string(got) != want {
		t.Errorf("docs/architecture.svg is not what docs/architecture.txt says (%v): run `go run ./hack/diagram`", err)
	}
}

func TestDrawRejectsUnknownLines(t *testing.T) {
	for _, source := range []string{"box a", "column\ncircle a"} {
		if _, err := draw(source); err == nil {
			t.Errorf("draw accepted %q", source)
		}
	}
}
