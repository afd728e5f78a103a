package migrate

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

const kubeletPath = "spec.template.spec.kubelet"

// kubelets moves the kubelet's settings from NodePools to their EC2NodeClass. That is
// safe only if all NodePools of the class have the same settings.
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
		c.moveKubelets(class, classes[class], pools[class])
	}
}

// className returns the EC2NodeClass of a NodePool; empty if the reference is to
// another kind.
func className(pool *object) string {
	ref := mapping(pool.node, "spec", "template", "spec", "nodeClassRef")
	if text(at(ref, "group")) != awsGroup || text(at(ref, "kind")) != "EC2NodeClass" {
		return ""
	}
	return text(at(ref, "name"))
}

func kubelet(pool *object) *yaml.Node { return at(pool.node, "spec", "template", "spec", "kubelet") }

// moveKubelets moves the settings of the NodePools of one class.
func (c *converter) moveKubelets(name string, class *object, pools []*object) {
	var settings *yaml.Node
	var names []string
	agreed, anySettings := true, false
	for _, p := range pools {
		names = append(names, p.name)
		k := kubelet(p)
		anySettings = anySettings || !empty(k)
		agreed = agreed && (p == pools[0] || sameSettings(k, settings))
		settings = k
	}
	spec := mapping(nodeOf(class), "spec")
	switch {
	case !anySettings:
		for _, p := range pools {
			c.removeKubelet(p, "")
		}
	case name == "":
		c.reportKubelets(pools, "In v1 it is in the EC2NodeClass, and this NodePool refers to none. It was not moved, and the API server refuses it here.",
			"Move it to the node class by hand, if that class has such a field.")
	case spec == nil:
		c.reportKubelets(pools, "In v1 it is in the EC2NodeClass, and EC2NodeClass "+name+" is not in these files. It was not moved, and the API server refuses it here.",
			"Convert both together: add the file of the EC2NodeClass with another -f.")
	case !agreed:
		c.reportKubelets(pools, fmt.Sprintf("In v1 it is in the EC2NodeClass, and the NodePools of EC2NodeClass %s have different settings: %s. It was not moved, "+
			"and the API server refuses it here.", name, strings.Join(names, ", ")),
			"Create an EC2NodeClass for each NodePool: copy "+name+" with another name, add the kubelet to its spec, and change nodeClassRef.")
	case !empty(at(spec, "kubelet")) && !sameSettings(at(spec, "kubelet"), settings):
		c.reportKubelets(pools, "In v1 it is in the EC2NodeClass, and EC2NodeClass "+name+" already has another one: "+render(at(spec, "kubelet"))+
			". It was not moved, and the API server refuses it here.", "Keep the correct one, and delete the other.")
	default:
		c.moveKubelet(class, spec, settings, pools)
	}
}

func nodeOf(o *object) *yaml.Node {
	if o == nil {
		return nil
	}
	return o.node
}

// sameSettings compares settings. Missing settings equal empty ones.
func sameSettings(a, b *yaml.Node) bool { return empty(a) && empty(b) || same(a, b) }

func (c *converter) moveKubelet(class *object, spec, settings *yaml.Node, pools []*object) {
	if empty(at(spec, "kubelet")) {
		set(spec, "kubelet", clone(settings), "")
		c.recordChange(class, "kubelet", "spec.kubelet", nil, "It was moved here from the NodePools that refer to this class: "+render(settings)+
			". It also applies to other NodePools that refer to the class.")
	}
	for _, p := range pools {
		c.removeKubelet(p, "It was moved to EC2NodeClass "+class.name+", spec.kubelet.")
	}
}

// removeKubelet removes the settings from a NodePool, and reports it.
func (c *converter) removeKubelet(pool *object, what string) {
	key, _ := remove(mapping(pool.node, "spec", "template", "spec"), "kubelet")
	if key == nil {
		return
	}
	if what == "" {
		what = "In v1 it is in the EC2NodeClass. It was empty, and was removed."
	}
	c.recordChange(pool, "kubelet", kubeletPath, key, what)
}

func (c *converter) reportKubelets(pools []*object, what, fix string) {
	for _, p := range pools {
		if k := kubelet(p); !empty(k) {
			c.addFinding(p, finding.Broken, "kubelet", kubeletPath, k, what, fix)
		}
	}
}
