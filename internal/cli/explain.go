package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const explainHelp = `Show which policy and which rule apply to a node, why the others do not, and the
consequences: the action, whether a person must approve it, and when it starts. It
also shows how many nodes are drained at a time, how pods are moved, which hooks
run, and which notifications are sent.

If the node has an interruption, the command explains that one. Otherwise, or with
--kind, it supposes that a notice arrives now. Use plan to see each pod.`

func newExplain(s *session) *cobra.Command {
	var f whatIf
	cmd := &cobra.Command{
		Use:   "explain NODE|INSTANCE",
		Short: "Show which policy and rule apply to a node, and why",
		Long:  explainHelp,
		Example: `  lifeboat explain ip-10-0-1-5.ec2.internal
  lifeboat explain ip-10-0-1-5.ec2.internal --kind scheduled --event-type-code instance-stop --in 12d
  lifeboat explain ip-10-0-1-5.ec2.internal -o json | jq -r '.considered[] | select(.rules) | .policy'`,
		Args: arguments(1, 1, "one node or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.explain(cmd.Context(), f, args[0])
		},
	}
	f.register(cmd)
	return cmd
}

// explained is the output of `explain`.
type explained struct {
	Node          string            `json:"node"`
	InstanceID    string            `json:"instanceID,omitempty"`
	Supposed      bool              `json:"supposed"`
	Kind          string            `json:"kind,omitempty"`
	EventTypeCode string            `json:"eventTypeCode,omitempty"`
	Phase         v1beta1.Phase     `json:"phase,omitempty"`
	Decision      v1beta1.Decision  `json:"decision"`
	Deadline      *v1beta1.Deadline `json:"deadline,omitempty"`
	// Begins is when the action starts, if not now.
	Begins *time.Time `json:"begins,omitempty"`
	// AwaitsApproval is true if a person must approve first and has not.
	// Approval describes the state of the approval, Hold the hold in force.
	AwaitsApproval bool   `json:"awaitsApproval"`
	Approval       string `json:"approval,omitempty"`
	Hold           string `json:"hold,omitempty"`
	// Paused says which pause stops the action.
	Paused string `json:"paused,omitempty"`
	// Replacement is the progress of the replacement capacity, if the policy
	// wants one.
	Replacement *v1beta1.ReplacementStatus `json:"replacement,omitempty"`
	// DoNotDisrupt says how a pod's do-not-disrupt annotation is treated.
	DoNotDisrupt v1beta1.DoNotDisrupt `json:"doNotDisrupt,omitempty"`
	Budget       *limit               `json:"budget,omitempty"`
	Terminations *limit               `json:"terminations,omitempty"`
	Workloads    []string             `json:"workloads,omitempty"`
	Hooks        []string             `json:"hooks,omitempty"`
	// LoadBalancers says for how long pods wait for them at most.
	LoadBalancers string   `json:"loadBalancers,omitempty"`
	Notifications []string `json:"notifications,omitempty"`
	// Karpenter are the settings of its NodeClaim and NodePool; nil: it is not Karpenter's.
	Karpenter *karpenterSettings `json:"karpenter,omitempty"`
	karpenter []string           // what they mean
	// Considered lists every policy and rule that was checked, in order.
	Considered []considered `json:"considered"`
}

// considered is a policy, or one of its rules, that was checked.
type considered struct {
	// Policy is empty for the built-in defaults. Rule is empty if the reason is
	// about the whole policy.
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Rules  bool   `json:"rules"`
	Reason string `json:"reason"`
}

func (s *session) explain(ctx context.Context, f whatIf, arg string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	w, err := s.observe(ctx, c, f, arg)
	if err != nil {
		return err
	}
	s.warnOfSkew(ctx, c)
	e := w.explain(s)
	d, _ := w.decide()
	e.Karpenter = c.karpenterOf(ctx, w)
	e.karpenter = e.Karpenter.lines(d.DoNotDisrupt, w.now)
	if s.isJSON() {
		return s.writeJSON(e)
	}
	e.write(s.out, w.now)
	return nil
}

// explain collects the consequences of the decision.
func (w *observed) explain(s *session) explained {
	e := explained{Node: w.name(), InstanceID: w.instanceID(), Supposed: w.supposed, Considered: []considered{}}
	if w.record != nil && !w.supposed {
		e.Phase = w.record.Status.Phase
	}
	d, ok := w.decide()
	if !ok {
		e.Decision.Message = "all notices are withdrawn or handled"
		return e
	}
	e.Kind, e.EventTypeCode, e.Decision, e.Deadline = d.Notice.Kind, d.Notice.EventTypeCode, d.Decision, d.Deadline
	if w.pause != nil {
		e.Paused = record.PauseGate(w.pause).Why
	}
	if begins := w.begins(d); begins.After(w.now) {
		e.Begins = &begins
	}
	e.Approval, e.Hold, e.Replacement = w.approvalLine(s, d), w.holdLine(), w.replacementStatus(d)
	e.AwaitsApproval = d.AwaitsApproval && d.Begun.IsZero()
	e.Budget, e.Terminations = w.budget(d), w.terminations(d)
	if record.Drains(d.Action) {
		e.DoNotDisrupt, e.LoadBalancers = d.DoNotDisrupt, w.loadBalancersLine(d)
		for i := range d.Workloads {
			e.Workloads = append(e.Workloads, workloadLine(i, &d.Workloads[i]))
		}
		for i := range d.Hooks {
			e.Hooks = append(e.Hooks, w.hookLine(&d.Hooks[i]))
		}
	}
	for i := range d.Notifications {
		e.Notifications = append(e.Notifications, notificationLine(&d.Notifications[i]))
	}
	for _, c := range d.Considered {
		e.Considered = append(e.Considered, considered{Policy: c.Policy, Rule: c.Rule, Rules: c.Rules, Reason: c.Reason})
	}
	return e
}

// explainIndent is the column where the values start.
const explainIndent = 16

// write prints the explanation for people.
func (e explained) write(s terminal.Stream, now time.Time) {
	head := planned{Node: e.Node, InstanceID: e.InstanceID, Supposed: e.Supposed, Kind: e.Kind, EventTypeCode: e.EventTypeCode}
	head.writeTitle(s)
	fact := func(label, text string) {
		if text != "" {
			s.Fact(explainIndent, label, terminal.Plain, text)
		}
	}
	fact("phase", string(e.Phase))
	fact("decision", e.Decision.Message)
	if e.Deadline != nil {
		fact("deadline", deadlineLine(e.Deadline, now))
	}
	if e.AwaitsApproval {
		s.Fact(explainIndent, "approval", terminal.Warn, e.Approval)
	} else {
		fact("approval", e.Approval)
	}
	if e.Begins != nil {
		fact("starts", fmt.Sprintf("%s, at %s", terminal.Relative(*e.Begins, now), formatClock(*e.Begins, now)))
	}
	if e.Paused != "" {
		s.Fact(explainIndent, "paused", terminal.Warn, e.Paused)
	}
	fact("held", e.Hold)
	fact("strategy", string(e.Decision.Strategy))
	fact("replacement", replacementLine(e.Decision.Replacement, e.Replacement))
	fact("do-not-disrupt", string(e.DoNotDisrupt))
	if e.Budget != nil {
		fact("budget", e.Budget.String())
	}
	if e.Terminations != nil {
		fact("terminations", e.Terminations.String())
	}
	fact("load balancers", e.LoadBalancers)
	for label, lines := range e.lists() {
		for _, line := range lines {
			fact(label, line)
			label = ""
		}
	}
	e.writeConsidered(s)
}

// lists yields the facts that can have several values, in order.
func (e explained) lists() func(yield func(string, []string) bool) {
	return func(yield func(string, []string) bool) {
		_ = yield("workloads", e.Workloads) && yield("hooks", e.Hooks) && yield("notifications", e.Notifications) && yield("karpenter", e.karpenter)
	}
}

func (e explained) writeConsidered(s terminal.Stream) {
	if len(e.Considered) == 0 {
		return
	}
	s.Printf("\nChecked, in this order:\n")
	table := terminal.NewTable("POLICY", "RULE")
	for _, c := range e.Considered {
		style := terminal.Dim
		if c.Rules {
			style = terminal.Good
		}
		name := c.Policy
		if name == "" {
			name = "(default)"
		}
		table.Row(terminal.Cell{Text: name, Style: style}, terminal.Cell{Text: c.Rule, Style: style})
		table.Under(terminal.Cell{Text: c.Reason, Style: style})
	}
	table.Write(s)
}
