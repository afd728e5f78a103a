package wiring

// Action is what is done to an object.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// ObjectKind says what an object is.
type ObjectKind string

// The kinds of objects. The target of a rule is part of it.
const (
	QueueObject ObjectKind = "queue"
	RuleObject  ObjectKind = "rule"
)

// Field is one setting of an object, in the words of AWS's API.
type Field struct {
	Name string `json:"name"`
	// Was and WillBe are the setting before and after; empty is none.
	Was    string `json:"was,omitempty"`
	WillBe string `json:"willBe,omitempty"`
	// Reason says what is wrong with what it was, where that is known.
	Reason string `json:"reason,omitempty"`
}

// Change is what has to be done to one object.
type Change struct {
	Action Action     `json:"action"`
	Kind   ObjectKind `json:"kind"`
	Name   string     `json:"name"`
	// Reason says why, or what the object is for.
	Reason string  `json:"reason"`
	Fields []Field `json:"fields,omitempty"`
}

// Conflict is an object that would have to change but is not Lifeboat's to
// change.
type Conflict struct {
	Kind ObjectKind `json:"kind"`
	Name string     `json:"name"`
	// Reason says whose it is, WayOut what can be done.
	Reason string  `json:"reason"`
	WayOut string  `json:"wayOut"`
	Fields []Field `json:"fields,omitempty"`
}

// Plan is what has to be done, in order.
type Plan struct {
	Wiring    Wiring     `json:"-"`
	Changes   []Change   `json:"changes"`
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Notes are about what is left alone.
	Notes []string `json:"notes,omitempty"`

	urls    map[string]string   // of the queues that are there, by name
	targets map[string][]string // ids of the targets of rules to delete
	arns    map[string]string   // of the rules that are there
}

// Empty reports whether there is nothing to do and nothing in the way.
func (p Plan) Empty() bool { return len(p.Changes) == 0 && len(p.Conflicts) == 0 }

// Count is the number of changes with an action.
func (p Plan) Count(a Action) int {
	n := 0
	for _, c := range p.Changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

// begin makes a plan that knows what is there.
func begin(w Wiring, o Observed) Plan {
	p := Plan{Wiring: w, Changes: []Change{}, urls: map[string]string{}, targets: map[string][]string{}, arns: map[string]string{}}
	for name, q := range map[string]ObservedQueue{w.Queue.Name: o.Queue, w.DeadLetter.Name: o.DeadLetter} {
		if q.Exists() {
			p.urls[name] = q.URL
		}
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
	p.Conflicts = append(p.Conflicts, Conflict{Kind: kind, Name: name, Reason: reason, WayOut: wayOut, Fields: fields})
}

func (p *Plan) note(text string) { p.Notes = append(p.Notes, text) }
