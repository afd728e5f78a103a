// Package emit writes the wiring that a cluster wants as a template for other
// tools: CloudFormation, Terraform, or plain JSON. It is pure, and needs no
// account: what is not known is left to the tool to fill in.
//
// What a template makes carries the tag lifeboat.dev/managed-by with the name of
// the tool, so that `lifeboat wire` checks it and never changes it.
package emit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

// Place is where the template will be used. Empty fields are left to the tool.
type Place struct {
	Account string
	Region  string
	// Groups are the Auto Scaling groups that the rules about them are limited to,
	// and whose hooks the template puts; none: the rules hear of all, and no hook
	// is put.
	Groups []Group
}

// placeholders stand for what is not known yet.
type placeholders struct {
	account, region, partition string
	// tool is the value of the tag managed-by.
	tool string
}

// wiring is what a cluster wants, with placeholders where the place is not known.
// The error is that of [wiring.Wiring.ForGroups].
func (p Place) wiring(cluster string, ph placeholders) (wiring.Wiring, error) {
	w := wiring.Wanted(cluster, cmp.Or(p.Account, ph.account), cmp.Or(p.Region, ph.region))
	if p.Region == "" {
		w.Partition = ph.partition
	}
	return w.ForGroups(p.groupNames())
}

func (ph placeholders) tags(w wiring.Wiring) map[string]string {
	tags := w.Tags()
	tags[wiring.TagManagedBy] = ph.tool
	return tags
}

// queue is a queue with its attributes as values.
type queue struct {
	name       string
	attributes map[string]any
	// policy is not among the attributes: templates have it as a resource.
	policy map[string]any
}

// queues are the queue and its dead-letter queue.
func queues(w wiring.Wiring) (notices, deadLetter queue, err error) {
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

// valueOf reads an attribute: a number, a truth value or a document.
func valueOf(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading %q: %w", text, err)
	}
	return v, nil
}

// replace walks through a value and puts something else in place of texts. Keys
// stay.
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

// render writes a document, indented.
func render(document any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return nil, fmt.Errorf("writing the template: %w", err)
	}
	return []byte(b.String()), nil
}
