package scenario

import "time"

// Scenario is a parsed scenario.
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
	// NodeStatement launches instances, all alike, that become nodes.
	NodeStatement struct {
		Names          []string // what the script calls them
		Type, Zone     string
		Spot           bool
		Labels, Taints string // a=b,c=d and key=value:Effect,…
	}
	// ApplyStatement creates the objects of a file of the archive. In it, ${cron +20s} stands for
	// the cron fields of the first full minute, in UTC, at least that far ahead: when a window
	// opens.
	ApplyStatement struct{ File string }
	// RulesStatement says which EventBridge rules there are.
	RulesStatement struct {
		Set  RuleSet
		File string // for RulesFrom
	}
	// LifeboatStatement starts, stops or kills lifeboatd.
	LifeboatStatement struct {
		Do LifeboatAct
		// Args are more arguments of its command line; none: as before.
		Args []string
	}
	// KarpenterStatement starts, stops or kills Karpenter. The first line of a story
	// in which Karpenter provisions starts it.
	KarpenterStatement struct {
		Do KarpenterAct
		// Hears: it receives interruptions itself, from its own queue. The first line says so, and
		// how long instances take to boot; 0: the sandbox's default.
		Hears     bool
		BootDelay time.Duration
	}
	// NamedStatement names the next instance that Karpenter launches and that has no name in the
	// script yet.
	NamedStatement struct {
		Name   string
		Within time.Duration
	}
	// CapacityStatement removes EC2's capacity, or restores it. An empty field matches any.
	CapacityStatement struct {
		Back         bool
		Type, Zone   string
		CapacityType string // as EC2 calls it: spot or on-demand
	}
	// AgentsStatement runs an agent on every node, or on none.
	AgentsStatement struct{ On bool }
	// InterruptStatement makes AWS reclaim nodes, or warn of it. Its notice starts the clock, and
	// restarts a running one.
	InterruptStatement struct {
		Nodes []string
		Kind  InterruptKind
		Via   Via
		// Notice is the time from the notice to the deadline.
		Notice time.Duration
		// Code is what is planned, as EC2 calls it, for ScheduledChange.
		Code string
		// Exhausts: EC2 has no capacity from then on where it takes an instance back.
		Exhausts bool
	}
	// CallOffStatement makes AWS cancel what it had scheduled for nodes.
	CallOffStatement struct{ Nodes []string }
	// SayStatement writes an operator's decision about a node's interruption, as `lifeboat
	// approve`, `hold` and `release` do.
	SayStatement struct {
		Act  SayAct
		Node string
		By   string // the user's name
	}
	// UntilStatement waits until a moment.
	UntilStatement struct{ Until When }
	// CheckStatement checks a condition.
	CheckStatement struct {
		Mode CheckMode
		// When is the moment of CheckAt and CheckBy.
		When When
		// Within bounds CheckWait.
		Within time.Duration
		Cond   Condition
	}
	// AlwaysStatement requires a condition from here to the end of the script, at every observed
	// change.
	AlwaysStatement struct{ Cond Condition }
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

// KarpenterAct is what is done to Karpenter.
type KarpenterAct string

// The acts.
const (
	KarpenterOn   KarpenterAct = "on"
	KarpenterOff  KarpenterAct = "off"
	KarpenterKill KarpenterAct = "kill" // kill -9; it is started again as a Deployment would
)

// InterruptKind is what AWS does.
type InterruptKind string

// The kinds.
const (
	SpotInterruption InterruptKind = "spot"
	Rebalance        InterruptKind = "rebalance"
	ScheduledChange  InterruptKind = "scheduled" // planned by AWS, which Health and EC2 tell of
	FailedStatus     InterruptKind = "status"    // its status checks fail, and have for ten minutes
)

// SayAct is what a person does.
type SayAct string

// The acts of people.
const (
	SayApprove SayAct = "approve"
	SayHold    SayAct = "hold"
	SayRelease SayAct = "release"
)

// Via is how an interruption is produced.
type Via string

// The ways.
const (
	ViaEC2   Via = "ec2"   // EC2 does it, as when capacity runs short; or plans it
	ViaFIS   Via = "fis"   // an experiment of the Fault Injection Service
	ViaQueue Via = "queue" // only the message, straight into the queue: a drill, nothing goes dark
)

// CheckMode is when a condition must hold.
type CheckMode int

// The modes.
const (
	CheckNow  CheckMode = iota // expect COND: now
	CheckWait                  // wait COND: soon
	CheckAt                    // at 60s COND: at that moment
	CheckBy                    // by 3s COND: no later than that moment
)

// Anchor is the reference of a moment.
type Anchor string

// The anchors.
const (
	FromNotice   Anchor = ""         // when the notice of the latest interrupt came
	FromDeadline Anchor = "deadline" // when what it says is due
	FromWindow   Anchor = "window"   // when the window opens that a file says with ${cron …}
	FromJob      Anchor = "job"      // when the latest Job completed
)

// When is a moment of the scenario: an offset from an anchor.
type When struct {
	From   Anchor
	Offset time.Duration
}

// String writes it as a script does.
func (w When) String() string {
	switch {
	case w.From == FromNotice:
		return w.Offset.String()
	case w.Offset == 0:
		return string(w.From)
	case w.Offset > 0:
		return string(w.From) + "+" + w.Offset.String()
	default:
		return string(w.From) + w.Offset.String()
	}
}
