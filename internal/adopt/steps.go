package adopt

import (
	"fmt"
	"strings"
)

// CutOver plans that Karpenter receives no more notices.
func CutOver(f Facts) Plan {
	all := Plan{receive(f)}
	if f.Polls {
		all = append(all, polls(f))
	}
	return append(all, queueOff(f), rulesOff(f))
}

// Back plans that Karpenter receives notices again. Lifeboat receives them until then.
func Back(f Facts) Plan {
	all := Plan{rulesOn(f), queueOn(f)}
	if f.Guard {
		all = append(all, Step{
			ID: StepGuard, State: Optional, Title: "turn the guard off",
			Why:      []string{"Until then Karpenter may not delete NodeClaims whose policy delays or refuses that"},
			Commands: []string{"helm upgrade lifeboat … --namespace lifeboat-system --reuse-values --set karpenter.guard.enabled=false"},
		})
	}
	leave := Step{
		ID: StepLeave, State: Optional, Title: "stop Lifeboat, not before the steps above are done",
		Why:      []string{"Until then both programs receive notices. Karpenter deletes the NodeClaim, and Lifeboat writes the deadline to it"},
		Commands: []string{"helm upgrade lifeboat … --namespace lifeboat-system --reuse-values --set mode=Observe"},
	}
	if len(f.Open) > 0 {
		leave.Why = append(leave.Why, "Wait until these interruptions are completed. Karpenter's queue keeps messages for some minutes only, so it may never learn of them: "+
			strings.Join(f.Open, ", "))
	}
	return append(all, leave)
}

func receive(f Facts) Step {
	s := Step{ID: StepReceive, State: Done, Title: "Lifeboat receives the notices and acts on them"}
	if len(f.Unready) > 0 {
		s.State, s.Why = Blocked, f.Unready
	}
	return s
}

// denied is the permission that Karpenter's polls need.
const denied = "ec2:DescribeInstanceStatus"

// polls is the step about Karpenter's polls, which have no setting.
func polls(f Facts) Step {
	s := Step{ID: StepPolls, State: Optional, Title: "stop Karpenter's status polls, or turn on the guard"}
	if f.Guard {
		return Step{ID: StepPolls, State: Done, Title: "the guard keeps nodes whose policy delays or refuses a drain"}
	}
	s.Why = []string{
		"From v1.12 on Karpenter polls EC2, and deletes the nodes of all scheduled events. It has no setting for that",
		"Whether its role lacks the permission " + denied + " already is not known",
	}
	if len(f.Defeated) > 0 {
		s.Why = append(s.Why, "With it, Karpenter defeats "+strings.Join(f.Defeated, ", "))
	}
	if f.Tool == Terraform {
		s.Lines = []string{
			`# in the module karpenter`,
			`iam_policy_statements = [{`,
			`  sid       = "NoStatusPolls"`,
			`  effect    = "Deny"`,
			`  actions   = ["` + denied + `"]`,
			`  resources = ["*"]`,
			`}]`,
		}
	} else {
		s.Commands = append(s.Commands, `aws iam put-role-policy --role-name ROLE-OF-KARPENTER --policy-name no-status-polls --policy-document `+
			`'{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"`+denied+`","Resource":"*"}]}'`)
	}
	s.Commands = append(s.Commands,
		fmt.Sprintf("kubectl --namespace %s rollout restart deployment/%s  # after a change of the role", f.Karpenter.Namespace, f.Karpenter.Name),
		"helm upgrade lifeboat … --namespace lifeboat-system --reuse-values --set karpenter.guard.enabled=true  # instead of both")
	return s
}

func queueOff(f Facts) Step {
	k := f.Karpenter
	if k.Queue == "" {
		s := Step{ID: StepQueue, State: Done, Title: "Karpenter reads no queue"}
		if !k.RolledOut {
			s.State, s.Title = Change, "wait until Karpenter runs without a queue"
		}
		return s
	}
	if f.Forwards && f.RulesUnread == "" && len(f.Rules) == 0 {
		return Step{ID: StepQueue, State: Done, Title: "Karpenter reads the queue " + k.Queue + ", to which only Lifeboat sends"}
	}
	return f.set("", Step{ID: StepQueue, Title: "Karpenter stops reading the queue " + k.Queue})
}

func queueOn(f Facts) Step {
	k := f.Karpenter
	switch {
	case k.Queue != "" && k.RolledOut:
		return Step{ID: StepQueue, State: Done, Title: "Karpenter reads the queue " + k.Queue}
	case k.Queue != "":
		return Step{ID: StepQueue, State: Change, Title: "wait until Karpenter reads the queue " + k.Queue}
	case k.Was == "":
		return Step{
			ID: StepQueue, State: Blocked, Title: "Karpenter reads its queue again",
			Why: []string{"The name of its queue is not known: add --queue NAME"},
		}
	}
	return f.set(k.Was, Step{ID: StepQueue, Title: "Karpenter reads the queue " + k.Was + " again"})
}

// set completes the step that sets Karpenter's queue.
func (f Facts) set(queue string, s Step) Step {
	k := f.Karpenter
	if k.Elsewhere != "" && f.Tool == Kubectl {
		s.State = Manual
		s.Why = []string{"The setting is " + k.Elsewhere + ", which this command does not change"}
		s.Commands = []string{fmt.Sprintf("kubectl --namespace %s edit deployment %s", k.Namespace, k.Name)}
		return s
	}
	switch f.Tool {
	case Helm:
		s.State = Manual
		s.Commands = []string{"helm " + strings.Join(f.HelmArgs(queue), " ")}
		s.Lines = []string{"# in the values of Karpenter's chart", "settings:", fmt.Sprintf("  interruptionQueue: %q", queue)}
		s.Why = []string{"Keep the line in your values file, or a later upgrade of the chart undoes it"}
	case Terraform:
		s.State = Manual
		s.Commands = []string{"terraform apply"}
		if queue == "" {
			s.Lines = []string{`# in the values of the helm_release of Karpenter`, `settings:`, `  interruptionQueue: ""`}
			s.Why = []string{"Leave enable_spot_termination of the module as it is in this apply: it deletes the queue that Karpenter still reads"}
			break
		}
		s.Lines = []string{
			`# in the values of the helm_release of Karpenter`, `settings:`,
			`  interruptionQueue: ${module.karpenter.queue_name}`,
		}
	default:
		s.State = Change
		s.Why = []string{"Its Deployment gets INTERRUPTION_QUEUE=" + queue + ", and its pods restart"}
	}
	return s
}

// HelmArgs are the arguments of Helm that set Karpenter's queue.
func (f Facts) HelmArgs(queue string) []string {
	args := []string{"upgrade", f.Karpenter.Release, f.Chart, "--namespace", f.Karpenter.Namespace, "--reuse-values"}
	if f.Karpenter.Version != "" {
		args = append(args, "--version", f.Karpenter.Version)
	}
	return append(args, "--set-string", "settings.interruptionQueue="+queue)
}

func rulesOff(f Facts) Step {
	s := Step{ID: StepRules, State: Optional, Title: "delete Karpenter's queue and its rules, once you want no way back"}
	switch {
	case f.RulesUnread != "":
		s.Why = []string{"The rules could not be read: " + f.RulesUnread}
	case len(f.Rules) == 0:
		return Step{ID: StepRules, State: Done, Title: "no rule sends spot interruptions to a queue of Karpenter"}
	default:
		s.Why = []string{"Rules: " + strings.Join(f.Rules, ", "), "Without a reader they do no harm: the queue drops messages after some minutes"}
	}
	if f.Tool == Terraform {
		s.Lines = []string{"# in the module karpenter, in a later apply", "enable_spot_termination = false"}
	}
	return s
}

func rulesOn(f Facts) Step {
	s := Step{ID: StepRules, State: Done, Title: "rules send spot interruptions to Karpenter's queue"}
	switch {
	case f.RulesUnread != "":
		s.State, s.Why = Blocked, []string{"The rules could not be read: " + f.RulesUnread}
	case len(f.Rules) == 0:
		s.State, s.Why = Blocked, []string{"No rule does, so Karpenter would receive nothing. Create its queue and rules again"}
		if f.Tool == Terraform {
			s.Lines = []string{"# in the module karpenter", "enable_spot_termination = true"}
		}
	default:
		s.Why = []string{"Rules: " + strings.Join(f.Rules, ", ")}
	}
	return s
}
