package template

import (
	"regexp"
	"strings"
)

// readConfiguration collects the modules of a plan's configuration.
func (m *module) readConfiguration(path string, configuration map[string]any, depth int) {
	if configuration == nil || depth > maxModuleDepth {
		return
	}
	m.configured["plan"] = map[string]any{}
	m.configured[path+"."] = configuration
	for name, call := range object(configuration["module_calls"]) {
		inner := strings.TrimPrefix(path+".module."+name, ".")
		m.configured["call "+inner] = object(call)
		m.readConfiguration(inner, object(object(call)["module"]), depth+1)
	}
}

// index matches an index at the end of an address or within it.
var index = regexp.MustCompile(`\[(?:[0-9]+|"(?:[^"\\]|\\.)*"|[a-z]+\.[a-z]+)\]`)

// withoutIndexes returns an address of the configuration for one of an instance.
func withoutIndexes(address string) string { return index.ReplaceAllString(address, "") }

// splitModule splits an address into its module and the address within that module.
func splitModule(address string) (path, local string) {
	rest := address
	for strings.HasPrefix(rest, "module.") {
		end := len("module.") + strings.IndexAny(rest[len("module."):]+".", ".[")
		for end < len(rest) && rest[end] == '[' {
			closing := index.FindStringIndex(rest[end:])
			if closing == nil || closing[0] != 0 {
				return "", address
			}
			end += closing[1]
		}
		if end >= len(rest) {
			return address, ""
		}
		rest = rest[end+1:]
	}
	return strings.TrimSuffix(address[:len(address)-len(rest)], "."), rest
}

// refer adds to a planned resource the references for values that are not known yet.
func (m *module) refer(address string) {
	path, local := splitModule(address)
	for _, r := range items(m.configured[withoutIndexes(path)+"."]["resources"]) {
		if str(object(r)["address"]) != withoutIndexes(local) {
			continue
		}
		attributes := m.resources[address]
		for name, e := range object(object(r)["expressions"]) {
			if attributes[name] != nil {
				continue
			}
			if value := m.planned(e, path, index.FindString(local[strings.LastIndex(local, ".")+1:]), 0); value != nil {
				attributes[name] = value
			}
		}
	}
}

// planned returns the value of an expression of the configuration. key is the index of
// the instance to which the expression belongs. Blocks are lists of expressions.
func (m *module) planned(expression any, path, key string, depth int) any {
	if m.work++; depth > maxModuleDepth || m.work > maxWork {
		return unresolved("circular")
	}
	if list, ok := expression.([]any); ok {
		all := []any{}
		for _, block := range list {
			values := map[string]any{}
			for name, e := range object(block) {
				values[name] = m.planned(e, path, key, depth+1)
			}
			all = append(all, values)
		}
		return all
	}
	e := object(expression)
	if v, ok := e["constant_value"]; ok {
		return v
	}
	references := texts(e["references"])
	if len(references) == 0 {
		return nil
	}
	return m.plannedReference(references, path, key, depth)
}

// plannedReference returns the value to which the first reference leads. The others
// are parts of the first, or the keys of the instance.
func (m *module) plannedReference(references []string, path, key string, depth int) any {
	to := references[0]
	configuration, call := m.configured[withoutIndexes(path)+"."], m.configured["call "+withoutIndexes(path)]
	parts := strings.SplitN(withoutIndexes(to), ".", 4)
	switch {
	case len(parts) >= 2 && parts[0] == "var" && call != nil:
		outer, _ := splitModule(path[:max(0, strings.LastIndex(path, "module."))])
		if v := m.planned(object(call["expressions"])[parts[1]], outer, key, depth+1); v != nil {
			return v
		}
		return unresolved(path + "." + to)
	case len(parts) >= 3 && parts[0] == "module":
		inner := strings.TrimPrefix(path+"."+to[:strings.LastIndex(to, "."+parts[2])], ".")
		output := object(object(m.configured[withoutIndexes(inner)+"."]["outputs"])[parts[2]])
		if v := m.planned(output["expression"], inner, key, depth+1); v != nil {
			return v
		}
		return unresolved(strings.TrimPrefix(path+"."+to, "."))
	case configuration == nil || parts[0] == "local" || parts[0] == "each" || parts[0] == "count" || parts[0] == "path":
		return unresolved(strings.TrimPrefix(path+"."+to, "."))
	}
	return "${" + m.instanceOf(references, path, key) + "}"
}

// instanceOf returns the address to which references lead, with the module's path and
// with the key of the instance where the expression depends on it.
func (m *module) instanceOf(references []string, path, key string) string {
	to := references[0]
	prefix := ""
	if path != "" {
		prefix = path + "."
	}
	kept := prefix + to
	resource, attribute := kept, ""
	if m.resources[resource] == nil {
		if i := strings.LastIndex(kept, "."); i > 0 && strings.Count(withoutIndexes(to), ".") >= 2 {
			resource, attribute = kept[:i], kept[i:]
		}
	}
	for _, candidate := range []string{resource, withoutKey(resource) + key, resource + "[0]"} {
		if m.resources[candidate] != nil {
			return candidate + attribute
		}
	}
	return kept
}

// withoutKey removes the index at the end of an address.
func withoutKey(address string) string {
	if at := index.FindAllStringIndex(address, -1); len(at) > 0 && at[len(at)-1][1] == len(address) {
		return address[:at[len(at)-1][0]]
	}
	return address
}
