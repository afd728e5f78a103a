package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

const doNotDisrupt = "karpenter.sh/do-not-disrupt"

// renameWellKnown renames Karpenter's annotations and taints in manifests of any
// kind: annotations that protect a pod or a node, and the taint of a node that will
// be removed.
func (c *converter) renameWellKnown(o *object, n *yaml.Node, path string) {
	if n.Kind == yaml.MappingNode {
		if notes := mapping(n, "annotations"); notes != nil {
			c.annotations(o, notes, join(path, "annotations"))
		}
		for i, t := range list(n, "tolerations") {
			c.toleration(o, t, fmt.Sprintf("%s[%d]", join(path, "tolerations"), i))
		}
	}
	each(n, path, func(child *yaml.Node, path string) { c.renameWellKnown(o, child, path) })
}

func (c *converter) annotations(o *object, notes *yaml.Node, path string) {
	for _, old := range []string{"karpenter.sh/do-not-evict", "karpenter.sh/do-not-consolidate"} {
		key, value := get(notes, old)
		switch {
		case key == nil:
			continue
		case text(value) != "true" || index(notes, doNotDisrupt) >= 0:
			remove(notes, old)
			c.recordChange(o, "annotation", join(path, old), key, "v1 does not have this annotation, and it had no effect. Removed, with the value "+render(value)+".")
			continue
		}
		line := key.Line
		key.Value = doNotDisrupt
		what := "v1 renamed it to " + doNotDisrupt + "."
		if old == "karpenter.sh/do-not-consolidate" {
			what += " That also protects the node from drift, not only from consolidation."
		}
		c.recordChange(o, "annotation", join(path, old), &yaml.Node{Line: line}, what)
	}
}

// toleration renames the taint of v1beta1, which had a value.
func (c *converter) toleration(o *object, t *yaml.Node, path string) {
	_, key := get(t, "key")
	if text(key) != "karpenter.sh/disruption" {
		return
	}
	key.Value = "karpenter.sh/disrupted"
	set(t, "operator", scalar("Exists"), "key")
	remove(t, "value")
	o.doc.changed = true
	c.addFinding(o, finding.Warning, "toleration", path, key, "v1 renamed the taint karpenter.sh/disruption=disrupting to karpenter.sh/disrupted, without a value.",
		"Consider removing the toleration: Karpenter does not drain pods that tolerate the taint, so they are killed with the node.")
}

// nodeSelectors reports labels in node selectors that no NodePool of the files
// provides: such pods stay Pending.
func (c *converter) nodeSelectors(o *object) {
	pools := c.pools()
	spec, path := podSpec(o)
	if len(pools) == 0 || spec == nil {
		return
	}
	last := index(spec, "nodeSelector")
	for i := 0; i+1 < len(spec.Content); i += 2 {
		selector := spec.Content[i+1]
		if spec.Content[i].Value != "nodeSelector" || selector.Kind != yaml.MappingNode {
			continue
		}
		for j := 0; j+1 < len(selector.Content); j += 2 {
			c.checkSelector(o, pools, selector.Content[j], selector.Content[j+1], join(path, "nodeSelector"), i == last)
		}
	}
}

func (c *converter) pools() []*object {
	return slices.DeleteFunc(slices.Clone(c.objects), func(o *object) bool { return !o.is(coreGroup, "NodePool") })
}

// checkSelector checks one label of a node selector. inForce is false for a duplicate
// that was removed.
func (c *converter) checkSelector(o *object, pools []*object, key, value *yaml.Node, path string, inForce bool) {
	if key.Value == "karpenter.sh/provisioner-name" && inForce {
		c.addFinding(o, finding.Broken, "provisioner-name", join(path, key.Value), key, "Nodes no longer have this label since v1beta1: the pods stay Pending.",
			"Use karpenter.sh/nodepool with the name of a NodePool.")
		return
	}
	if providesLabel(pools, key.Value, text(value)) {
		return
	}
	what := fmt.Sprintf("No NodePool in these files gives its nodes the label %s: %s", key.Value, render(value))
	fix := "Add the label to spec.template.metadata.labels of the NodePool, or remove it from the selector."
	if class := c.classWithTag(key.Value); class != "" {
		what += "; it is a tag of EC2NodeClass " + class + ", which is set on the EC2 instance and not on the node"
	}
	if inForce {
		what += ". The pods stay Pending, unless other nodes have it."
	} else {
		what += ". This selector was removed as a duplicate; with it, the pods would stay Pending."
	}
	c.addFinding(o, finding.Warning, "node-selector", join(path, key.Value), key, what, fix)
}

// domains matches the domains of labels that Kubernetes, its providers and Karpenter
// set on nodes (Karpenter, Concepts, Scheduling: Well-Known Labels).
var domains = regexp.MustCompile(`^(?:[a-z0-9.-]+\.)?(?:kubernetes\.io|k8s\.io|karpenter\.sh|k8s\.aws|amazonaws\.com)/`)

func wellKnown(label string) bool { return domains.MatchString(label) }

// providesLabel reports whether a NodePool can give a node the label.
func providesLabel(pools []*object, label, value string) bool {
	return wellKnown(label) || slices.ContainsFunc(pools, func(p *object) bool {
		if given := at(p.node, "spec", "template", "metadata", "labels", label); given != nil {
			return text(given) == value
		}
		for _, r := range list(p.node, "spec", "template", "spec", "requirements") {
			if text(at(r, "key")) != label {
				continue
			}
			is := slices.ContainsFunc(list(r, "values"), func(v *yaml.Node) bool { return text(v) == value })
			switch text(at(r, "operator")) {
			case "In":
				return is
			case "NotIn":
				return !is
			}
			return true
		}
		return false
	})
}

// classWithTag returns an EC2NodeClass that has a tag.
func (c *converter) classWithTag(tag string) string {
	for _, o := range c.objects {
		if o.is(awsGroup, "EC2NodeClass") && at(o.node, "spec", "tags", tag) != nil {
			return o.name
		}
	}
	return ""
}

// podSpecs are the paths of the pod spec in the kinds of workloads.
var podSpecs = map[string][]string{
	"Pod":        {"spec"},
	"Deployment": {"spec", "template", "spec"}, "StatefulSet": {"spec", "template", "spec"}, "DaemonSet": {"spec", "template", "spec"},
	"ReplicaSet": {"spec", "template", "spec"}, "Job": {"spec", "template", "spec"},
	"CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
}

func podSpec(o *object) (spec *yaml.Node, path string) {
	where := podSpecs[o.kind]
	if where == nil || o.group == coreGroup || o.group == awsGroup {
		return nil, ""
	}
	return mapping(o.node, where...), strings.Join(where, ".")
}

// placeholder matches a variable for a shell or envsubst.
var placeholder = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// placeholders reports unset variables in Karpenter's manifests.
func (c *converter) placeholders(o *object) {
	if o.group != coreGroup && o.group != awsGroup {
		return
	}
	found, paths := map[string]*yaml.Node{}, map[string][]string{}
	var visit func(n *yaml.Node, path string)
	visit = func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			for _, name := range placeholder.FindAllString(n.Value, -1) {
				if found[name] == nil {
					found[name] = n
				}
				if !slices.Contains(paths[name], path) {
					paths[name] = append(paths[name], path)
				}
			}
		}
		each(n, path, visit)
	}
	visit(o.node, "")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		what := name + " is not replaced by a value"
		if others := paths[name][1:]; len(others) > 0 {
			what += ", here and in " + strings.Join(others, ", ")
		}
		c.addFinding(o, finding.Warning, "placeholder", paths[name][0], found[name], what+". The API server accepts it, but AWS has no resource with this name.",
			"Set "+strings.Trim(name, "${}")+" in the environment, and pipe the output through envsubst '"+name+"' before you apply it.")
	}
}
