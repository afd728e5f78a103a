package migrate

import (
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// nodeClass converts an EC2NodeClass.
func (c *converter) nodeClass(o *object) {
	c.renameWellKnown(o, o.node, "")
	if o.version == v1 {
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

// families are the image families of v1, with the alias of each.
var families = map[string]string{
	"AL2": "al2", "AL2023": "al2023", "Bottlerocket": "bottlerocket", "Windows2019": "windows2019", "Windows2022": "windows2022",
}

const (
	familyPath = "spec.amiFamily"
	termsPath  = "spec.amiSelectorTerms"
)

// images converts the selection of images: v1 requires amiSelectorTerms, and has an
// alias for a family's own images.
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
		c.recordChange(o, "ami-family", familyPath, key, "v1 selects the images of a family by an alias: amiFamily "+family+" became amiSelectorTerms with "+alias+".")
	case family == "AL2":
		c.addFinding(o, finding.Warning, "ami-family", familyPath, key,
			"AL2 was kept, because amiSelectorTerms select the images. Amazon Linux 2 has no images for Kubernetes 1.33 and later.",
			"Change to amiFamily: AL2023 with images of Amazon Linux 2023 before you upgrade the cluster to 1.33.")
	case families[family] == "":
		c.custom(o, key, chosen)
	}
}

// setAlias replaces amiFamily, which is unnecessary with an alias, by
// amiSelectorTerms.
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
		"Karpenter replaces the nodes. The new ones have another kernel, cgroup v2, and nodeadm instead of bootstrap.sh."
	userData := at(spec, "userData")
	if strings.Contains(text(userData), "bootstrap.sh") || strings.Contains(text(userData), "/etc/kubernetes/kubelet/") {
		c.addFinding(o, finding.Broken, "ami-family", familyPath, key, what+" The userData is for Amazon Linux 2: it calls bootstrap.sh or edits the kubelet's files, "+
			"which do not exist.", "Rewrite the userData: settings of the kubelet belong in spec.kubelet, others in a NodeConfig or a shell script.")
		return
	}
	fix := "Test it on a few nodes first. Below Kubernetes 1.33 the alias al2@latest still works."
	if !empty(userData) {
		what += " The userData was kept: Amazon Linux 2023 also runs shell scripts in MIME format, but check what they do."
	}
	c.addFinding(o, finding.Warning, "ami-family", familyPath, key, what, fix)
}

// ubuntuDisk is the disk that Karpenter gave Ubuntu before v1.
const ubuntuDisk = `
- deviceName: /dev/sda1
  rootVolume: true
  ebs:
    encrypted: true
    volumeType: gp3
    volumeSize: 20Gi
`

// ubuntu does the same as Karpenter's webhook: the user data has the format of AL2,
// but the disk differs.
func (c *converter) ubuntu(o *object, spec *yaml.Node, chosen bool) {
	key, value := get(spec, "amiFamily")
	value.Value = "AL2"
	what := "v1 has no family Ubuntu. It was changed to AL2, whose user data has the same format"
	if empty(at(spec, "blockDeviceMappings")) {
		set(spec, "blockDeviceMappings", literal(ubuntuDisk), "amiFamily")
		what += ", with Ubuntu's disk in blockDeviceMappings"
	}
	o.doc.changed = true
	if !chosen {
		c.addFinding(o, finding.Broken, "ami-family", familyPath, key, what+". v1 requires a selection of images, which is missing: the API server refuses it.",
			"Select images of Ubuntu in "+termsPath+", by id, or by name and owner.")
		return
	}
	c.addFinding(o, finding.Warning, "ami-family", familyPath, key, what+". Karpenter does not guarantee that the formats stay the same.",
		"To be sure, use amiFamily: Custom, and write the whole userData.")
}

// custom reports images whose user data the user must provide.
func (c *converter) custom(o *object, key *yaml.Node, chosen bool) {
	if key == nil || text(at(o.node, "spec", "amiFamily")) != "Custom" {
		c.addFinding(o, finding.Broken, "ami-family", familyPath, key, "v1 does not have this family: "+renderOr(at(o.node, "spec", "amiFamily"), "none is set")+".",
			"Use an alias in "+termsPath+", such as al2023@latest, or amiFamily: Custom with your own images.")
		return
	}
	if !chosen {
		c.addFinding(o, finding.Broken, "ami-selector-terms", termsPath, key, "They are missing: v1 requires them, and amiFamily Custom has no default images.",
			"Select images in "+termsPath+", by id, or by name and owner.")
	}
	c.addFinding(o, finding.Warning, "custom-user-data", "spec.userData", key,
		"With amiFamily Custom the userData must register the node with the taint karpenter.sh/unregistered:NoExecute; v1beta1 did not require it.",
		"Add --register-with-taints=karpenter.sh/unregistered=:NoExecute to the command that starts the kubelet.")
}

func renderOr(n *yaml.Node, or string) string {
	if n == nil {
		return or
	}
	return render(n)
}

// v1beta1Options are the defaults of v1beta1 for missing metadataOptions. v1 has a
// hop limit of 1.
const v1beta1Options = `
httpEndpoint: enabled
httpProtocolIPv6: disabled
httpPutResponseHopLimit: 2
httpTokens: required
`

func (c *converter) metadataOptions(o *object, spec *yaml.Node) {
	if !empty(at(spec, "metadataOptions")) {
		return
	}
	set(spec, "metadataOptions", literal(v1beta1Options), "")
	c.recordChange(o, "metadata-options", "spec.metadataOptions", nil, "The defaults of v1beta1 were added, so that pods can still read the instance metadata: "+
		"v1 has httpPutResponseHopLimit 1, which blocks pods without host network. If no pod needs it, it is safer to delete the block.")
}

// tags removes reserved tags of Karpenter.
func (c *converter) tags(o *object, spec *yaml.Node) {
	tags := mapping(spec, "tags")
	for _, name := range []string{"karpenter.sh/managed-by", "eks:eks-cluster-name"} {
		if key, value := remove(tags, name); key != nil {
			o.doc.changed = true
			c.addFinding(o, finding.Warning, "reserved-tag", join("spec.tags", name), key,
				"v1 does not accept a tag with this name: Karpenter itself sets eks:eks-cluster-name. Removed: "+render(value)+".",
				"Change IAM policies and scripts that use the tag to eks:eks-cluster-name.")
		}
	}
	if tags != nil && len(tags.Content) == 0 && slices.Contains(spec.Content, tags) {
		remove(spec, "tags")
	}
}
