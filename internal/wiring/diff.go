package wiring

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Options say how far Diff and Teardown may go.
type Options struct {
	// Adopt takes over what has a wanted name but was not made by Lifeboat.
	Adopt bool
}

// Diff is what has to be done to make o as w wants it. Its error says that w
// cannot be written down.
func Diff(w Wiring, o Observed, opts Options) (Plan, error) {
	p := begin(w, o)
	deadLetter, err := w.DeadLetterAttributes()
	if err != nil {
		return Plan{}, err
	}
	queue, err := w.QueueAttributes()
	if err != nil {
		return Plan{}, err
	}
	// The dead-letter queue has to be there before anything names it.
	p.queue(w.DeadLetter.Name, deadLetter, o.DeadLetter, opts)
	p.queue(w.Queue.Name, queue, o.Queue, opts)
	for _, r := range w.Rules {
		p.rule(r, o, opts)
	}
	for _, found := range o.Rules {
		if !slices.ContainsFunc(w.Rules, func(r Rule) bool { return r.Name == found.Name }) {
			p.removeRule(found, opts, "Lifeboat has no rule of this name any more")
		}
	}
	return p, nil
}

func (p *Plan) queue(name string, wanted map[string]string, found ObservedQueue, opts Options) {
	purpose := "brings the notices to lifeboatd"
	if name == p.Wiring.DeadLetter.Name {
		purpose = "keeps what could not be delivered, or not be read"
	}
	if !found.Exists() {
		fields := queueFields(wanted, nil)
		p.change(Create, QueueObject, name, purpose, append(fields, p.tagFields(nil)...))
		return
	}
	p.settle(QueueObject, name, found.Tags, queueFields(wanted, found.Attributes), opts)
}

func (p *Plan) rule(wanted Rule, o Observed, opts Options) {
	i := slices.IndexFunc(o.Rules, func(r ObservedRule) bool { return r.Name == wanted.Name })
	if i < 0 {
		fields := append(ruleFields(wanted, ObservedRule{}), p.targetFields(nil)...)
		p.change(Create, RuleObject, wanted.Name, wanted.Description, append(fields, p.tagFields(nil)...))
		return
	}
	found := o.Rules[i]
	fields := append(ruleFields(wanted, found), p.targetFields(found.Targets)...)
	p.settle(RuleObject, wanted.Name, found.Tags, fields, opts)
	for _, t := range found.Targets {
		if t.ID != targetID {
			p.note(fmt.Sprintf("rule %s has a target of somebody else's too (%s, to %s): it is left alone", found.Name, t.ID, t.ARN))
		}
	}
}

// settle decides what becomes of an object that is there and differs by fields.
func (p *Plan) settle(kind ObjectKind, name string, tags map[string]string, fields []Field, opts Options) {
	whose := p.Wiring.whose(tags)
	switch {
	case whose == "":
		fields = append(fields, p.tagFields(tags)...)
		if len(fields) > 0 {
			p.change(Update, kind, name, "it is not as Lifeboat made it", fields)
		}
	case opts.Adopt:
		p.change(Update, kind, name, "it is adopted: "+whose, append(fields, p.tagFields(tags)...))
	case len(fields) > 0:
		p.conflict(kind, name, whose, "change it where it was made, or take it over with --adopt", fields)
	default:
		p.note(fmt.Sprintf("%s %s is as wanted, but not Lifeboat's to change or delete: %s", kind, name, whose))
	}
}

// whose says whose an object with these tags is, unless it is this wiring's.
func (w Wiring) whose(tags map[string]string) string {
	cluster, by := tags[TagCluster], tags[TagManagedBy]
	switch {
	case cluster == "":
		return fmt.Sprintf("`lifeboat wire` did not make it (it has no tag %s=%s)", TagCluster, w.Cluster)
	case cluster != w.Cluster:
		return fmt.Sprintf("it belongs to another cluster (its tag %s says %s)", TagCluster, cluster)
	case by != "" && by != ManagedByLifeboat:
		return fmt.Sprintf("it is looked after by %s (its tag %s says so)", by, TagManagedBy)
	}
	return ""
}

func (p *Plan) tagFields(found map[string]string) []Field {
	var out []Field
	wanted := p.Wiring.Tags()
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if found[key] != wanted[key] {
			out = append(out, Field{Name: fieldTag + key, Was: found[key], WillBe: wanted[key]})
		}
	}
	return out
}

// Names of fields that are no attributes of a queue.
const (
	fieldTag         = "Tag "
	fieldPattern     = "EventPattern"
	fieldSchedule    = "ScheduleExpression"
	fieldState       = "State"
	fieldDescription = "Description"
	fieldTarget      = "Target."
)

// queueFields are the attributes that differ.
func queueFields(wanted, found map[string]string) []Field {
	var out []Field
	// A key of SQS' own and one of KMS exclude each other.
	if key := found[attributeKMSKey]; key != "" {
		out = append(out, Field{Name: attributeKMSKey, Was: key, Reason: "EventBridge can deliver only where the key's policy lets it, which that of alias/aws/sqs does not"})
	}
	if size := found[attributeMaxSize]; less(size, leastMaxSize) {
		out = append(out, Field{Name: attributeMaxSize, Was: size, WillBe: leastMaxSize, Reason: "larger messages, as AWS Health sends them, would be refused"})
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if was, want := found[name], wanted[name]; !sameAttribute(name, was, want) {
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

// attributeReason says what a wrong attribute does.
func attributeReason(name, was, want string) string {
	switch name {
	case attributePolicy:
		return "it decides which rules can deliver; others than ours should not"
	case attributeSSE:
		return "the messages are not encrypted by SQS"
	case attributeRedrive:
		return "what cannot be read has to end in the dead-letter queue, after enough tries"
	case attributeRedriveAllow:
		return "no other queue should use this dead-letter queue"
	case attributeDelay:
		return "a warning must not wait"
	case attributeRetention:
		if less(was, want) {
			return "what is not read in time would be lost"
		}
	case attributeVisibility:
		if less(want, was) {
			return "a reader that dies would hide a warning for that long"
		}
	}
	return ""
}

func less(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && x < y
}

func ruleFields(wanted Rule, found ObservedRule) []Field {
	var out []Field
	add := func(name, was, want, reason string) {
		if was != want {
			if found.Name == "" {
				reason = ""
			}
			out = append(out, Field{Name: name, Was: was, WillBe: want, Reason: reason})
		}
	}
	if !samePattern(found.Pattern, wanted.Pattern) {
		add(fieldPattern, found.Pattern, wanted.Pattern, "it would hear other notices than it is there for")
	}
	add(fieldSchedule, found.Schedule, "", "a schedule sends messages that are no notices")
	add(fieldState, found.State, stateEnabled, "a rule that is disabled hears nothing")
	add(fieldDescription, found.Description, wanted.Description, "")
	return out
}

const stateEnabled = "ENABLED"

// targetFields compare the target that is ours.
func (p *Plan) targetFields(found []Target) []Field {
	var t Target
	if i := slices.IndexFunc(found, func(t Target) bool { return t.ID == targetID }); i >= 0 {
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
	const rewritten = "the message would be no event any more, and lifeboatd could not read it"
	wanted := p.Wiring.Target()
	add("Arn", t.ARN, wanted.ARN, "the notices go somewhere else")
	add("DeadLetterConfig.Arn", t.DeadLetterARN, wanted.DeadLetterARN, "what cannot be delivered would be lost")
	add("Input", t.Input, "", rewritten)
	add("InputPath", t.InputPath, "", rewritten)
	add("InputTransformer.InputTemplate", t.InputTemplate, "", rewritten)
	add("RetryPolicy", t.Retry, "", "EventBridge would give up earlier than it has to")
	return out
}

// removeRule deletes a rule that is ours.
func (p *Plan) removeRule(found ObservedRule, opts Options, reason string) {
	if whose := p.Wiring.whose(found.Tags); whose != "" {
		p.note(fmt.Sprintf("rule %s stays: %s", found.Name, whose))
		return
	}
	ids := []string{}
	for _, t := range found.Targets {
		ids = append(ids, t.ID)
		if t.ID != targetID && !opts.Adopt {
			p.conflict(RuleObject, found.Name, fmt.Sprintf("it has a target of somebody else's (%s, to %s)", t.ID, t.ARN),
				fmt.Sprintf("remove that target (aws events remove-targets --rule %s --ids %s), or delete the rule with it: --adopt", found.Name, t.ID), nil)
			return
		}
	}
	p.targets[found.Name] = ids
	p.change(Delete, RuleObject, found.Name, reason, nil)
}

// Teardown is what has to be done to take away what Lifeboat made: the rules
// first, so that nothing is delivered to a queue that is gone.
func Teardown(w Wiring, o Observed, opts Options) Plan {
	p := begin(w, o)
	for _, r := range o.Rules {
		p.removeRule(r, opts, "")
	}
	for _, q := range []struct {
		name  string
		found ObservedQueue
	}{{w.Queue.Name, o.Queue}, {w.DeadLetter.Name, o.DeadLetter}} {
		if !q.found.Exists() {
			continue
		}
		if whose := w.whose(q.found.Tags); whose != "" {
			p.note(fmt.Sprintf("queue %s stays: %s", q.name, whose))
			continue
		}
		reason := "no message is in it"
		if n := q.found.Messages(); n > 0 {
			reason = fmt.Sprintf("about %s in it will be lost", counted(n, "message"))
		}
		p.change(Delete, QueueObject, q.name, reason, nil)
	}
	return p
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
