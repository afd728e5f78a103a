package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// File is a file to read.
type File struct {
	Name string
	Data []byte
}

// Place is the account and region of the template; empty fields are unknown.
type Place struct {
	Account, Region string
}

// ErrNoWiring means that a file contains nothing about wiring.
var ErrNoWiring = errors.New("it contains no queue, no EventBridge rule and no Auto Scaling group")

// Read reads files as the wiring of one account. The error names the unreadable file,
// or wraps ErrNoWiring.
func Read(files []File, place Place) (snapshot.Snapshot, error) {
	b := &builder{place: place}
	for _, f := range files {
		before := b.objects
		if err := b.file(f); err != nil {
			return snapshot.Snapshot{}, fmt.Errorf("reading %s: %w", f.Name, err)
		}
		if b.objects == before {
			return snapshot.Snapshot{}, fmt.Errorf("reading %s: %w", f.Name, ErrNoWiring)
		}
	}
	return b.finish(), nil
}

// builder collects the parts of the snapshot.
type builder struct {
	place   Place
	out     snapshot.Snapshot
	objects int // number of queues, rules, targets and groups that were read

	// handles maps the ARN, URL or name of a queue to its index in out.Queues.
	handles map[string]int
	// policies of queues, by handle. They can precede the queue.
	policies []attached
	// keys are the policies of KMS keys, by ARN, id and alias.
	keys map[string]string
	// readers are the policies that allow receiving.
	readers []attached
	// targets are separate from their rules, in the order of the files.
	targets []separateTarget
	// hooks and pools are separate from their groups.
	hooks []separateHook
	pools []separatePool
	// described is the rule of the last describe-rule output in the current file.
	described string
}

// attached is a text that belongs to a queue with this handle.
type attached struct{ handle, text string }

// separateTarget is a target of the rule with this name.
type separateTarget struct {
	rule string
	to   snapshot.Target
}

// file reads one file: a stream of JSON documents, or YAML.
func (b *builder) file(f File) error {
	documents, err := decode(f.Data)
	if err != nil {
		return err
	}
	b.described = ""
	for i, d := range documents {
		root, ok := d.(map[string]any)
		if !ok {
			return errors.New("it is neither a template nor output of the AWS CLI: the top-level value is not an object")
		}
		b.document(f.Name, root)
		if i > maxDocuments {
			return errors.New("it has too many documents")
		}
	}
	return nil
}

const maxDocuments = 10_000

// document detects the format of a document by its keys.
func (b *builder) document(file string, root map[string]any) {
	switch {
	case isObject(root["Resources"]):
		b.cloudFormation(file, root)
	case isObject(root["resource"]) || isObject(root["data"]):
		b.terraform(file, root)
	case isObject(root["values"]) || isObject(root["planned_values"]):
		b.terraformShow(file, root)
	default:
		b.awsCLI(file, root)
	}
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// decode reads JSON or, if it is not JSON, YAML. Numbers keep their text.
func decode(data []byte) ([]any, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 {
		return nil, errors.New("it is empty")
	}
	if trimmed[0] != '{' && trimmed[0] != '[' {
		return decodeYAML(data)
	}
	var documents []any
	d := json.NewDecoder(bytes.NewReader(trimmed))
	d.UseNumber()
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			// YAML can begin with a brace too.
			if fromYAML, yamlErr := decodeYAML(data); yamlErr == nil {
				return fromYAML, nil
			}
			return nil, fmt.Errorf("it is not valid JSON: %w", err)
		}
		documents = append(documents, v)
	}
}

// addQueue adds a queue with the names that other resources use for it.
func (b *builder) addQueue(q snapshot.Queue, handles ...string) {
	if b.handles == nil {
		b.handles = map[string]int{}
	}
	b.out.Queues = append(b.out.Queues, q)
	b.objects++
	for _, h := range append(handles, q.ARN) {
		if h != "" {
			b.handles[h] = len(b.out.Queues) - 1
		}
	}
}

// addRule adds a rule.
func (b *builder) addRule(r snapshot.Rule) {
	b.out.Rules = append(b.out.Rules, r)
	b.objects++
}

func (b *builder) reportUnread(from, what string) {
	b.out.Unread = append(b.out.Unread, snapshot.Unread{From: from, What: what})
}

// arn returns an ARN in the template's account and region.
func (b *builder) arn(service, resource string) string {
	return strings.Join([]string{"arn", partition(b.place.Region), service, b.region(), b.account(), resource}, ":")
}

func (b *builder) region() string {
	if b.place.Region == "" {
		return snapshot.UnresolvedRegion
	}
	return b.place.Region
}

func (b *builder) account() string {
	if b.place.Account == "" {
		return snapshot.UnresolvedAccount
	}
	return b.place.Account
}

// partition returns the partition of a region (AWS General Reference, "Amazon
// Resource Names").
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// finish links the parts.
func (b *builder) finish() snapshot.Snapshot {
	for _, p := range b.policies {
		if i, ok := b.handles[p.handle]; ok {
			b.setPolicy(&b.out.Queues[i], p.text)
		}
	}
	for _, r := range b.readers {
		if i, ok := b.handles[r.handle]; ok {
			b.out.Queues[i].Readers = append(b.out.Queues[i].Readers, r.text)
		}
	}
	for i := range b.out.Queues {
		b.out.Queues[i].KeyPolicy = b.keys[b.out.Queues[i].KMSKey]
	}
	b.attachTargets()
	b.attachHooks()
	b.out.Offline = true
	b.out.Account, b.out.Region = b.place.Account, b.place.Region
	return b.out
}

// setPolicy sets the policy of a queue, unless parts of it are undefined.
func (b *builder) setPolicy(q *snapshot.Queue, policy string) {
	if strings.Contains(policy, snapshot.Unresolved) {
		q.PolicyKnown = false
		b.reportUnread("queue "+q.Name, "its policy depends on values that the template does not define: "+openNames(policy))
		return
	}
	q.Policy, q.PolicyKnown = policy, true
}

// attachTargets adds separate targets to their rules.
func (b *builder) attachTargets() {
	for _, t := range b.targets {
		found := false
		for i := range b.out.Rules {
			if b.out.Rules[i].Name == t.rule {
				b.out.Rules[i].Targets = append(b.out.Rules[i].Targets, t.to)
				b.out.Rules[i].TargetsKnown = true
				found = true
			}
		}
		if !found {
			b.reportUnread("target "+t.to.ARN, fmt.Sprintf("it is a target of the rule %q, which is not in the files", t.rule))
		}
	}
}

// openNames returns the names of the undefined values in a text.
func openNames(text string) string {
	var names []string
	for {
		_, rest, ok := strings.Cut(text, snapshot.Unresolved)
		if !ok {
			return strings.Join(names, ", ")
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return strings.Join(append(names, rest), ", ")
		}
		if !strings.Contains(strings.Join(names, ","), name) {
			names = append(names, name)
		}
		text = after
	}
}

// setPattern sets a rule's pattern, and reports undefined values in it.
func (b *builder) setPattern(r *snapshot.Rule, value any) {
	switch value := value.(type) {
	case nil:
		return
	case string:
		r.Pattern = value
	default:
		r.Pattern = toJSON(value)
	}
	if strings.Contains(r.Pattern, snapshot.Unresolved) {
		b.reportUnread(r.From, "its pattern depends on values that the template does not define: "+openNames(r.Pattern))
	}
}

// toJSON encodes a value that was decoded from JSON or YAML.
func toJSON(value any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}
