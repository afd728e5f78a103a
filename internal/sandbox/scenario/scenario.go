package scenario

import "time"

// Scenario is a story that can be played.
type Scenario struct {
	// Name is the file's, without its ending.
	Name string
	// Title is the first line of the prose, Prose the rest.
	Title, Prose string
	// Steps are the lines of the script, in order.
	Steps []Step
	// Files are the other files of the archive.
	Files map[string][]byte
}

// Step is one line of the script.
type Step struct {
	// Line is its number in the archive, from 1.
	Line int
	// Text is the line as written.
	Text string
	// Do is what it says: one of the statement types below.
	Do any
}

// Statement types.
type (
	// NodeStatement launches an instance that becomes a node.
	NodeStatement struct {
		Name           string // what the script calls it
		Type, Zone     string
		Spot           bool
		Labels, Taints string // a=b,c=d and key=value:Effect,…
	}
	// ApplyStatement creates the objects of a file of the archive.
	ApplyStatement struct{ File string }
	// RulesStatement says which EventBridge rules there are.
	RulesStatement struct {
		Set  RuleSet
		File string // for RulesFrom
	}
	// LifeboatStatement starts, stops or kills lifeboatd.
	LifeboatStatement struct {
		Do LifeboatAct
		// Sources are those that it listens to, such as sqs,ec2; empty: as before.
		Sources string
	}
	// AgentsStatement runs an agent on every node, or on none.
	AgentsStatement struct{ On bool }
	// InterruptStatement makes AWS take nodes back, or warn of it. The clock
	// starts with its notice.
	InterruptStatement struct {
		Nodes []string
		Kind  InterruptKind
		Via   Via
		// Notice is the time from the notice to the deadline.
		Notice time.Duration
	}
	// UntilStatement lets time pass.
	UntilStatement struct{ Until When }
	// CheckStatement demands a condition.
	CheckStatement struct {
		Mode CheckMode
		// When is the moment of CheckAt and CheckBy.
		When When
		// Within bounds CheckWait.
		Within time.Duration
		Cond   Condition
	}
)

// RuleSet is which EventBridge rules there are.
type RuleSet string

// The rule sets.
const (
	RulesStandard RuleSet = "standard" // as Lifeboat wants them
	RulesNone     RuleSet = "none"
	RulesFrom     RuleSet = "from" // a file of the archive
)

// LifeboatAct is what is done to lifeboatd.
type LifeboatAct string

// The acts.
const (
	LifeboatOn   LifeboatAct = "on"
	LifeboatOff  LifeboatAct = "off"
	LifeboatKill LifeboatAct = "kill" // kill -9; it is started again as a Deployment would
)

// InterruptKind is what AWS does.
type InterruptKind string

// The kinds.
const (
	SpotInterruption InterruptKind = "spot"
	Rebalance        InterruptKind = "rebalance"
)

// Via is the way by which an interruption is brought about.
type Via string

// The ways.
const (
	ViaEC2   Via = "ec2"   // EC2 does it, as when capacity runs short
	ViaFIS   Via = "fis"   // an experiment of the Fault Injection Service
	ViaQueue Via = "queue" // only the message, straight into the queue: a drill, nothing goes dark
)

// CheckMode is when a condition has to hold.
type CheckMode int

// The modes.
const (
	CheckNow  CheckMode = iota // expect COND: now
	CheckWait                  // wait COND: soon
	CheckAt                    // at 60s COND: at that moment
	CheckBy                    // by 3s COND: no later than that moment
)

// When is a moment of the story: an offset from the notice or from the deadline.
type When struct {
	FromDeadline bool
	Offset       time.Duration
}

// String writes it as a script does.
func (w When) String() string {
	switch {
	case !w.FromDeadline:
		return w.Offset.String()
	case w.Offset == 0:
		return "deadline"
	case w.Offset > 0:
		return "deadline+" + w.Offset.String()
	default:
		return "deadline" + w.Offset.String()
	}
}

// time is the moment itself.
func (w When) time(notice, deadline time.Time) time.Time {
	if w.FromDeadline {
		return deadline.Add(w.Offset)
	}
	return notice.Add(w.Offset)
}
