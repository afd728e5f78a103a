package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// File is a file to read.
type File struct {
	Name string
	Data []byte
}

// Place is where the wiring of a template will be; empty parts are left open.
type Place struct {
	Account, Region string
}

// ErrNothing says that a file has nothing that is about wiring.
var ErrNothing = errors.New("there is no queue, no EventBridge rule and no Auto Scaling group in it")

// Read reads files as one account's wiring. The error names the file that is not
// understood, or wraps ErrNothing.
func Read(files []File, place Place) (snapshot.Snapshot, error) {
	b := &builder{place: place}
	for _, f := range files {
		before := b.pieces
		if err := b.file(f); err != nil {
			return snapshot.Snapshot{}, fmt.Errorf("reading %s: %w", f.Name, err)
		}
		if b.pieces == before {
			return snapshot.Snapshot{}, fmt.Errorf("reading %s: %w", f.Name, ErrNothing)
		}
	}
	return b.finish(), nil
}

// builder puts the pieces together.
type builder struct {
	place  Place
	out    snapshot.Snapshot
	pieces int // how many queues, rules and targets were read

	// What names a queue in other resources: ARN, URL or name, to the queue's
	// place in out.Queues.
	handles map[string]int
	// policies of queues, by handle: they may come before the queue.
	policies []attached
	// keys are policies of KMS keys, by ARN, id and alias.
	keys map[string]string
	// readers are policies that let somebody receive.
	readers []attached
	// targets that stand apart from their rule, in the order of the files.
	targets []looseTarget
	// hooks and pools that stand apart from their group.
	hooks []looseHook
	pools []loosePool
	// described is the rule that describe-rule printed last in the current file.
	described string
}

// attached is a text that belongs to a queue named by some handle.
type attached struct{ handle, text string }

// looseTarget is a target of the rule of that name, on that bus.
type looseTarget struct {
	rule string
	to   snapshot.Target
}

// file reads one file: a stream of JSON documents, or a YAML one.
func (b *builder) file(f File) error {
	documents, err := decode(f.Data)
	if err != nil {
		return err
	}
	b.described = ""
	for i, d := range documents {
		root, ok := d.(map[string]any)
		if !ok {
			return errors.New("it is neither a template nor what the AWS CLI prints: its top is not an object")
		}
		b.document(f.Name, root)
		if i > largestStream {
			return errors.New("it has too many documents")
		}
	}
	return nil
}

const largestStream = 10_000

// document tells by its keys what a document is.
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

// decode reads JSON, or YAML where it is no JSON. Numbers keep their text.
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
			// YAML may begin with a brace too.
			if fromYAML, yamlErr := decodeYAML(data); yamlErr == nil {
				return fromYAML, nil
			}
			return nil, fmt.Errorf("it is no JSON: %w", err)
		}
		documents = append(documents, v)
	}
}

// addQueue adds a queue and what other resources may call it.
func (b *builder) addQueue(q snapshot.Queue, handles ...string) {
	if b.handles == nil {
		b.handles = map[string]int{}
	}
	b.out.Queues = append(b.out.Queues, q)
	b.pieces++
	for _, h := range append(handles, q.ARN) {
		if h != "" {
			b.handles[h] = len(b.out.Queues) - 1
		}
	}
}

// addRule adds a rule.
func (b *builder) addRule(r snapshot.Rule) {
	b.out.Rules = append(b.out.Rules, r)
	b.pieces++
}

func (b *builder) unread(from, what string) {
	b.out.Unread = append(b.out.Unread, snapshot.Unread{From: from, What: what})
}

// arn makes the ARN of something in the place.
func (b *builder) arn(service, resource string) string {
	return strings.Join([]string{"arn", partition(b.place.Region), service, b.region(), b.account(), resource}, ":")
}

func (b *builder) region() string {
	if b.place.Region == "" {
		return snapshot.OpenRegion
	}
	return b.place.Region
}

func (b *builder) account() string {
	if b.place.Account == "" {
		return snapshot.OpenAccount
	}
	return b.place.Account
}

// partition of a region (AWS General Reference, "Amazon Resource Names").
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// finish links what was read in pieces.
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
	b.hangTargets()
	b.hangHooks()
	b.out.Offline = true
	b.out.Account, b.out.Region = b.place.Account, b.place.Region
	return b.out
}

// setPolicy sets the policy of a queue, unless the template leaves parts of it
// open.
func (b *builder) setPolicy(q *snapshot.Queue, policy string) {
	if strings.Contains(policy, snapshot.Open) {
		q.PolicyKnown = false
		b.unread("queue "+q.Name, "its policy hangs on what the template leaves open: "+openNames(policy))
		return
	}
	q.Policy, q.PolicyKnown = policy, true
}

// hangTargets gives loose targets to their rules.
func (b *builder) hangTargets() {
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
			b.unread("target "+t.to.ARN, fmt.Sprintf("it is a target of the rule %q, which is not in the files", t.rule))
		}
	}
}

// openNames lists the names that a text leaves open.
func openNames(text string) string {
	var names []string
	for {
		_, rest, ok := strings.Cut(text, snapshot.Open)
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

// setPattern writes a rule's pattern. Source and detail-type must not be left
// open.
func (b *builder) setPattern(r *snapshot.Rule, value any) {
	switch value := value.(type) {
	case nil:
		return
	case string:
		r.Pattern = value
	default:
		r.Pattern = toJSON(value)
	}
	if strings.Contains(r.Pattern, snapshot.Open) {
		b.unread(r.From, "its pattern hangs on what the template leaves open: "+openNames(r.Pattern))
	}
}

// toJSON writes a value that was read from JSON or YAML.
func toJSON(value any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}
