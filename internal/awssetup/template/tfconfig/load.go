package tfconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Disk reads the files that a configuration names: modules, and those of the function
// file.
type Disk interface {
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]fs.DirEntry, error)
}

// directory is the configuration in a directory.
type directory struct {
	path      string
	variables map[string]*hclsyntax.Block
	locals    map[string]hclsyntax.Expression
	// resources are the resources and data sources by address, such as data.x.y.
	resources map[string]*hclsyntax.Block
	modules   map[string]*hclsyntax.Block
	outputs   map[string]*hclsyntax.Block
	providers []*hclsyntax.Block
	// values are those of tfvars files.
	values []hclsyntax.Attributes
}

// Is reports whether a file has HCL, by its name.
func Is(name string) bool {
	return strings.HasSuffix(name, ".tf") || strings.HasSuffix(name, ".tfvars") || strings.HasSuffix(name, ".tofu")
}

// load reads the files of a directory.
func load(dir string, files map[string][]byte) (*directory, error) {
	d := &directory{
		path: dir, variables: map[string]*hclsyntax.Block{}, locals: map[string]hclsyntax.Expression{},
		resources: map[string]*hclsyntax.Block{}, modules: map[string]*hclsyntax.Block{}, outputs: map[string]*hclsyntax.Block{},
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	// The last of the tfvars files wins (Terraform documentation, "Variable Definition Precedence").
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	for _, name := range names {
		file, problems := hclsyntax.ParseConfig(files[name], name, hcl.InitialPos)
		if problems.HasErrors() {
			return nil, fmt.Errorf("it is not valid HCL: %w", problems)
		}
		body, ok := file.Body.(*hclsyntax.Body)
		switch {
		case !ok:
		case strings.HasSuffix(name, ".tfvars"):
			d.values = append(d.values, body.Attributes)
		default:
			d.add(body)
		}
	}
	return d, nil
}

func rank(name string) int {
	switch {
	case path.Base(name) == "terraform.tfvars":
		return 0
	case strings.HasSuffix(name, ".auto.tfvars"):
		return 1
	}
	return 2
}

// Roots returns the directories of the configurations in files, without those that other
// configurations use as modules.
func Roots(files map[string][]byte) []string {
	dirs, used := map[string]map[string][]byte{}, map[string]bool{}
	for name, data := range files {
		if dir := path.Dir(name); !strings.HasSuffix(name, ".tfvars") {
			if dirs[dir] == nil {
				dirs[dir] = map[string][]byte{}
			}
			dirs[dir][name] = data
		}
	}
	for dir, own := range dirs {
		d, err := load(dir, own)
		if err != nil {
			continue // Evaluate reports it
		}
		for _, call := range d.modules {
			if a := call.Body.Attributes["source"]; a != nil {
				if source, ok := text((&scope{module: &module{evaluator: &evaluator{}, dir: d}}).value(a.Expr)); ok && strings.HasPrefix(source, ".") {
					used[path.Join(dir, source)] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(dirs)), func(dir string) bool { return used[dir] })
}

func (d *directory) add(body *hclsyntax.Body) {
	for _, b := range body.Blocks {
		label := strings.Join(b.Labels, ".")
		switch b.Type {
		case "variable":
			d.variables[label] = b
		case "locals":
			for name, a := range b.Body.Attributes {
				d.locals[name] = a.Expr
			}
		case "resource":
			d.resources[label] = b
		case "data":
			d.resources["data."+label] = b
		case "module":
			d.modules[label] = b
		case "output":
			d.outputs[label] = b
		case "provider":
			d.providers = append(d.providers, b)
		}
	}
}

// fromDisk reads the configuration of a module on disk.
func (e *evaluator) fromDisk(dir string) *directory {
	if d, ok := e.directories[dir]; ok {
		return d
	}
	e.directories[dir] = nil
	files := map[string][]byte{}
	for name, data := range e.files {
		if path.Dir(name) == dir {
			files[name] = data
		}
	}
	if len(files) == 0 {
		files = e.listed(dir)
	}
	d, err := load(dir, files)
	if err != nil || len(files) == 0 {
		return nil
	}
	e.directories[dir] = d
	return d
}

// listed reads the files of a directory on disk.
func (e *evaluator) listed(dir string) map[string][]byte {
	files := map[string][]byte{}
	if e.Disk == nil {
		return files
	}
	entries, err := e.Disk.ReadDir(dir)
	if err != nil {
		return files
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if entry.IsDir() || !Is(name) || strings.HasSuffix(name, ".tfvars") {
			continue
		}
		if data, err := e.Disk.ReadFile(name); err == nil {
			files[name] = data
		}
	}
	return files
}

// sourceOf returns the directory of a module call, or "". terraform init records where
// it has put the modules of a registry.
func (e *evaluator) sourceOf(m *module, name, source string) string {
	if strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../") {
		return path.Join(m.dir.path, source)
	}
	if e.Disk == nil {
		return ""
	}
	data, err := e.Disk.ReadFile(path.Join(e.root, ".terraform/modules/modules.json"))
	var manifest struct {
		Modules []struct{ Key, Dir string }
	}
	if err != nil || json.Unmarshal(data, &manifest) != nil {
		return ""
	}
	key := strings.TrimPrefix(m.key+"."+name, ".")
	for _, installed := range manifest.Modules {
		if installed.Key == key {
			return path.Join(e.root, installed.Dir)
		}
	}
	return ""
}

// readFile reads a file for the function file. It reads only below the directory of the
// module: a configuration must not show other files of the machine.
func (e *evaluator) readFile(m *module, name string) (string, bool) {
	name = path.Clean(name)
	inside := name == m.dir.path || m.dir.path == "." && !strings.HasPrefix(name, "..") && !path.IsAbs(name) || strings.HasPrefix(name, m.dir.path+"/")
	if !inside {
		return "", false
	}
	if data, ok := e.files[name]; ok {
		return string(data), true
	}
	if e.Disk == nil {
		return "", false
	}
	data, err := e.Disk.ReadFile(name)
	return string(data), err == nil
}
