// Package emit writes the desired wiring of a cluster as a template for other tools:
// CloudFormation, Terraform, or plain JSON. It is pure and needs no account: the tool
// fills in unknown values.
//
// The resources of a template carry the tag lifeboat.dev/managed-by with the name of
// the tool. `lifeboat aws` therefore checks them, but never changes them.
package emit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// Place is the account and region of the template. The tool fills in empty fields.
type Place struct {
	Account string
	Region  string
	// Groups are the Auto Scaling groups to which the Auto Scaling rules are limited,
	// and whose hooks the template creates. If empty, the rules match all groups and
	// the template creates no hooks.
	Groups []Group
	// Senders are those of [awssetup.Wiring].
	Senders []string
	// Topic is the topic that the cluster shares. The template then subscribes the queue, and has no
	// rules: [SharedCloudFormation] and [SharedTerraform] create them once.
	Topic string
	// FewRules merges the rules: one for each AWS service.
	FewRules bool
	// Role is the controller's IAM role, which CloudFormation and Terraform create.
	Role Role
}

// placeholders stand for unknown values.
type placeholders struct {
	account, region, partition string
	// tool is the value of the tag managed-by.
	tool string
}

// wiring returns the desired wiring of a cluster, with placeholders for an unknown
// place. The error is that of [awssetup.Wiring.ForGroups].
func (p Place) wiring(cluster string, ph placeholders) (awssetup.Wiring, error) {
	w := awssetup.Desired(cluster, cmp.Or(p.Account, ph.account), cmp.Or(p.Region, ph.region))
	if p.Region == "" {
		w.Partition = ph.partition
	}
	w.Senders = p.Senders
	if p.Topic != "" {
		w.Groups = p.groupNames()
		w, err := w.Shared(p.Topic)
		w.Rules = nil // of the shared template
		return w, err
	}
	w, err := w.ForGroups(p.groupNames())
	if err != nil || !p.FewRules {
		return w, err
	}
	return w.Merged()
}

func (ph placeholders) tags(w awssetup.Wiring) map[string]string {
	tags := w.Tags()
	tags[awssetup.TagManagedBy] = ph.tool
	return tags
}

// queue is a queue with decoded attributes.
type queue struct {
	name       string
	attributes map[string]any
	// policy is separate from the attributes: in templates it is a resource.
	policy map[string]any
}

// queues returns the queue and its dead-letter queue.
func queues(w awssetup.Wiring) (notices, deadLetter queue, err error) {
	attributes, err := w.QueueAttributes()
	if err != nil {
		return queue{}, queue{}, err
	}
	if notices, err = newQueue(w.Queue.Name, attributes); err != nil {
		return queue{}, queue{}, err
	}
	if attributes, err = w.DeadLetterAttributes(); err != nil {
		return queue{}, queue{}, err
	}
	deadLetter, err = newQueue(w.DeadLetter.Name, attributes)
	return notices, deadLetter, err
}

func newQueue(name string, attributes map[string]string) (queue, error) {
	q := queue{name: name, attributes: map[string]any{}}
	for key, text := range attributes {
		value, err := valueOf(text)
		if err != nil {
			return queue{}, fmt.Errorf("queue %s: attribute %s: %w", name, key, err)
		}
		if key == "Policy" {
			q.policy, _ = value.(map[string]any)
			continue
		}
		q.attributes[key] = value
	}
	return q, nil
}

// valueOf decodes an attribute: a number, a boolean or a document.
func valueOf(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading %q: %w", text, err)
	}
	return v, nil
}

// replace returns a value in which text replaces every string. It does not change
// keys.
func replace(v any, text func(string) any) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			out = append(out, replace(one, text))
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = replace(value, text)
		}
		return out
	}
	return v
}

// render encodes a document with indentation.
func render(document any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	return []byte(b.String()), nil
}
