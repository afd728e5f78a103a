package convert

import (
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// nodeClass converts an EC2NodeClass.
func (c *converter) nodeClass(o *object) {
	c.words(o, o.node, "")
	if o.version == newest {
		return
	}
	c.toV1(o)
	spec := mapping(o.node, "spec")
	if spec == nil {
		return
	}
	c.images(o, spec)
	c.metadataOptions(o, spec)
	c.tags(o, spec)
}

// families are the image families that v1 knows, with the alias of each.
var families = map[string]string{
	"AL2": "al2", "AL2023": "al2023", "Bottlerocket": "bottlerocket", "Windows2019": "windows2019", "Windows2022": "windows2022",
}

const (
	familyPath = "spec.amiFamily"
	termsPath  = "spec.amiSelectorTerms"
)

// images writes which images are used: v1 requires amiSelectorTerms, and knows a family's
// own images by an alias.
func (c *converter) images(o *object, spec *yaml.Node) {
	key, value := get(spec, "amiFamily")
	family, chosen := text(value), !empty(at(spec, "amiSelectorTerms"))
	switch {
	case family == "Ubuntu":
		c.ubuntu(o, spec, chosen)
	case family == "AL2" && !chosen:
		c.toAL2023(o, spec, key)
	case families[family] != "" && !chosen:
		alias := families[family] + "@latest"
		c.setAlias(o, spec, alias)
		c.changed(o, "ami-family", familyPath, key, "v1 names the images of a family by an alias: amiFamily "+family+" became amiSelectorTerms with "+alias+".")
	case family == "AL2":
		c.note(o, finding.Warning, "ami-family", familyPath, key,
			"AL2 stays, since amiSelectorTerms choose the images. There are none of Amazon Linux 2 for Kubernetes 1.33 and later.",
			"Change to amiFamily: AL2023 with images of Amazon Linux 2023 before the cluster becomes 1.33.")
	case families[family] == "":
		c.custom(o, key, chosen)
	}
}

// setAlias puts amiSelectorTerms in the place of amiFamily, which an alias makes
// needless.
func (c *converter) setAlias(o *object, spec *yaml.Node, alias string) {
	remove(spec, "amiSelectorTerms") // an empty one
	i := index(spec, "amiFamily")
	terms := literal("[{alias: " + alias + "}]")
	terms.Style = 0
	terms.Content[0].Style = 0
	key := *spec.Content[i]
	key.Value = "amiSelectorTerms"
	spec.Content[i], spec.Content[i+1] = &key, terms
	o.doc.changed = true
}

// toAL2023 changes the family, because Karpenter refuses al2 for Kubernetes 1.33 and
// later (pkg/providers/amifamily of karpenter-provider-aws).
func (c *converter) toAL2023(o *object, spec, key *yaml.Node) {
	c.setAlias(o, spec, "al2023@latest")
	what := "AL2 became al2023@latest: Karpenter refuses Amazon Linux 2 for Kubernetes 1.33 and later. " +
		"Nodes will be new, with another kernel, cgroup v2, and nodeadm in the place of bootstrap.sh."
	userData := at(spec, "userData")
	if strings.Contains(text(userData), "bootstrap.sh") || strings.Contains(text(userData), "/etc/kubernetes/kubelet/") {
		c.note(o, finding.Broken, "ami-family", familyPath, key, what+" The userData is for Amazon Linux 2: it calls bootstrap.sh or edits the kubelet's files, "+
			"neither of which is there.", "Write the userData anew: settings of the kubelet belong into spec.kubelet, others into a NodeConfig or a shell script.")
		return
	}
	fix := "Try it on a few nodes first. Below Kubernetes 1.33 the alias al2@latest still works."
	if !empty(userData) {
		what += " The userData stays: Amazon Linux 2023 runs shell scripts of a MIME text as well, but look at what they do."
	}
	c.note(o, finding.Warning, "ami-family", familyPath, key, what, fix)
}

// ubuntuDisk is the disk that Karpenter gave Ubuntu until v1, and v1 does not.
const ubuntuDisk = `
- deviceName: /dev/sda1
  rootVolume: true
  ebs:
    encrypted: true
    volumeType: gp3
    volumeSize: 20Gi
`

// ubuntu does what Karpenter's webhook did: the format of the user data is that of AL2,
// the disk is not.
func (c *converter) ubuntu(o *object, spec *yaml.Node, chosen bool) {
	key, value := get(spec, "amiFamily")
	value.Value = "AL2"
	what := "v1 has no family Ubuntu. It became AL2, whose user data has the same format"
	if empty(at(spec, "blockDeviceMappings")) {
		set(spec, "blockDeviceMappings", literal(ubuntuDisk), "amiFamily")
		what += ", with Ubuntu's disk in blockDeviceMappings"
	}
	o.doc.changed = true
	if !chosen {
		c.note(o, finding.Broken, "ami-family", familyPath, key, what+". Which images to use has to be said, and is not: the API server refuses it.",
			"Choose images of Ubuntu in "+termsPath+", by id, or by name and owner.")
		return
	}
	c.note(o, finding.Warning, "ami-family", familyPath, key, what+". That they stay alike is not promised.",
		"To be sure, use amiFamily: Custom, and write the whole userData.")
}

// custom is for images whose user data is the user's own.
func (c *converter) custom(o *object, key *yaml.Node, chosen bool) {
	if key == nil || text(at(o.node, "spec", "amiFamily")) != "Custom" {
		c.note(o, finding.Broken, "ami-family", familyPath, key, "v1 knows no such family: "+shownOr(at(o.node, "spec", "amiFamily"), "there is none")+".",
			"Use an alias in "+termsPath+", such as al2023@latest, or amiFamily: Custom with images of your own.")
		return
	}
	if !chosen {
		c.note(o, finding.Broken, "ami-selector-terms", termsPath, key, "There are none: v1 requires them, and amiFamily Custom has no images of its own.",
			"Choose images in "+termsPath+", by id, or by name and owner.")
	}
	c.note(o, finding.Warning, "custom-user-data", "spec.userData", key,
		"With amiFamily Custom the userData has to register the node with the taint karpenter.sh/unregistered:NoExecute; v1beta1 did not ask for it.",
		"Add --register-with-taints=karpenter.sh/unregistered=:NoExecute to what starts the kubelet.")
}

func shownOr(n *yaml.Node, or string) string {
	if n == nil {
		return or
	}
	return shown(n)
}

// formerOptions are what v1beta1 took where no metadataOptions were given; v1 takes a hop
// limit of 1.
const formerOptions = `
httpEndpoint: enabled
httpProtocolIPv6: disabled
httpPutResponseHopLimit: 2
httpTokens: required
`

func (c *converter) metadataOptions(o *object, spec *yaml.Node) {
	if !empty(at(spec, "metadataOptions")) {
		return
	}
	set(spec, "metadataOptions", literal(formerOptions), "")
	c.changed(o, "metadata-options", "spec.metadataOptions", nil, "The defaults of v1beta1 were written out, so that pods reach the instance metadata as before: "+
		"v1 has httpPutResponseHopLimit 1, which keeps those without host network from it. Safer is to delete the block, if no pod needs it.")
}

// tags removes those that Karpenter keeps for itself.
func (c *converter) tags(o *object, spec *yaml.Node) {
	tags := mapping(spec, "tags")
	for _, name := range []string{"karpenter.sh/managed-by", "eks:eks-cluster-name"} {
		if key, value := remove(tags, name); key != nil {
			o.doc.changed = true
			c.note(o, finding.Warning, "reserved-tag", join("spec.tags", name), key,
				"v1 takes no tag of this name: Karpenter itself tags with eks:eks-cluster-name. Removed: "+shown(value)+".",
				"Where IAM policies or scripts look for it, have them look for eks:eks-cluster-name.")
		}
	}
	if tags != nil && len(tags.Content) == 0 && slices.Contains(spec.Content, tags) {
		remove(spec, "tags")
	}
}
