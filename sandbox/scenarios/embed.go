// Package scenarios contains the scenarios of the sandbox. The demo, the end-to-end
// tests and the documentation use the same files. sandbox/scenario documents
// the format.
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

// Names returns their names, sorted.
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

// Read returns the text of a scenario. The error lists the existing names.
func Read(name string) ([]byte, error) {
	text, err := files.ReadFile(name + ".txtar")
	if err == nil {
		return text, nil
	}
	names, err := Names()
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("unknown scenario %q; the scenarios are %s", name, strings.Join(names, ", "))
}
