package adopt

import "slices"

// Tool is what changes Karpenter's settings.
type Tool string

// The tools.
const (
	// Kubectl: the Deployment itself is changed. Nothing else keeps it.
	Kubectl Tool = "kubectl"
	// Helm: the values of Karpenter's chart have the setting.
	Helm Tool = "helm"
	// Terraform: a helm_release has the setting, and the module karpenter of
	// terraform-aws-modules/eks has the queue, its rules and the role.
	Terraform Tool = "terraform"
)

// Tools returns all tools.
func Tools() []Tool { return []Tool{Kubectl, Helm, Terraform} }

// Deployment is Karpenter's, with what decides about its queue.
type Deployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
	// Release is that of Helm; empty: Helm did not install it.
	Release string `json:"release,omitempty"`
	// Queue is the name of the queue that it reads; empty: it reads none.
	Queue string `json:"queue"`
	// Was is the queue that it read before the cut-over; empty: not known.
	Was string `json:"was,omitempty"`
	// Elsewhere says where the setting is if it is not a value of the environment.
	Elsewhere string `json:"-"`
	// RolledOut is true if its pods run with the setting.
	RolledOut bool `json:"rolledOut"`
}

// Facts are the input of a plan.
type Facts struct {
	Karpenter Deployment
	Tool      Tool
	// Chart is the name of Karpenter's chart for Helm.
	Chart string
	// Unready are the reasons why Lifeboat would miss notices, or would not act on them; empty: it receives them.
	Unready []string
	// Polls is true if this version of Karpenter polls the status of instances.
	Polls bool
	// Guard is true if Karpenter may not delete NodeClaims whose policy delays or refuses that.
	Guard bool
	// Defeated are the policies that Karpenter defeats with its polls.
	Defeated []string
	// Rules are the rules that send spot interruptions to Karpenter's queue.
	Rules []string
	// RulesUnread says why the rules could not be read; empty: they were.
	RulesUnread string
	// Open are the Interruptions that are not completed.
	Open []string
	// Forwards is true if Lifeboat puts messages on Karpenter's queue.
	Forwards bool
}

// State is what remains to be done of a step.
type State string

// The states.
const (
	// Done: the step needs nothing.
	Done State = "done"
	// Change: apply or undo makes the change.
	Change State = "change"
	// Manual: a person makes the change, with the commands or lines of the step.
	Manual State = "manual"
	// Optional: a person may make the change, then or later.
	Optional State = "optional"
	// Blocked: the steps after it would be unsafe.
	Blocked State = "blocked"
)

// Step is one step, in the order in which it is safe.
type Step struct {
	// ID is stable.
	ID    string `json:"id"`
	State State  `json:"state"`
	Title string `json:"title"`
	// Why are reasons and consequences, a sentence each.
	Why []string `json:"why,omitempty"`
	// Commands are for a shell, and Lines for a file.
	Commands []string `json:"commands,omitempty"`
	Lines    []string `json:"lines,omitempty"`
}

// The ids of the steps.
const (
	StepReceive = "lifeboat-receives"
	StepPolls   = "karpenter-polls"
	StepQueue   = "karpenter-queue"
	StepRules   = "karpenter-rules"
	StepGuard   = "guard"
	StepLeave   = "lifeboat-leaves"
)

// Plan is a list of steps. Each is safe once the ones before it are done.
type Plan []Step

// Blocked returns the steps that make the others unsafe.
func (p Plan) Blocked() []Step { return p.in(Blocked) }

// Remains reports whether a change is left that the plan needs.
func (p Plan) Remains() bool { return len(p.in(Change))+len(p.in(Manual))+len(p.in(Blocked)) > 0 }

// Step returns the step with this id.
func (p Plan) Step(id string) (Step, bool) {
	i := slices.IndexFunc(p, func(s Step) bool { return s.ID == id })
	if i < 0 {
		return Step{}, false
	}
	return p[i], true
}

func (p Plan) in(state State) []Step {
	return slices.DeleteFunc(slices.Clone(p), func(s Step) bool { return s.State != state })
}
