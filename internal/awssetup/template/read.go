package template

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template/tfconfig"
)

// File is a file to read.
type File struct {
	Name string
	Data []byte
	// Found is true for a file that was found in a directory: it need not be about wiring.
	Found bool
}

// Given is what the caller knows, and what the files can leave open. Empty fields are
// unknown.
type Given struct {
	// Account and Region are the location of the wiring.
	Account, Region string
	// Parameters are the values of parameters and variables.
	Parameters map[string]string
	// Disk reads the modules and files that a Terraform configuration names; nil if only
	// the given files exist.
	Disk tfconfig.Disk
}

// ErrNoWiring means that a file contains nothing about wiring.
var ErrNoWiring = errors.New("it contains no queue, no EventBridge rule and no Auto Scaling group")

// Read reads files as the wiring of one account. The error names the unreadable file,
// or wraps ErrNoWiring.
func Read(files []File, given Given) (snapshot.Snapshot, error) {
	b := &builder{given: given, partition: partitionOf(files, given.Region), files: len(files)}
	all, err := b.readAll(files)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	b.manifests(all)
	b.collectStacks(all)
	objects, err := b.hcl(files)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	for i, d := range all {
		if i == 0 || all[i-1].file != d.file {
			b.described = ""
		}
		before := b.objects
		b.document(d)
		objects[d.file] += b.objects - before
	}
	for _, f := range files {
		if objects[f.Name] == 0 && !b.nested[f.Name] && !f.Found {
			return snapshot.Snapshot{}, fmt.Errorf("reading %s: %w", f.Name, ErrNoWiring)
		}
	}
	if b.objects+len(b.out.Unread) == 0 {
		return snapshot.Snapshot{}, ErrNoWiring
	}
	return b.finish(), nil
}

// readAll reads the documents of all files that have no HCL.
func (b *builder) readAll(files []File) ([]document, error) {
	var all []document
	for _, f := range files {
		if isHCL(f) {
			continue
		}
		documents, err := readDocuments(f)
		switch {
		case err != nil && f.Found:
			if wiring.Match(f.Data) {
				b.reportUnread(f.Name, err.Error())
			}
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", f.Name, err)
		default:
			all = append(all, documents...)
		}
	}
	return all, nil
}

// wiring matches a file that is about wiring, also if it cannot be read.
var wiring = regexp.MustCompile(`AWS::(Events::Rule|SQS::Queue)|aws_(cloudwatch_event|sqs_queue)|(sqs|cloudwatchevents|eventbridge)\.aws\.|aws:(sqs|cloudwatch|events)`)

// document is one value in a file.
type document struct {
	file string
	root map[string]any
}

// readDocuments reads a file: a stream of JSON documents, or YAML.
func readDocuments(f File) ([]document, error) {
	if what := otherLanguage(f.Name, f.Data); what != "" {
		return nil, errors.New(what)
	}
	values, err := decode(f.Data)
	if err != nil {
		return nil, err
	}
	if len(values) > maxDocuments {
		return nil, errors.New("it has too many documents")
	}
	var all []document
	for _, v := range values {
		root, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("it is neither a template nor output of the AWS CLI: the top-level value is not an object")
		}
		all = append(all, document{f.Name, root})
	}
	return all, nil
}

// arnPartition matches the beginning of an ARN.
var arnPartition = regexp.MustCompile(`\barn:(aws[a-z-]*):`)

// partitionOf returns the partition of the wiring: that of the region or, if the
// region is unknown, the one in the ARNs of the files.
func partitionOf(files []File, region string) string {
	if region != "" {
		return snapshot.Partition(region)
	}
	found := map[string]bool{}
	for _, f := range files {
		for _, m := range arnPartition.FindAllSubmatch(f.Data, -1) {
			found[string(m[1])] = true
		}
	}
	if len(found) == 1 {
		return slices.Collect(maps.Keys(found))[0]
	}
	return "aws"
}

// builder collects the parts of the snapshot.
type builder struct {
	given     Given
	partition string
	files     int // number of files
	out       snapshot.Snapshot
	objects   int // number of queues, rules, targets and groups that were read

	// stacks are the CloudFormation templates by file, and nested the files that
	// another template includes.
	stacks map[string]*cfnTemplate
	nested map[string]bool
	// cdk has what CDK's manifest says about a template.
	cdk map[string]cdkStack

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

const maxDocuments = 10_000

// document detects the format of a document by its keys.
func (b *builder) document(d document) {
	switch root := d.root; {
	case isObject(root["artifacts"]) && path.Base(d.file) == "manifest.json":
		b.objects += len(b.cdk)
	case isObject(root["deployment"]):
		b.reportUnread(d.file, "it is a state of Pulumi: "+deployed)
	case isObject(root["Resources"]):
		if f := b.stacks[d.file]; f != nil && !b.nested[d.file] {
			f.read()
		}
	case isObject(root["resource"]) || isObject(root["data"]):
		b.terraform(d.file, root)
	case isObject(root["values"]) || isObject(root["planned_values"]):
		b.terraformShow(d.file, root)
	default:
		b.awsCLI(d.file, root)
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
	return strings.Join([]string{"arn", b.partition, service, b.region(), b.account(), resource}, ":")
}

func (b *builder) region() string { return cmp.Or(b.given.Region, symbol.Region) }

func (b *builder) account() string { return cmp.Or(b.given.Account, symbol.Account) }

// queueURL returns the URL of a queue with this name.
func (b *builder) queueURL(name string) string {
	return "https://sqs." + b.region() + "." + snapshot.URLSuffix(b.partition) + "/" + b.account() + "/" + name
}

// setPattern sets a rule's pattern.
func setPattern(r *snapshot.Rule, value any) {
	switch value := value.(type) {
	case nil:
	case string:
		r.Pattern = value
	default:
		r.Pattern = toJSON(value)
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
