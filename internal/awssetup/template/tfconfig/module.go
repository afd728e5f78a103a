package tfconfig

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// Options are what an evaluation needs besides the files.
type Options struct {
	// Variables are values of variables of the root module.
	Variables map[string]string
	// Disk can be nil: the configuration then consists of the given files.
	Disk Disk
	// Computed returns an attribute that AWS or the provider computes, such as the ARN
	// of the resource with this address. The resource is in Result.Resources.
	Computed func(address, attribute string) any
	// Region receives the region of the default provider, before the resources are
	// evaluated.
	Region func(region string)
}

// Result is the evaluated configuration.
type Result struct {
	// Resources are the resources and data sources by address, with the index or key of
	// each instance.
	Resources map[string]map[string]any
	// Files are the files of the resources.
	Files map[string]string
	// Assumed are the conditions that were assumed to hold.
	Assumed []Assumption
	// Missing are the modules that are not on disk, with their sources.
	Missing []string
}

// Assumption is a number of instances that depends on a value that is not defined.
type Assumption struct {
	// Address is the resource or the module, and On the name of the value.
	Address, On string
}

// These limit an evaluation: references can be circular, and calls of modules multiply.
const (
	maxWork    = 500_000
	maxDepth   = 60
	maxModules = 10_000
)

type evaluator struct {
	Options
	root        string
	files       map[string][]byte
	directories map[string]*directory
	out         *Result
	work        int
	modules     int
}

// Evaluate evaluates the configuration of a directory. files are the known files by name,
// also those of modules.
func Evaluate(dir string, files map[string][]byte, options Options, out *Result) error {
	e := &evaluator{Options: options, root: dir, files: files, directories: map[string]*directory{}, out: out}
	if out.Resources == nil {
		out.Resources = map[string]map[string]any{}
	}
	if out.Files == nil {
		out.Files = map[string]string{}
	}
	own := map[string][]byte{}
	for name, data := range files {
		if path.Dir(name) == dir && Is(name) {
			own[name] = data
		}
	}
	d, err := load(dir, own)
	if err != nil {
		return err
	}
	root := e.newModule(d, "", "", nil, nil)
	for _, p := range d.providers {
		if a := p.Body.Attributes["region"]; a != nil && slices.Equal(p.Labels, []string{"aws"}) && p.Body.Attributes["alias"] == nil {
			if region, ok := text(root.scope().value(a.Expr)); ok && !symbol.Within(region) {
				e.Region(region)
			}
		}
	}
	root.evaluate()
	return nil
}

// module is an instance of a module.
type module struct {
	*evaluator

	dir  *directory
	path string // such as module.a["x"]
	key  string // the path without indexes and without the word module, such as a.b
	// call is the scope of the call, and arguments its block; nil for the root module.
	call      *scope
	arguments *hclsyntax.Block

	locals    map[string]any
	running   map[string]bool // locals and variables that are being evaluated
	resources map[string]*resource
	children  map[string]any
}

func (e *evaluator) newModule(d *directory, path, key string, call *scope, arguments *hclsyntax.Block) *module {
	return &module{evaluator: e, dir: d, path: path, key: key, call: call, arguments: arguments,
		locals: map[string]any{}, running: map[string]bool{}, resources: map[string]*resource{}, children: map[string]any{}}
}

func (m *module) scope() *scope { return &scope{module: m} }

// evaluate evaluates all resources and calls of the module.
func (m *module) evaluate() {
	for _, address := range slices.Sorted(maps.Keys(m.dir.resources)) {
		r := m.resource(address)
		for _, one := range r.expand() {
			one.attributes()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.dir.modules)) {
		switch child := m.child(name).(type) {
		case *module:
			child.evaluate()
		case calls:
			for _, one := range child.all {
				one.evaluate()
			}
		}
	}
}

// prefixed returns an address with the path of the module.
func (m *module) prefixed(address string) string {
	if m.path == "" {
		return address
	}
	return m.path + "." + address
}

// child returns the instance or the instances of a module call.
func (m *module) child(name string) any {
	if known, ok := m.children[name]; ok {
		return known
	}
	m.children[name] = failed("module." + name)
	call := m.dir.modules[name]
	if call == nil {
		return m.children[name]
	}
	address := m.prefixed("module." + name)
	source, _ := text(m.attributeOf(call, "source"))
	d := m.fromDisk(m.sourceOf(m, name, source))
	if d == nil || m.isWithin(d) || m.modules > maxModules {
		m.out.Missing = append(m.out.Missing, fmt.Sprintf("%s (%s)", address, source))
		m.children[name] = unknown(address)
		return m.children[name]
	}
	key := strings.TrimPrefix(m.key+"."+name, ".")
	keys, single := m.keys(call, address)
	m.modules += len(keys)
	var all []*module
	for _, k := range keys {
		all = append(all, m.newModule(d, address+index(k, single), key, m.scope().instance(k, call), call))
	}
	if single {
		m.children[name] = all[0]
	} else {
		m.children[name] = calls{all}
	}
	return m.children[name]
}

// isWithin reports whether a module or one of its callers is in the directory. Terraform accepts no
// module that calls itself.
func (m *module) isWithin(d *directory) bool {
	for at := m; ; at = at.call.module {
		if at.dir == d {
			return true
		}
		if at.call == nil {
			return false
		}
	}
}

// collection returns the instances of a call as a list or a map.
func (c calls) collection() any {
	list, named := []any{}, map[string]any{}
	for _, m := range c.all {
		if key, ok := m.call.key.(string); ok {
			named[key] = m
		} else {
			list = append(list, m)
		}
	}
	if len(named) > 0 {
		return named
	}
	return list
}

// keys returns the keys of the instances of a resource or of a call. single is true
// without count and for_each.
func (m *module) keys(b *hclsyntax.Block, address string) (keys []any, single bool) {
	assume := func(on any) ([]any, bool) {
		a := Assumption{address, name(on)}
		if !slices.Contains(m.out.Assumed, a) {
			m.out.Assumed = append(m.out.Assumed, a)
		}
		return []any{ofNumber(0)}, false
	}
	switch {
	case b.Body.Attributes["count"] != nil:
		count := m.attributeOf(b, "count")
		n, ok := number(count)
		if !ok || n > 1000 {
			return assume(count)
		}
		for i := range int(n) {
			keys = append(keys, ofNumber(float64(i)))
		}
		return keys, false
	case b.Body.Attributes["for_each"] != nil:
		each := m.attributeOf(b, "for_each")
		found, values, ok := elements(each)
		if !ok {
			return assume(each)
		}
		if _, isList := each.([]any); isList {
			found = values // a set: each key is its value
		}
		return found, false
	}
	return []any{nil}, true
}

// attributeOf evaluates an attribute of a block in the module's scope.
func (m *module) attributeOf(b *hclsyntax.Block, name string) any {
	if a := b.Body.Attributes[name]; a != nil {
		return m.scope().value(a.Expr)
	}
	return nil
}

// index returns the index of an address.
func index(key any, single bool) string {
	if single {
		return ""
	}
	if k, ok := key.(string); ok {
		return fmt.Sprintf("[%q]", k)
	}
	return fmt.Sprintf("[%v]", key)
}
