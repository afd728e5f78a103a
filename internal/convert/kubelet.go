package convert

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

const kubeletPath = "spec.template.spec.kubelet"

// kubelets moves the kubelet's settings from NodePools to the EC2NodeClass that they
// refer to. That is safe only where all who share the class want the same.
func (c *converter) kubelets() {
	classes, pools := map[string]*object{}, map[string][]*object{}
	var order []string
	for _, o := range c.objects {
		switch {
		case o.is(awsGroup, "EC2NodeClass"):
			classes[o.name] = o
		case o.is(coreGroup, "NodePool"):
			class := className(o)
			if pools[class] == nil {
				order = append(order, class)
			}
			pools[class] = append(pools[class], o)
		}
	}
	for _, class := range order {
		c.kubeletOf(class, classes[class], pools[class])
	}
}

// className is the EC2NodeClass that a NodePool refers to; empty if it is something else.
func className(pool *object) string {
	ref := mapping(pool.node, "spec", "template", "spec", "nodeClassRef")
	if text(at(ref, "group")) != awsGroup || text(at(ref, "kind")) != "EC2NodeClass" {
		return ""
	}
	return text(at(ref, "name"))
}

func kubelet(pool *object) *yaml.Node { return at(pool.node, "spec", "template", "spec", "kubelet") }

// kubeletOf moves the settings of the NodePools of one class.
func (c *converter) kubeletOf(name string, class *object, pools []*object) {
	var wanted *yaml.Node
	var names []string
	agreed, wanting := true, false
	for _, p := range pools {
		names = append(names, p.name)
		k := kubelet(p)
		wanting = wanting || !empty(k)
		agreed = agreed && (p == pools[0] || alike(k, wanted))
		wanted = k
	}
	spec := mapping(nodeOf(class), "spec")
	switch {
	case !wanting:
		for _, p := range pools {
			c.dropKubelet(p, "")
		}
	case name == "":
		c.sayKubelets(pools, "v1 has it in the EC2NodeClass, and this NodePool refers to none. It is left here, where the API server refuses it.",
			"Move it to the node class by hand, if that has such a field.")
	case spec == nil:
		c.sayKubelets(pools, "v1 has it in the EC2NodeClass, and EC2NodeClass "+name+" is not in these files. It is left here, where the API server refuses it.",
			"Convert both at once: give the file of the EC2NodeClass too, with another -f.")
	case !agreed:
		c.sayKubelets(pools, fmt.Sprintf("v1 has it in the EC2NodeClass, and the NodePools that share EC2NodeClass %s want different ones: %s. It is left here, "+
			"where the API server refuses it.", name, strings.Join(names, ", ")),
			"Give each NodePool an EC2NodeClass of its own: copy "+name+" under another name, put the kubelet into its spec, and change nodeClassRef.")
	case !empty(at(spec, "kubelet")) && !alike(at(spec, "kubelet"), wanted):
		c.sayKubelets(pools, "v1 has it in the EC2NodeClass, and EC2NodeClass "+name+" has another one already: "+shown(at(spec, "kubelet"))+
			". It is left here, where the API server refuses it.", "Decide which one is right, and delete the other.")
	default:
		c.moveKubelet(class, spec, wanted, pools)
	}
}

func nodeOf(o *object) *yaml.Node {
	if o == nil {
		return nil
	}
	return o.node
}

// alike compares settings; none is like empty ones.
func alike(a, b *yaml.Node) bool { return empty(a) && empty(b) || same(a, b) }

func (c *converter) moveKubelet(class *object, spec, wanted *yaml.Node, pools []*object) {
	if empty(at(spec, "kubelet")) {
		set(spec, "kubelet", clone(wanted), "")
		c.changed(class, "kubelet", "spec.kubelet", nil, "It came from the NodePools that refer to this class: "+shown(wanted)+
			". Other NodePools that refer to it get it too.")
	}
	for _, p := range pools {
		c.dropKubelet(p, "It moved to EC2NodeClass "+class.name+", spec.kubelet.")
	}
}

// dropKubelet removes the settings from a NodePool, and says what became of them.
func (c *converter) dropKubelet(pool *object, what string) {
	key, _ := remove(mapping(pool.node, "spec", "template", "spec"), "kubelet")
	if key == nil {
		return
	}
	if what == "" {
		what = "v1 has it in the EC2NodeClass. It was empty, and was removed."
	}
	c.changed(pool, "kubelet", kubeletPath, key, what)
}

func (c *converter) sayKubelets(pools []*object, what, fix string) {
	for _, p := range pools {
		if k := kubelet(p); !empty(k) {
			c.note(p, finding.Broken, "kubelet", kubeletPath, k, what, fix)
		}
	}
}
