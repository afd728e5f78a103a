package tfconfig

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// resource is a resource or a data source of a module.
type resource struct {
	module *module
	local  string // address within the module, without an index
	block  *hclsyntax.Block

	all      []instance
	single   bool
	expanded bool
	reading  map[string]bool // instances whose attributes are being evaluated
}

func (m *module) resource(address string) *resource {
	if m.resources[address] == nil {
		m.resources[address] = &resource{module: m, local: address, block: m.dir.resources[address], reading: map[string]bool{}}
	}
	return m.resources[address]
}

func (r *resource) address() string { return r.module.prefixed(r.local) }

// expand returns the instances.
func (r *resource) expand() []instance {
	if r.expanded {
		return r.all
	}
	r.expanded, r.single = true, true
	keys, single := r.module.keys(r.block, r.address())
	r.single = single
	for _, key := range keys {
		r.all = append(r.all, instance{r, key})
	}
	return r.all
}

// value returns what a reference to the resource stands for.
func (r *resource) value() any {
	r.expand()
	if r.single {
		return instance{r, nil}
	}
	return instances{r}
}

// collection returns the instances as a list or a map.
func (r *resource) collection() any {
	named, list := map[string]any{}, []any{}
	for _, i := range r.expand() {
		if key, ok := i.key.(string); ok {
			named[key] = i
		} else {
			list = append(list, i)
		}
	}
	if r.block.Body.Attributes["for_each"] != nil {
		return named
	}
	return list
}

func (i instance) address() string { return i.of.address() + index(i.key, i.of.single) }

// attributes evaluates the attributes of an instance, and records them.
func (i instance) attributes() map[string]any {
	address, m := i.address(), i.of.module
	if known, ok := m.out.Resources[address]; ok {
		return known
	}
	if i.of.reading[address] {
		return nil // circular
	}
	i.of.reading[address] = true
	s := m.scope().instance(i.key, i.of.block)
	all, ok := plain(s.body(i.of.block.Body)).(map[string]any)
	if !ok {
		return nil
	}
	if region := i.providerRegion(); region != nil && all["region"] == nil {
		all["region"] = plain(region)
	}
	m.out.Resources[address] = all
	m.out.Files[address] = i.of.block.DefRange().Filename
	return all
}

// providerRegion returns the region of the resource's provider, if it is another than
// the default provider.
func (i instance) providerRegion() any {
	a := i.of.block.Body.Attributes["provider"]
	if a == nil {
		return nil
	}
	traversal, ok := a.Expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(traversal.Traversal) != 2 {
		return nil
	}
	alias := stepName(traversal.Traversal[1])
	for _, p := range i.of.module.dir.providers {
		if given, _ := text(i.of.module.attributeOf(p, "alias")); given == alias && p.Body.Attributes["region"] != nil {
			return i.of.module.attributeOf(p, "region")
		}
	}
	return unknown("provider." + alias + ".region")
}

// attribute returns an attribute of an instance, as written or as computed.
func (i instance) attribute(name string) any {
	if i.of.block == nil {
		return failed(i.of.address() + "." + name)
	}
	if v, ok := i.attributes()[name]; ok && v != nil {
		return v
	}
	return i.of.module.Computed(i.address(), name)
}

// skipped are the attributes and blocks that are no values.
func skipped(name string) bool {
	return slices.Contains([]string{"count", "for_each", "provider", "providers", "depends_on", "lifecycle", "provisioner", "connection", "source", "version"}, name)
}

// body evaluates a body. A block becomes a list of objects. The list "dynamic" names the
// blocks whose number is not known.
func (s *scope) body(b *hclsyntax.Body) map[string]any {
	all := map[string]any{}
	for name, a := range b.Attributes {
		if !skipped(name) {
			all[name] = s.value(a.Expr)
		}
	}
	add := func(name string, v any) {
		list, _ := all[name].([]any) // nil at first
		all[name] = append(list, v)
	}
	for _, block := range b.Blocks {
		switch {
		case skipped(block.Type):
		case block.Type == "dynamic" && len(block.Labels) == 1:
			s.dynamic(block, add)
		default:
			add(block.Type, s.body(block.Body))
		}
	}
	return all
}

// dynamic expands a dynamic block.
func (s *scope) dynamic(b *hclsyntax.Block, add func(name string, v any)) {
	iterator := b.Labels[0]
	if a := b.Body.Attributes["iterator"]; a != nil {
		if traversal, ok := a.Expr.(*hclsyntax.ScopeTraversalExpr); ok {
			iterator = traversal.Traversal.RootName()
		}
	}
	a := b.Body.Attributes["for_each"]
	if a == nil {
		return
	}
	each := s.value(a.Expr)
	keys, values, ok := elements(each)
	if !ok && each != nil {
		add("dynamic", map[string]any{b.Labels[0]: true})
		return
	}
	for n := range values {
		inner := s.with(iterator, map[string]any{"key": keys[n], "value": values[n]})
		for _, content := range b.Body.Blocks {
			if content.Type == "content" {
				add(b.Labels[0], inner.body(content.Body))
			}
		}
	}
}
