package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultHookTime is the default timeout of hooks in a scenario: longer than an answer should
	// take.
	defaultHookTime = 5 * time.Minute
	defaultMax      = 10
)

func (p *parser) group(args []string) (any, error) {
	g := GroupStatement{
		Type: "m5.large", Max: defaultMax, Desired: 1, Hooks: HooksBoth, Agent: AgentAnswers,
		LaunchTime: defaultHookTime, LeaveTime: defaultHookTime,
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("a group needs a name")
	}
	if err := p.newGroup(args[0]); err != nil {
		return nil, err
	}
	g.Name = args[0]
	zones := ""
	err := options(args[1:], map[string]func(string) error{
		"min":     wholeNumber(&g.Min),
		"max":     wholeNumber(&g.Max),
		"desired": wholeNumber(&g.Desired),
		"type":    set(&g.Type),
		"zones":   set(&zones),
		"labels":  set(&g.Labels),
		"taints":  set(&g.Taints),
		"spot":    flag(func() { g.Spot = true }),

		"rebalance":      flag(func() { g.Rebalance = true }),
		"warm":           wholeNumber(&g.Warm),
		"pool":           oneOf(&g.Pool, PoolStopped, PoolRunning, PoolHibernated),
		"reuse":          flag(func() { g.Reuse = true }),
		"hooks":          oneOf(&g.Hooks, HooksBoth, HooksLaunch, HooksTerminate, HooksNone),
		"launch-time":    duration(&g.LaunchTime),
		"terminate-time": duration(&g.LeaveTime),
		"boot":           duration(&g.Boot),
		"prepare":        duration(&g.Prepare),
		"declared":       flag(func() { g.Declared = true }),
		"agent":          oneOf(&g.Agent, AgentAnswers, AgentSilent, AgentNone),
	})
	if zones != "" {
		g.Zones = strings.Split(zones, ",")
	}
	if g.Warm > 0 && g.Pool == "" {
		g.Pool = PoolStopped
	}
	if err != nil {
		return nil, err
	}
	return g, g.check()
}

// check rejects what Auto Scaling rejects.
func (g GroupStatement) check() error {
	switch {
	case g.Min > g.Desired || g.Desired > g.Max:
		return fmt.Errorf("a group of min=%d max=%d cannot have desired=%d", g.Min, g.Max, g.Desired)
	case g.Reuse && g.Pool == "":
		return fmt.Errorf("only a group with a warm pool can reuse instances: write warm=1 too, or leave reuse out")
	case g.Prepare > 0 && g.Agent == AgentNone:
		return fmt.Errorf("the agent does the preparation: leave prepare out, or agent=none")
	default:
		return nil
	}
}

// newGroup registers the name of a new group.
func (p *parser) newGroup(name string) error {
	switch {
	case !nameFormat.MatchString(name):
		return fmt.Errorf("group name %q is not lower-case letters, digits and -", name)
	case p.groups[name]:
		return fmt.Errorf("there is a group %s already", name)
	}
	p.groups[name] = true
	return nil
}

func (p *parser) knownGroup(name string) error {
	if p.groups[name] {
		return nil
	}
	return fmt.Errorf("there is no group %q yet: begin with group %s", name, name)
}

// tick starts the clock without a deadline.
func (p *parser) tick() { p.clock, p.deadline = true, false }

func (p *parser) scale(args []string) (any, error) {
	if len(args) != 3 || args[1] != "to" {
		return nil, fmt.Errorf("scale takes a group and a number")
	}
	st := ScaleStatement{Group: args[0]}
	if err := p.knownGroup(st.Group); err != nil {
		return nil, err
	}
	p.tick()
	return st, wholeNumber(&st.To)(args[2])
}

func (p *parser) refresh(args []string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("refresh takes one group")
	}
	p.tick()
	return RefreshStatement{Group: args[0]}, p.knownGroup(args[0])
}

func (p *parser) balance(args []string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("balance takes one group")
	}
	p.tick()
	return BalanceStatement{Group: args[0]}, p.knownGroup(args[0])
}

func (p *parser) detach(args []string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("detach takes one node")
	}
	p.tick()
	return DetachStatement{Node: args[0]}, p.known(args[0])
}

func (p *parser) terminate(args []string) (any, error) {
	names, rest, err := p.nodeNames(args)
	if err != nil {
		return nil, err
	}
	if len(names) > 1 {
		return nil, fmt.Errorf("terminate takes one node")
	}
	p.tick()
	st := TerminateStatement{Node: names[0], By: ByEC2}
	err = options(rest, map[string]func(string) error{"by": oneOf(&st.By, ByEC2, ByGroup, ByAutoscaler)})
	if err == nil && st.By != ByEC2 && len(p.groups) == 0 {
		err = fmt.Errorf("there is no group: begin with one, or leave by=%s out", st.By)
	}
	return st, err
}

// wholeNumber reads a number that is not negative.
func wholeNumber(to *int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 1000 {
			return fmt.Errorf("%q is no number: write one from 0 to 1000", v)
		}
		*to = n
		return nil
	}
}

// groupCondition is about counts of a group, as in group web in-service=2.
func (p *parser) groupCondition(words []string) (Condition, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("group goes with a name and a count, as in group web in-service=2")
	}
	if err := p.knownGroup(words[0]); err != nil {
		return nil, err
	}
	c := groupCounts{Group: words[0]}
	for _, word := range words[1:] {
		what, op, n, err := bound(word, "in-service=2")
		if err != nil {
			return nil, err
		}
		one := groupCount{Op: op, N: n}
		if err := oneOf(&one.What, groupKinds()...)(what); err != nil {
			return nil, err
		}
		c.Bounds = append(c.Bounds, one)
	}
	return c, nil
}

// errInstance describes the conditions of instances.
var errInstance = errors.New("instance goes with a node and its state, as in instance a is Warmed:Stopped")

// instanceCondition is about the lifecycle state of an instance, now or earlier, or about the number
// of answers of its hooks.
func (p *parser) instanceCondition(words []string) (Condition, error) {
	if len(words) < 2 {
		return nil, errInstance
	}
	if err := p.known(words[0]); err != nil {
		return nil, err
	}
	if what, op, n, err := bound(words[1], ""); len(words) == 2 && err == nil && what == string(hooksAnswered) {
		return answerCount{words[0], op, n}, nil
	}
	if len(words) != 3 || words[1] != "is" && words[1] != "was" {
		return nil, errInstance
	}
	if !slices.Contains(lifecycleStates(), words[2]) {
		return nil, fmt.Errorf("unknown lifecycle state %q: write %s", words[2], orList(lifecycleStates()))
	}
	return instanceIs{Node: words[0], State: words[2], Was: words[1] == "was"}, nil
}

// nodeGroupCondition is about a condition of a NodeGroup.
func (p *parser) nodeGroupCondition(words []string) (Condition, error) {
	if len(words) != 2 {
		return nil, fmt.Errorf("nodegroup goes with a name and a condition, as in nodegroup web ready")
	}
	c := nodeGroupIs{Name: words[0]}
	return c, oneOf(&c.Condition, slices.Sorted(maps.Keys(nodeGroupConditions()))...)(words[1])
}

// hooksCondition is about all hooks of a group: every hook of web answered.
func (p *parser) hooksCondition(words []string) (Condition, error) {
	if len(words) != 4 || words[0] != "hook" || words[1] != "of" || words[3] != "answered" {
		return nil, fmt.Errorf("every hook goes with a group, as in every hook of web answered")
	}
	return hooksEnded{Group: words[2]}, p.knownGroup(words[2])
}
