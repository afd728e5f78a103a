package convert

import (
	"cmp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// File is a text of one or more YAML documents.
type File struct {
	Name string
	Data []byte
}

// Finding is a change, or something that wants a look. Its Object is the manifest, such
// as "NodePool default". Broken means that v1 has no equivalent and a person has to
// decide; Warning, that nodes or pods behave otherwise than one may think; Info, that
// something was written anew and means the same.
type Finding struct {
	finding.Finding

	// Path is the field, such as spec.template.spec.nodeSelector.
	Path string `json:"path,omitempty"`
	// File and Line, from 1, are where it was read.
	File string `json:"file"`
	Line int    `json:"line"`
}

// Result is what became of the files.
type Result struct {
	// Output is all documents in their order. Those that needed no change are as they
	// were, to the byte.
	Output []byte
	// Findings are in the order of what they are about; see Sort.
	Findings []Finding
	// Converted and Unchanged count documents.
	Converted, Unchanged int
}

// Sort puts the worst finding first, and otherwise keeps the order.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(finding.Severities(), a.Severity), slices.Index(finding.Severities(), b.Severity))
	})
}

// Convert converts the files together, since NodePools and EC2NodeClasses refer to each
// other. Its error names the file and the line that cannot be read.
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

// converter is one conversion under way.
type converter struct {
	documents []*document
	objects   []*object
	findings  []found
}

// found is a finding with the document that it is in.
type found struct {
	Finding

	document int
}

// run applies the rules: first those that look at what was written, then those that
// change it, and last those that need the whole.
func (c *converter) run() {
	c.sayTwins()
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
			c.words(o, o.node, "")
		}
	}
	c.kubelets()
	for _, o := range c.objects {
		c.unknownFields(o)
		c.placeholders(o)
	}
}

// The groups of Karpenter's APIs, and their versions that there were.
const (
	coreGroup = "karpenter.sh"
	awsGroup  = "karpenter.k8s.aws"
	oldest    = "v1beta1"
	newest    = "v1"
)

// object is one Kubernetes object in a document.
type object struct {
	doc  *document
	node *yaml.Node
	// within is the path of the object in the document: empty, or "items[1]" in a List.
	within                     string
	group, version, kind, name string
}

func (o *object) is(group, kind string) bool {
	return o.group == group && o.kind == kind && (o.version == oldest || o.version == newest)
}

// title is how findings name the object.
func (o *object) title() string {
	return strings.TrimSpace(cmp.Or(o.kind, "document") + " " + o.name)
}

// note adds a finding about a node of an object.
func (c *converter) note(o *object, severity finding.Severity, id, path string, at *yaml.Node, what, fix string) {
	line := o.node.Line
	if at != nil && at.Line > 0 {
		line = at.Line
	}
	if o.within != "" && path != "" {
		path = o.within + "." + path
	}
	f := finding.Finding{Severity: severity, ID: id, Object: o.title(), Problem: what, Fix: fix}
	c.findings = append(c.findings, found{Finding{f, path, o.doc.file, line}, o.doc.nth})
}

// changed is a note about a change that means the same as before.
func (c *converter) changed(o *object, id, path string, at *yaml.Node, what string) {
	o.doc.changed = true
	c.note(o, finding.Info, id, path, at, what, "")
}

// toV1 writes the version of an object.
func (c *converter) toV1(o *object) {
	key, value := get(o.node, "apiVersion")
	value.Value = o.group + "/" + newest
	c.changed(o, "api-version", "apiVersion", key, o.group+"/"+oldest+" became "+value.Value+".")
}

// noEquivalent says what cannot be converted.
func (c *converter) noEquivalent(o *object) {
	switch {
	case o.kind == "NodeClaim" && o.version == oldest:
		c.note(o, finding.Broken, "node-claim", "", nil,
			"A NodeClaim is made by Karpenter for one machine, and is of no use in a manifest. It is left as it was.",
			"Leave it out: Karpenter makes NodeClaims from NodePools.")
	case o.version != newest && o.version != "v1alpha1":
		c.tooOld(o)
	case slices.Contains([]string{"AWSNodeTemplate", "Provisioner", "Machine"}, o.kind):
		c.tooOld(o)
	}
}

func (c *converter) tooOld(o *object) {
	c.note(o, finding.Broken, "too-old", "apiVersion", nil,
		o.group+"/"+o.version+" is older than "+oldest+", and its "+o.kind+" has no direct equivalent in v1. It is left as it was.",
		"First convert it with Karpenter's own karpenter-convert of v0.32, which knows Provisioners and AWSNodeTemplates; then run this on what it prints.")
}

// sayTwins says where two objects are one to the cluster: the later wins.
func (c *converter) sayTwins() {
	seen := map[[4]string]*object{}
	for _, o := range c.objects {
		if o.name == "" || o.kind == "" {
			continue
		}
		id := [4]string{o.group, o.kind, text(at(o.node, "metadata", "namespace")), o.name}
		if first := seen[id]; first != nil {
			c.note(o, finding.Warning, "duplicate-object", "metadata.name", nil,
				"There is another "+o.title()+" before it, "+first.doc.place(first.node.Line)+": applied in this order, this one wins.",
				"Delete one of them, or give it another name.")
		}
		seen[id] = o
	}
}

// inOrder is the findings as one comes across them when reading.
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
