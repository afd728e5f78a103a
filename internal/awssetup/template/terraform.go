package template

import (
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// terraform reads configuration in Terraform's JSON syntax (Terraform
// documentation, "JSON Configuration Syntax").
func (b *builder) terraform(file string, root map[string]any) {
	m := newModule(b, file)
	for _, block := range items(root["variable"]) {
		for name, v := range object(block) {
			if given, ok := b.given.Parameters[name]; ok {
				m.values["var."+name] = given
			} else if d, ok := first(v)["default"]; ok {
				m.values["var."+name] = d
			}
		}
	}
	for _, block := range items(root["locals"]) {
		for name, v := range object(block) {
			m.values["local."+name] = v
		}
	}
	m.blocks("", root["resource"])
	m.blocks("data.", root["data"])
	m.read()
}

// terraformShow reads the output of `terraform show -json` for a state or a plan
// (Terraform documentation, "JSON Output Format").
func (b *builder) terraformShow(file string, root map[string]any) {
	m := newModule(b, file)
	values := object(root["values"])
	if values == nil {
		values = object(root["planned_values"])
	}
	m.addShown(object(values["root_module"]), 0)
	// The data sources that a plan has read are in its prior state.
	m.addShown(object(object(object(root["prior_state"])["values"])["root_module"]), 0)
	if provider := object(object(object(root["configuration"])["provider_config"])["aws"]); b.given.Region == "" {
		b.given.Region = str(object(object(provider["expressions"])["region"])["constant_value"])
	}
	// A plan does not contain the ARNs of new resources. The configuration contains
	// the references.
	m.readConfiguration("", object(object(root["configuration"])["root_module"]), 0)
	for address := range m.resources {
		m.refer(address)
	}
	m.read()
}

// module is a Terraform module: resources by address.
type module struct {
	*builder

	file      string
	resources map[string]map[string]any // such as aws_sqs_queue.main
	values    map[string]any            // var.x and local.x
	// configured are the modules of a plan's configuration by address without indexes.
	configured map[string]map[string]any
	// evaluated means that the attributes contain no ${…} to resolve.
	evaluated bool
	files     map[string]string // file of each resource, if the module has several
	work      int
}

func newModule(b *builder, file string) *module {
	return &module{builder: b, file: file, resources: map[string]map[string]any{}, values: map[string]any{}, configured: map[string]map[string]any{}}
}

// blocks reads {"aws_sqs_queue": {"main": {…}}}. Every level can be a list.
func (m *module) blocks(prefix string, v any) {
	for _, types := range items(v) {
		for kind, named := range object(types) {
			for _, names := range items(named) {
				for name, body := range object(names) {
					if attributes := first(body); attributes != nil {
						m.resources[prefix+kind+"."+name] = attributes
					}
				}
			}
		}
	}
}

// maxModuleDepth limits the nesting of modules.
const maxModuleDepth = 20

func (m *module) addShown(in map[string]any, depth int) {
	if depth > maxModuleDepth {
		return
	}
	for _, r := range items(in["resources"]) {
		resource := object(r)
		address, values := str(resource["address"]), object(resource["values"])
		if address != "" && values != nil && m.resources[address] == nil {
			m.resources[address] = values
		}
	}
	for _, child := range items(in["child_modules"]) {
		m.addShown(object(child), depth+1)
	}
}

// kindOf returns the type of the resource at an address, which can be in a module and
// have an index: module.a.aws_sqs_queue.main[0].
func kindOf(address string) string {
	parts := strings.Split(address, ".")
	for len(parts) > 2 && (parts[0] == "module" || parts[0] == "data") {
		if parts[0] == "data" {
			return "data." + parts[1]
		}
		parts = parts[2:]
	}
	return parts[0]
}

// read reads the resources. It reads first those to which others refer.
func (m *module) read() {
	addresses := slices.Sorted(maps.Keys(m.resources))
	for _, address := range addresses {
		switch kindOf(address) {
		case "aws_sqs_queue":
			m.queue(address)
		case "aws_cloudwatch_event_rule":
			m.rule(address)
		case "aws_autoscaling_group":
			m.group(address)
		case "aws_autoscaling_lifecycle_hook":
			m.addHook(separateHook{
				group: m.text(address, "autoscaling_group_name"), resource: address,
				hook: m.hook(address, m.named(address, "name"), object(m.resolve(m.resources[address], 0))),
			})
		case "aws_kms_key":
			m.setKey(jsonText(m.attribute(address, "policy")), m.named(address, "arn"), m.named(address, "key_id"), m.named(address, "id"))
		}
	}
	for _, address := range addresses {
		switch kindOf(address) {
		case "aws_sqs_queue_policy":
			m.policies = append(m.policies, attached{m.text(address, "queue_url"), jsonText(m.attribute(address, "policy"))})
		case "aws_sqs_queue_redrive_policy":
			if i, ok := m.handles[m.text(address, "queue_url")]; ok {
				m.out.Queues[i].Redrive(m.text(address, "redrive_policy"))
			}
		case "aws_cloudwatch_event_target":
			m.target(address)
		case "aws_iam_policy", "aws_iam_role_policy", "aws_iam_user_policy":
			m.grantsText(address)
		}
	}
}

// from returns the source of a resource.
func (m *module) from(address string) string {
	if file := m.files[address]; file != "" {
		return file + ", " + address
	}
	return m.file + ", " + address
}

// attribute returns a resolved attribute of a resource.
func (m *module) attribute(address, name string) any {
	return m.resolve(m.resources[address][name], 0)
}

func (m *module) text(address, name string) string { return str(m.attribute(address, name)) }

// named returns an identifier of a resource: that of the state, or one derived from
// its name.
func (m *module) named(address, attribute string) string {
	return str(m.computed(address, attribute, 0))
}

func (m *module) queue(address string) {
	q := snapshot.Queue{
		Name: m.named(address, "name"), ARN: m.named(address, "arn"), From: m.from(address), Reference: m.referenceTo(address), Known: true, PolicyKnown: true,
		Retention:   seconds(m.attribute(address, "message_retention_seconds"), snapshot.DefaultRetention),
		Visibility:  seconds(m.attribute(address, "visibility_timeout_seconds"), snapshot.DefaultVisibility),
		Delay:       seconds(m.attribute(address, "delay_seconds"), 0),
		MaximumSize: number(m.attribute(address, "max_message_size"), snapshot.DefaultMaximumSize),
		KMSKey:      m.text(address, "kms_master_key_id"),
		FIFO:        boolean(m.attribute(address, "fifo_queue"), false), ContentDeduplicated: boolean(m.attribute(address, "content_based_deduplication"), false),
	}
	q.ManagedSSE = boolean(m.attribute(address, "sqs_managed_sse_enabled"), q.KMSKey == "")
	q.Redrive(jsonText(m.attribute(address, "redrive_policy")))
	for name, value := range object(m.attribute(address, "tags")) {
		if q.Tags == nil {
			q.Tags = map[string]string{}
		}
		q.Tags[name] = str(value)
	}
	// kOps tags what it creates (kOps documentation, "Labels and tags").
	if file, _, _ := strings.Cut(q.From, ", "); q.Tags["KubernetesCluster"] != "" {
		if m.out.KOps == nil {
			m.out.KOps = map[string]string{}
		}
		m.out.KOps[file] = q.Tags["KubernetesCluster"]
	}
	if policy := jsonText(m.attribute(address, "policy")); policy != "" {
		m.setPolicy(&q, policy)
	}
	m.addQueue(q, m.named(address, "url"), m.named(address, "id"))
	m.inferPlaceFromState(q.ARN)
}

// inferPlaceFromState takes account and region from an ARN of a state.
func (b *builder) inferPlaceFromState(arn string) {
	if !symbol.Within(arn) {
		b.inferPlace(arn)
	}
}

func (m *module) rule(address string) {
	pattern := m.attribute(address, "event_pattern")
	r := snapshot.Rule{
		Name: m.named(address, "name"), ARN: m.named(address, "arn"), From: m.from(address), Reference: m.referenceTo(address), Bus: m.text(address, "event_bus_name"),
		Scheduled:    pattern == nil && m.attribute(address, "schedule_expression") != nil,
		Enabled:      !strings.EqualFold(m.text(address, "state"), "DISABLED") && boolean(m.attribute(address, "is_enabled"), true),
		TargetsKnown: true,
	}
	setPattern(&r, pattern)
	m.addRule(r)
}

func (m *module) target(address string) {
	sqs, dead := first(m.attribute(address, "sqs_target")), first(m.attribute(address, "dead_letter_config"))
	m.targets = append(m.targets, separateTarget{rule: m.text(address, "rule"), to: snapshot.Target{
		ID: m.text(address, "target_id"), ARN: m.text(address, "arn"), RoleARN: m.text(address, "role_arn"),
		Input: m.text(address, "input"), InputPath: m.text(address, "input_path"),
		Transformed: len(items(m.attribute(address, "input_transformer"))) > 0,
		GroupID:     str(sqs["message_group_id"]), DeadLetterARN: str(dead["arn"]),
	}})
	m.objects++
}

// grantsText reads an IAM policy that is JSON in a string.
func (m *module) grantsText(address string) {
	documents, err := decode([]byte(jsonText(m.attribute(address, "policy"))))
	if err != nil {
		return // undefined or empty
	}
	for _, d := range documents {
		m.grants(address, d)
	}
}

// referenceTo is the JSON by which a configuration refers to a resource's ARN. The
// reference works in the resource's own module.
func (m *module) referenceTo(address string) string {
	_, local := splitModule(address)
	return toJSON("${" + local + ".arn}")
}
