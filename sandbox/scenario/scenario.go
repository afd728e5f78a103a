package scenario

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
)

// Scenario is a parsed scenario.
type Scenario struct {
	// Name is the file's name without its ending.
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
	// Do is one of the statement types below.
	Do any
}

// Statement types.
type (
	// NodeStatement launches instances with the same properties. They become nodes.
	NodeStatement struct {
		Names          []string // names in the script
		Type, Zone     string
		Spot           bool
		Labels, Taints string // a=b,c=d and key=value:Effect,…
	}
	// ApplyStatement creates the objects of a file of the archive. It
	// replaces ${cron +20s} by the cron fields of the first full minute, in UTC, that is at least
	// that far ahead.
	ApplyStatement struct{ File string }
	// RulesStatement sets the EventBridge rules.
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
	// KarpenterStatement starts, stops or kills Karpenter. In scenarios with Karpenter, the first
	// line starts it.
	KarpenterStatement struct {
		Do KarpenterAct
		// OwnQueue: Karpenter receives interruptions itself, from its own queue. Guard: the chart's
		// guard of NodeClaims is on. Only the first line has them.
		OwnQueue bool
		Guard    bool
	}
	// BootStatement sets how long instances that are launched from here on take to become nodes.
	// Zero: 30 to 60 s, as on an ordinary cluster.
	BootStatement struct{ Delay time.Duration }
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
		// Code is EC2's code of the event, for ScheduledChange.
		Code string
		// Exhausts: EC2 has no capacity left in the pool from which it reclaims an instance.
		Exhausts bool
	}
	// ChaosStatement breaks a part of the sandbox for a while. The script goes on meanwhile.
	ChaosStatement struct {
		Fault chaos.Fault
		For   time.Duration
		Seed  uint64
	}
	// CancelStatement makes AWS cancel the scheduled events of nodes.
	CancelStatement struct{ Nodes []string }
	// UserActionStatement writes an operator's decision about a node's interruption, as `lifeboat
	// approve`, `hold` and `release` do.
	UserActionStatement struct {
		Act  UserAction
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
	RulesStandard RuleSet = "standard" // the rules that Lifeboat needs
	RulesNone     RuleSet = "none"
	RulesFrom     RuleSet = "from" // a file of the archive
)

// LifeboatAct is an action on lifeboatd.
type LifeboatAct string

// The acts.
const (
	LifeboatOn   LifeboatAct = "on"
	LifeboatOff  LifeboatAct = "off"
	LifeboatKill LifeboatAct = "kill" // kill -9; it restarts, as in a Deployment
)

// KarpenterAct is an action on Karpenter.
type KarpenterAct string

// The acts.
const (
	KarpenterOn   KarpenterAct = "on"
	KarpenterOff  KarpenterAct = "off"
	KarpenterKill KarpenterAct = "kill" // kill -9; it restarts, as in a Deployment
)

// InterruptKind is what AWS does.
type InterruptKind string

// The kinds.
const (
	SpotInterruption InterruptKind = "spot"
	Rebalance        InterruptKind = "rebalance"
	ScheduledChange  InterruptKind = "scheduled" // AWS schedules an event, in Health and EC2
	FailedStatus     InterruptKind = "status"    // its status checks have failed for ten minutes
)

// UserAction is an action of a user.
type UserAction string

// The actions.
const (
	UserApprove UserAction = "approve"
	UserHold    UserAction = "hold"
	UserRelease UserAction = "release"
)

// Via is how an interruption is produced.
type Via string

// The ways.
const (
	ViaEC2   Via = "ec2"   // EC2 reclaims the instance, or schedules the event
	ViaFIS   Via = "fis"   // an experiment of the Fault Injection Service
	ViaQueue Via = "queue" // only the message, directly to the queue: a drill, no machine loses power
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
	FromDeadline Anchor = "deadline" // the deadline of that notice
	FromWindow   Anchor = "window"   // when the window of ${cron …} opens
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
