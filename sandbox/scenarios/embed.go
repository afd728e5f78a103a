// Package scenarios holds the stories that the sandbox plays: the demo, the
// end-to-end tests and the documentation use the same files. How to write one
// stands in sandbox/scenario.
package scenarios

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.txtar
var files embed.FS

// FS returns all of them, as <name>.txtar.
func FS() fs.FS { return files }

// Names lists them, in order.
func Names() ([]string, error) {
	paths, err := fs.Glob(files, "*.txtar")
	if err != nil {
		return nil, fmt.Errorf("listing scenarios: %w", err)
	}
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimSuffix(p, path.Ext(p)))
	}
	return out, nil
}

// Read returns the text of one. The error names those that there are.
func Read(name string) ([]byte, error) {
	text, err := files.ReadFile(name + ".txtar")
	if err == nil {
		return text, nil
	}
	names, err := Names()
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("there is no scenario %q: there are %s", name, strings.Join(names, ", "))
}
