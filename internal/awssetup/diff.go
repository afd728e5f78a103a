package awssetup

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Options limit what Diff and Teardown may change.
type Options struct {
	// Adopt lets the plan change objects that have the desired name but that Lifeboat
	// did not create.
	Adopt bool
}

// Diff returns the changes that turn o into w. The error means that w cannot be
// encoded.
func Diff(w Wiring, o Observed, opts Options) (Plan, error) {
	w = w.inTransition(o)
	p := newPlan(w, o)
	deadLetter, err := w.DeadLetterAttributes()
	if err != nil {
		return Plan{}, err
	}
	queue, err := w.QueueAttributes()
	if err != nil {
		return Plan{}, err
	}
	// Create the dead-letter queue first: the queue's redrive policy and the targets
	// refer to it.
	p.queue(w.DeadLetter.Name, deadLetter, o.DeadLetter, opts)
	p.queue(w.Queue.Name, queue, o.Queue, opts)
	if w.Topic != "" {
		if err := p.topic(o, opts); err != nil {
			return Plan{}, err
		}
		if err := p.subscription(o); err != nil {
			return Plan{}, err
		}
	}
	for _, r := range w.Rules {
		p.rule(r, o, opts)
	}
	for _, found := range o.Rules {
		if w.Topic == "" && isShared(found.Tags) {
			continue // leaveTopic
		}
		if !slices.ContainsFunc(w.Rules, func(r Rule) bool { return r.Name == found.Name }) {
			reason := "this version of Lifeboat has no rule with this name"
			if slices.Contains(w.Replaces, found.Name) {
				reason = "other rules deliver its events"
			}
			p.removeRule(found, opts, reason)
		}
	}
	if w.Topic == "" {
		p.leaveTopic(o, opts)
	}
	return p, nil
}

// inTransition returns the wiring whose queue policy still allows what it replaces: the cluster's
// own rules, when a topic replaces them, or the topic.
func (w Wiring) inTransition(o Observed) Wiring {
	if w.Topic == "" {
		w.Leaves = o.Topic.Name
		return w
	}
	for _, found := range o.Rules {
		if !isShared(found.Tags) && found.Tags[TagCluster] == w.Cluster {
			w.Replaces = append(w.Replaces, found.Name)
		}
	}
	return w
}

func (p *Plan) queue(name string, desired map[string]string, found ObservedQueue, opts Options) {
	purpose := "delivers the notices to lifeboatd"
	if name == p.Wiring.DeadLetter.Name {
		purpose = "keeps messages that could not be delivered or read"
	}
	if !found.Exists() {
		fields := queueFields(desired, nil)
		p.change(Create, QueueObject, name, purpose, append(fields, p.tagFields(QueueObject, nil)...))
		return
	}
	p.updateExisting(QueueObject, name, found.Tags, queueFields(desired, found.Attributes), opts)
}

func (p *Plan) rule(desired Rule, o Observed, opts Options) {
	i := slices.IndexFunc(o.Rules, func(r ObservedRule) bool { return r.Name == desired.Name })
	if i < 0 {
		fields := append(ruleFields(desired, ObservedRule{}), p.targetFields(nil)...)
		p.change(Create, RuleObject, desired.Name, desired.Description, append(fields, p.tagFields(RuleObject, nil)...))
		return
	}
	found := o.Rules[i]
	fields := append(ruleFields(desired, found), p.targetFields(found.Targets)...)
	p.updateExisting(RuleObject, desired.Name, found.Tags, fields, opts)
	for _, t := range found.Targets {
		if !isTargetID(t.ID) {
			p.note(fmt.Sprintf("rule %s also has a target that Lifeboat does not manage (%s, to %s): the plan does not change it", found.Name, t.ID, t.ARN))
		}
	}
}

// updateExisting adds an update, a conflict or a note for an existing object. fields
// are its differences.
func (p *Plan) updateExisting(kind ObjectKind, name string, tags map[string]string, fields []Field, opts Options) {
	owner := p.Wiring.foreignOwner(TagCluster, p.Wiring.Cluster, tags)
	if kind != QueueObject && p.Wiring.Topic != "" {
		owner = p.Wiring.foreignOwner(TagTopic, p.Wiring.Topic, tags)
	}
	switch {
	case owner == "":
		fields = append(fields, p.tagFields(kind, tags)...)
		if len(fields) > 0 {
			p.change(Update, kind, name, "it differs from the desired configuration", fields)
		}
	case opts.Adopt:
		p.change(Update, kind, name, "adopt it: "+owner, append(fields, p.tagFields(kind, tags)...))
	case len(fields) > 0:
		p.conflict(kind, name, owner, "change it with the tool that created it, or adopt it with --adopt", fields)
	default:
		p.note(fmt.Sprintf("%s %s has the desired configuration, but Lifeboat may not change or delete it: %s", kind, name, owner))
	}
}

// foreignOwner returns why this wiring may not change an object with these tags. key is the tag of
// the cluster or of the topic, and want its value for the wiring. It is empty for the wiring's own
// objects.
func (w Wiring) foreignOwner(key, want string, tags map[string]string) string {
	got, by := tags[key], tags[TagManagedBy]
	switch {
	case got == "":
		return fmt.Sprintf("`lifeboat aws` did not create it (it has no tag %s=%s)", key, want)
	case got != want:
		return fmt.Sprintf("it belongs to another %s (its tag %s says %s)", map[string]string{TagCluster: "cluster", TagTopic: "topic"}[key], key, got)
	case by != "" && by != ManagedByLifeboat:
		return fmt.Sprintf("it is managed by %s (tag %s)", by, TagManagedBy)
	}
	return ""
}

func (p *Plan) tagFields(kind ObjectKind, found map[string]string) []Field {
	var out []Field
	desired := p.Wiring.Tags()
	if kind != QueueObject {
		desired = p.Wiring.RuleTags()
	}
	if _, shared := desired[TagTopic]; !shared && kind == QueueObject && found[TagTopic] != "" {
		desired[TagTopic] = "" // the queue has left the topic
	}
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		if found[key] != desired[key] {
			out = append(out, Field{Name: fieldTag + key, Was: found[key], WillBe: desired[key]})
		}
	}
	return out
}

// Names of fields that are not attributes of a queue.
const (
	fieldTag         = "Tag "
	fieldPattern     = "EventPattern"
	fieldSchedule    = "ScheduleExpression"
	fieldState       = "State"
	fieldDescription = "Description"
	fieldTarget      = "Target."
)

// queueFields returns the attributes that differ.
func queueFields(desired, found map[string]string) []Field {
	var out []Field
	// SSE-SQS and SSE-KMS exclude each other.
	if key := found[attributeKMSKey]; key != "" {
		out = append(out, Field{Name: attributeKMSKey, Was: key, Reason: "EventBridge can deliver only if the key's policy allows it; the policy of alias/aws/sqs does not"})
	}
	if size := found[attributeMaxSize]; lessNumber(size, minMessageSize) {
		out = append(out, Field{Name: attributeMaxSize, Was: size, WillBe: minMessageSize, Reason: "SQS would refuse larger messages, for example those of AWS Health"})
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if was, want := found[name], desired[name]; !sameAttribute(name, was, want) {
			f := Field{Name: name, Was: was, WillBe: want}
			if found != nil {
				f.Reason = attributeReason(name, was, want)
			}
			out = append(out, f)
		}
	}
	return out
}

func sameAttribute(name, was, want string) bool {
	switch name {
	case attributePolicy, attributeRedrive, attributeRedriveAllow:
		return samePolicy(was, want)
	}
	return was == want
}

// attributeReason returns the effect of a wrong attribute.
func attributeReason(name, was, want string) string {
	switch name {
	case attributePolicy:
		return "only the rules of this cluster should be allowed to deliver, with TLS, and the principals of --sender"
	case attributeSSE:
		return "SQS does not encrypt the messages"
	case attributeRedrive:
		return "unreadable messages must move to the dead-letter queue after enough receives"
	case attributeRedriveAllow:
		return "no other queue should use this dead-letter queue"
	case attributeDelay:
		return "a spot interruption warning must not be delayed"
	case attributeRetention:
		if lessNumber(was, want) {
			return "unread messages would expire too early"
		}
	case attributeVisibility:
		if lessNumber(want, was) {
			return "after a crash of the reader, a warning would stay hidden for that long"
		}
	}
	return ""
}

func lessNumber(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && x < y
}

func ruleFields(desired Rule, found ObservedRule) []Field {
	var out []Field
	add := func(name, was, want, reason string) {
		if was != want {
			if found.Name == "" {
				reason = ""
			}
			out = append(out, Field{Name: name, Was: was, WillBe: want, Reason: reason})
		}
	}
	if !samePattern(found.Pattern, desired.Pattern) {
		add(fieldPattern, found.Pattern, desired.Pattern, "the rule would match other events than intended")
	}
	add(fieldSchedule, found.Schedule, "", "a schedule sends messages that are not notices")
	add(fieldState, found.State, stateEnabled, "a disabled rule matches no events")
	add(fieldDescription, found.Description, desired.Description, "")
	return out
}

const stateEnabled = "ENABLED"

// targetFields compares Lifeboat's own target of the rule.
func (p *Plan) targetFields(found []Target) []Field {
	var t Target
	desired := p.Wiring.Target()
	if i := slices.IndexFunc(found, func(t Target) bool { return t.ID == desired.ID }); i >= 0 {
		t = found[i]
	}
	var out []Field
	add := func(name, was, want, reason string) {
		if was != want {
			if t.ID == "" {
				reason = ""
			}
			out = append(out, Field{Name: fieldTarget + name, Was: was, WillBe: want, Reason: reason})
		}
	}
	const rewritten = "lifeboatd can read only unmodified events"
	add("Arn", t.ARN, desired.ARN, "the notices go to another target")
	add("DeadLetterConfig.Arn", t.DeadLetterARN, desired.DeadLetterARN, "undeliverable events would be lost")
	add("Input", t.Input, "", rewritten)
	add("InputPath", t.InputPath, "", rewritten)
	add("InputTransformer.InputTemplate", t.InputTemplate, "", rewritten)
	add("RetryPolicy", t.Retry, "", "EventBridge would stop retrying too early")
	return out
}

// removeRule deletes a rule that this wiring manages.
func (p *Plan) removeRule(found ObservedRule, opts Options, reason string) {
	owner := p.Wiring.foreignOwner(TagCluster, p.Wiring.Cluster, found.Tags)
	if isShared(found.Tags) {
		owner = p.Wiring.foreignOwner(TagTopic, found.Tags[TagTopic], found.Tags)
	}
	if owner != "" {
		p.note(fmt.Sprintf("rule %s stays: %s", found.Name, owner))
		return
	}
	ids := []string{}
	for _, t := range found.Targets {
		ids = append(ids, t.ID)
		if !isTargetID(t.ID) && !opts.Adopt {
			p.conflict(RuleObject, found.Name, fmt.Sprintf("it has a target that Lifeboat does not manage (%s, to %s)", t.ID, t.ARN),
				fmt.Sprintf("remove that target (aws events remove-targets --rule %s --ids %s), or delete the rule together with it: --adopt", found.Name, t.ID), nil)
			return
		}
	}
	p.targets[found.Name] = ids
	p.change(Delete, RuleObject, found.Name, reason, nil)
}
