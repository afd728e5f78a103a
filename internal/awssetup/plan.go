package awssetup

// Action is the kind of a change.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// ObjectKind is the kind of an object.
type ObjectKind string

// The kinds of objects. The target of a rule is part of the rule.
const (
	QueueObject ObjectKind = "queue"
	RuleObject  ObjectKind = "rule"
	// TopicObject and SubscriptionObject are those of a shared topic.
	TopicObject        ObjectKind = "topic"
	SubscriptionObject ObjectKind = "subscription"
)

// Field is one setting of an object, with the name that AWS's API has for it.
type Field struct {
	Name string `json:"name"`
	// Was and WillBe are the values before and after the change; empty means none.
	Was    string `json:"was,omitempty"`
	WillBe string `json:"willBe,omitempty"`
	// Reason is the effect of the old value, if it is known.
	Reason string `json:"reason,omitempty"`
}

// Change is a change of one object.
type Change struct {
	Action Action     `json:"action"`
	Kind   ObjectKind `json:"kind"`
	Name   string     `json:"name"`
	// Reason is the cause of the change, or the purpose of the object.
	Reason string  `json:"reason"`
	Fields []Field `json:"fields,omitempty"`
}

// Conflict is an object that would have to change, but that Lifeboat does not manage.
type Conflict struct {
	Kind ObjectKind `json:"kind"`
	Name string     `json:"name"`
	// Reason names the manager of the object, and Resolution what the user can do.
	Reason     string  `json:"reason"`
	Resolution string  `json:"wayOut"`
	Fields     []Field `json:"fields,omitempty"`
}

// Plan is the ordered list of changes.
type Plan struct {
	Wiring    Wiring     `json:"-"`
	Changes   []Change   `json:"changes"`
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Notes describe objects that the plan does not change.
	Notes []string `json:"notes,omitempty"`

	urls    map[string]string   // of the existing queues, by name
	targets map[string][]string // ids of the targets of rules to delete
	arns    map[string]string   // of the existing rules
	// subscribed is the ARN of the queue's subscription to the topic.
	subscribed string
}

// Empty reports whether the plan has no changes and no conflicts.
func (p Plan) Empty() bool { return len(p.Changes) == 0 && len(p.Conflicts) == 0 }

// Count returns the number of changes of this kind.
func (p Plan) Count(a Action) int {
	n := 0
	for _, c := range p.Changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

// newPlan returns an empty plan with the identifiers of the existing objects.
func newPlan(w Wiring, o Observed) Plan {
	p := Plan{Wiring: w, Changes: []Change{}, urls: map[string]string{}, targets: map[string][]string{}, arns: map[string]string{}}
	for name, q := range map[string]ObservedQueue{w.Queue.Name: o.Queue, w.DeadLetter.Name: o.DeadLetter} {
		if q.Exists() {
			p.urls[name] = q.URL
		}
	}
	if s, ok := o.Topic.subscriptionOf(w.QueueARN()); ok {
		p.subscribed = s.ARN
	}
	for _, r := range o.Rules {
		p.arns[r.Name] = r.ARN
	}
	return p
}

func (p *Plan) change(a Action, kind ObjectKind, name, reason string, fields []Field) {
	p.Changes = append(p.Changes, Change{Action: a, Kind: kind, Name: name, Reason: reason, Fields: fields})
}

func (p *Plan) conflict(kind ObjectKind, name, reason, wayOut string, fields []Field) {
	p.Conflicts = append(p.Conflicts, Conflict{Kind: kind, Name: name, Reason: reason, Resolution: wayOut, Fields: fields})
}

func (p *Plan) note(text string) { p.Notes = append(p.Notes, text) }
