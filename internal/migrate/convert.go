package migrate

import (
	"cmp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// File contains one or more YAML documents.
type File struct {
	Name string
	Data []byte
}

// Finding is a change, or a part that needs attention. Its Object is the manifest,
// for example "NodePool default". Broken means that v1 has no equivalent and a person
// must decide. Warning means that the behaviour of nodes or pods can be unexpected.
// Info means that a part was rewritten without a change in meaning.
type Finding struct {
	finding.Finding

	// Path is the field, for example spec.template.spec.nodeSelector.
	Path string `json:"path,omitempty"`
	// File and Line, from 1, are where it was read.
	File string `json:"file"`
	Line int    `json:"line"`
}

// Result is the result of a conversion.
type Result struct {
	// Output contains all documents in their order. Unchanged documents are identical
	// byte for byte.
	Output []byte
	// Findings are in the order of the input; see Sort.
	Findings []Finding
	// Converted and Unchanged are numbers of documents.
	Converted, Unchanged int
}

// Sort sorts by severity, the worst first, and otherwise keeps the order.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(finding.Severities(), a.Severity), slices.Index(finding.Severities(), b.Severity))
	})
}

// Convert converts the files together, because NodePools and EC2NodeClasses refer to
// each other. Its error contains the file and the line that cannot be read.
func Convert(files []File) (*Result, error) {
	c := &converter{}
	for _, f := range files {
		documents, err := parse(f)
		if err != nil {
			return nil, err
		}
		c.documents = append(c.documents, documents...)
	}
	for i, d := range c.documents {
		d.nth = i
		c.objects = append(c.objects, d.objects()...)
	}
	c.run()
	return c.result()
}

// converter is the state of one conversion.
type converter struct {
	documents []*document
	objects   []*object
	findings  []found
}

// found is a finding with its document.
type found struct {
	Finding

	document int
}

// run applies the rules: first those that read the original, then those that change
// it, and last those that need all objects.
func (c *converter) run() {
	c.reportDuplicates()
	for _, o := range c.objects {
		c.nodeSelectors(o)
	}
	for _, d := range c.documents {
		c.duplicateKeys(d)
	}
	for _, o := range c.objects {
		switch {
		case o.is(coreGroup, "NodePool"):
			c.nodePool(o)
		case o.is(awsGroup, "EC2NodeClass"):
			c.nodeClass(o)
		case o.group == coreGroup || o.group == awsGroup:
			c.noEquivalent(o)
		default:
			c.renameWellKnown(o, o.node, "")
		}
	}
	c.kubelets()
	for _, o := range c.objects {
		c.unknownFields(o)
		c.placeholders(o)
	}
}

// The groups of Karpenter's APIs, and their versions.
const (
	coreGroup = "karpenter.sh"
	awsGroup  = "karpenter.k8s.aws"
	v1beta1   = "v1beta1"
	v1        = "v1"
)

// object is one Kubernetes object in a document.
type object struct {
	doc  *document
	node *yaml.Node
	// pathPrefix is the path of the object in the document: empty, or "items[1]" in a List.
	pathPrefix                 string
	group, version, kind, name string
}

func (o *object) is(group, kind string) bool {
	return o.group == group && o.kind == kind && (o.version == v1beta1 || o.version == v1)
}

// title is the object's name in findings.
func (o *object) title() string {
	return strings.TrimSpace(cmp.Or(o.kind, "document") + " " + o.name)
}

// addFinding adds a finding about a node of an object.
func (c *converter) addFinding(o *object, severity finding.Severity, id, path string, at *yaml.Node, what, fix string) {
	line := o.node.Line
	if at != nil && at.Line > 0 {
		line = at.Line
	}
	if o.pathPrefix != "" && path != "" {
		path = o.pathPrefix + "." + path
	}
	f := finding.Finding{Severity: severity, ID: id, Object: o.title(), Problem: what, Fix: fix}
	c.findings = append(c.findings, found{Finding{f, path, o.doc.file, line}, o.doc.nth})
}

// recordChange adds a finding about a change that keeps the meaning.
func (c *converter) recordChange(o *object, id, path string, at *yaml.Node, what string) {
	o.doc.changed = true
	c.addFinding(o, finding.Info, id, path, at, what, "")
}

// toV1 changes the version of an object.
func (c *converter) toV1(o *object) {
	key, value := get(o.node, "apiVersion")
	value.Value = o.group + "/" + v1
	c.recordChange(o, "api-version", "apiVersion", key, o.group+"/"+v1beta1+" became "+value.Value+".")
}

// noEquivalent reports objects that cannot be converted.
func (c *converter) noEquivalent(o *object) {
	switch {
	case o.kind == "NodeClaim" && o.version == v1beta1:
		c.addFinding(o, finding.Broken, "node-claim", "", nil,
			"Karpenter creates a NodeClaim for one machine, so a manifest should not contain one. It was not changed.",
			"Remove it: Karpenter creates NodeClaims from NodePools.")
	case o.version != v1 && o.version != "v1alpha1":
		c.tooOld(o)
	case slices.Contains([]string{"AWSNodeTemplate", "Provisioner", "Machine"}, o.kind):
		c.tooOld(o)
	}
}

func (c *converter) tooOld(o *object) {
	c.addFinding(o, finding.Broken, "too-old", "apiVersion", nil,
		o.group+"/"+o.version+" is older than "+v1beta1+", and its "+o.kind+" has no direct equivalent in v1. It was not changed.",
		"First convert it with Karpenter's own karpenter-convert of v0.32, which supports Provisioners and AWSNodeTemplates; then run this command on its output.")
}

// reportDuplicates reports objects with the same identity in the cluster: the later
// one wins.
func (c *converter) reportDuplicates() {
	seen := map[[4]string]*object{}
	for _, o := range c.objects {
		if o.name == "" || o.kind == "" {
			continue
		}
		id := [4]string{o.group, o.kind, text(at(o.node, "metadata", "namespace")), o.name}
		if first := seen[id]; first != nil {
			c.addFinding(o, finding.Warning, "duplicate-object", "metadata.name", nil,
				"There is another "+o.title()+" before it, "+first.doc.place(first.node.Line)+": if both are applied in this order, this one wins.",
				"Delete one of them, or rename it.")
		}
		seen[id] = o
	}
}

// inOrder returns the findings in the order of the input.
func (c *converter) inOrder() []Finding {
	slices.SortStableFunc(c.findings, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.document, b.document), cmp.Compare(a.Line, b.Line))
	})
	out := make([]Finding, 0, len(c.findings))
	for _, f := range c.findings {
		out = append(out, f.Finding)
	}
	return out
}

func (c *converter) result() (*Result, error) {
	r := &Result{Findings: c.inOrder()}
	var out strings.Builder
	for i, d := range c.documents {
		text := d.text
		if d.changed {
			r.Converted++
			var err error
			if text, err = d.encode(); err != nil {
				return nil, err
			}
		} else if d.root != nil {
			r.Unchanged++
		}
		if i > 0 && !startsDocument(text) {
			text = "---\n" + text
		}
		if i > 0 && !strings.HasSuffix(out.String(), "\n") {
			out.WriteByte('\n')
		}
		out.WriteString(text)
	}
	r.Output = []byte(out.String())
	return r, nil
}
