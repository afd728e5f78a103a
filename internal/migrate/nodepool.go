package migrate

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// nodePool converts a NodePool except its kubelet, which moves to the EC2NodeClass.
func (c *converter) nodePool(o *object) {
	c.renameWellKnown(o, o.node, "")
	if o.version == v1 {
		return
	}
	c.toV1(o)
	c.consolidation(o)
	c.expiry(o)
	c.nodeClassRef(o)
	if _, requests := remove(mapping(o.node, "spec", "template", "spec"), "resources"); requests != nil {
		o.doc.changed = true
		c.addFinding(o, finding.Warning, "resources", "spec.template.spec.resources", requests,
			"v1 does not have this field, and in v1beta1 it had no effect: Karpenter adds up the requests of the pods. Removed: "+render(requests)+".", "")
	}
}

// consolidation renames the policy, and adds the time that v1 requires: v1beta1 did
// not allow one with WhenUnderutilized, and did not wait.
func (c *converter) consolidation(o *object) {
	d := mapping(o.node, "spec", "disruption")
	if d == nil {
		return // the defaults of v1beta1 and v1 are the same
	}
	key, policy := get(d, "consolidationPolicy")
	if text(policy) == "WhenUnderutilized" {
		policy.Value = "WhenEmptyOrUnderutilized"
		c.recordChange(o, "consolidation-policy", "spec.disruption.consolidationPolicy", key, "v1 renamed WhenUnderutilized to WhenEmptyOrUnderutilized.")
	}
	if after := at(d, "consolidateAfter"); !empty(after) {
		return
	}
	set(d, "consolidateAfter", scalar("0s"), "consolidationPolicy")
	const path = "spec.disruption.consolidateAfter"
	if text(policy) == "WhenEmpty" {
		o.doc.changed = true
		c.addFinding(o, finding.Warning, "consolidate-after", path, key, "WhenEmpty requires it, and it was missing. 0s was added: Karpenter deletes empty nodes immediately.",
			"Set how long a node must be empty.")
		return
	}
	c.recordChange(o, "consolidate-after", path, key, "v1 requires it. 0s was added, which is the behaviour of v1beta1.")
}

// expiry moves expireAfter into the template, and reports its new meaning.
func (c *converter) expiry(o *object) {
	const to = "spec.template.spec.expireAfter"
	key, value := remove(mapping(o.node, "spec", "disruption"), "expireAfter")
	template := mapping(o.node, "spec", "template", "spec")
	switch {
	case value == nil:
	case template == nil:
		set(mapping(o.node, "spec", "disruption"), "expireAfter", value, "") // there is no template to move it to
		return
	case !empty(at(template, "expireAfter")):
		o.doc.changed = true
		c.addFinding(o, finding.Warning, "expire-after", "spec.disruption.expireAfter", key,
			"The template also has an expireAfter, which was kept: "+render(at(template, "expireAfter"))+". Removed: "+render(value)+".", "")
	default:
		set(template, "expireAfter", value, "nodeClassRef")
		moveComments(key, template, "expireAfter")
		c.recordChange(o, "expire-after", "spec.disruption.expireAfter", key, "It was moved to "+to+": "+render(value)+".")
	}
	age := text(at(template, "expireAfter"))
	if age == "Never" || template == nil {
		return
	}
	if age == "" {
		age = "720h, the default of v1beta1 and v1"
	}
	c.addFinding(o, finding.Warning, "expiry-is-forceful", to, value,
		"Nodes expire after "+age+". v1 drains an expired node immediately, without a replacement; v1beta1 first launched one.",
		"To avoid that, set expireAfter: Never and let drift replace the nodes, or protect the pods with PodDisruptionBudgets.")
}

// moveComments moves the comments of a removed key to its replacement.
func moveComments(from, m *yaml.Node, name string) {
	if key, _ := get(m, name); key != nil && key != from {
		key.HeadComment, key.LineComment, key.FootComment = from.HeadComment, from.LineComment, from.FootComment
		key.Line = from.Line
	}
}

// nodeClassRef completes the reference. In v1 all its fields are required, and group
// replaces apiVersion.
func (c *converter) nodeClassRef(o *object) {
	const path = "spec.template.spec.nodeClassRef"
	ref := mapping(o.node, "spec", "template", "spec", "nodeClassRef")
	if ref == nil {
		c.addFinding(o, finding.Broken, "node-class-ref", path, nil, "It is missing, and a NodePool requires it.",
			"Add a reference to an EC2NodeClass: {group: "+awsGroup+", kind: EC2NodeClass, name: …}.")
		return
	}
	var did []string
	was := &yaml.Node{Line: ref.Line}
	_, version := remove(ref, "apiVersion")
	group := awsGroup
	if before, _, ok := strings.Cut(text(version), "/"); ok {
		group = before
	}
	if version != nil {
		did = append(did, "group replaced apiVersion")
	}
	if empty(at(ref, "kind")) {
		put(ref, "kind", "EC2NodeClass")
		did = append(did, "kind was added")
	}
	if empty(at(ref, "group")) {
		put(ref, "group", group)
		did = append(did, "group was added")
	}
	if len(did) > 0 {
		c.recordChange(o, "node-class-ref", path, was, fmt.Sprintf("v1 requires group and kind: %s. Now it is %s.", strings.Join(did, ", "), render(ref)))
	}
}

// put sets the value of a key. A new key becomes the first.
func put(m *yaml.Node, name, value string) {
	if i := index(m, name); i >= 0 {
		m.Content[i+1] = scalar(value)
		return
	}
	m.Content = append([]*yaml.Node{scalar(name), scalar(value)}, m.Content...)
}
