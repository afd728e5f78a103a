package convert

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// nodePool converts a NodePool but for its kubelet, which moves to the EC2NodeClass.
func (c *converter) nodePool(o *object) {
	c.words(o, o.node, "")
	if o.version == newest {
		return
	}
	c.toV1(o)
	c.consolidation(o)
	c.expiry(o)
	c.nodeClassRef(o)
	if _, requests := remove(mapping(o.node, "spec", "template", "spec"), "resources"); requests != nil {
		o.doc.changed = true
		c.note(o, finding.Warning, "resources", "spec.template.spec.resources", requests,
			"v1 has no such field, and in v1beta1 it had no effect: Karpenter sums up what its pods request. Removed: "+shown(requests)+".", "")
	}
}

// consolidation renames the policy, and writes out the time that v1 requires: v1beta1
// took none with WhenUnderutilized, and did not wait.
func (c *converter) consolidation(o *object) {
	d := mapping(o.node, "spec", "disruption")
	if d == nil {
		return // the defaults of v1beta1 and v1 are the same
	}
	key, policy := get(d, "consolidationPolicy")
	if text(policy) == "WhenUnderutilized" {
		policy.Value = "WhenEmptyOrUnderutilized"
		c.changed(o, "consolidation-policy", "spec.disruption.consolidationPolicy", key, "WhenUnderutilized is called WhenEmptyOrUnderutilized in v1.")
	}
	if after := at(d, "consolidateAfter"); !empty(after) {
		return
	}
	set(d, "consolidateAfter", scalar("0s"), "consolidationPolicy")
	const path = "spec.disruption.consolidateAfter"
	if text(policy) == "WhenEmpty" {
		o.doc.changed = true
		c.note(o, finding.Warning, "consolidate-after", path, key, "WhenEmpty needs it, and it is missing. 0s was added: empty nodes go at once.",
			"Write how long a node has to be empty.")
		return
	}
	c.changed(o, "consolidate-after", path, key, "v1 requires it. 0s was added, which is what v1beta1 did without it.")
}

// expiry moves expireAfter into the template, and says what it has come to mean.
func (c *converter) expiry(o *object) {
	const to = "spec.template.spec.expireAfter"
	key, value := remove(mapping(o.node, "spec", "disruption"), "expireAfter")
	template := mapping(o.node, "spec", "template", "spec")
	switch {
	case value == nil:
	case template == nil:
		set(mapping(o.node, "spec", "disruption"), "expireAfter", value, "") // nowhere to put it
		return
	case !empty(at(template, "expireAfter")):
		o.doc.changed = true
		c.note(o, finding.Warning, "expire-after", "spec.disruption.expireAfter", key,
			"The template has an expireAfter too, which is kept: "+shown(at(template, "expireAfter"))+". Removed: "+shown(value)+".", "")
	default:
		set(template, "expireAfter", value, "nodeClassRef")
		moveComments(key, template, "expireAfter")
		c.changed(o, "expire-after", "spec.disruption.expireAfter", key, "It moved to "+to+": "+shown(value)+".")
	}
	age := text(at(template, "expireAfter"))
	if age == "Never" || template == nil {
		return
	}
	if age == "" {
		age = "720h, the default of v1beta1 and v1"
	}
	c.note(o, finding.Warning, "expiry-is-forceful", to, value,
		"Nodes expire after "+age+". In v1 an expired node is drained at once, before there is a replacement; v1beta1 had one up first.",
		"If that must not be, write expireAfter: Never, and let drift renew the nodes; or protect the pods with PodDisruptionBudgets.")
}

// moveComments puts the comments of a key that was removed on the one that took its
// place.
func moveComments(from, m *yaml.Node, name string) {
	if key, _ := get(m, name); key != nil && key != from {
		key.HeadComment, key.LineComment, key.FootComment = from.HeadComment, from.LineComment, from.FootComment
		key.Line = from.Line
	}
}

// nodeClassRef completes the reference, whose fields are all required in v1; apiVersion
// became group.
func (c *converter) nodeClassRef(o *object) {
	const path = "spec.template.spec.nodeClassRef"
	ref := mapping(o.node, "spec", "template", "spec", "nodeClassRef")
	if ref == nil {
		c.note(o, finding.Broken, "node-class-ref", path, nil, "There is none, and a NodePool cannot do without.",
			"Refer to an EC2NodeClass: {group: "+awsGroup+", kind: EC2NodeClass, name: …}.")
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
		did = append(did, "apiVersion became group")
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
		c.changed(o, "node-class-ref", path, was, fmt.Sprintf("v1 requires group and kind: %s. Now it is %s.", strings.Join(did, ", "), shown(ref)))
	}
}

// put gives a key a value; a new key comes first.
func put(m *yaml.Node, name, value string) {
	if i := index(m, name); i >= 0 {
		m.Content[i+1] = scalar(value)
		return
	}
	m.Content = append([]*yaml.Node{scalar(name), scalar(value)}, m.Content...)
}
