package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

var nameFormat = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func (p *parser) node(args []string) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a node needs a name")
	}
	n := NodeStatement{Name: args[0], Type: "m5.large"}
	if !nameFormat.MatchString(n.Name) {
		return nil, fmt.Errorf("node name %q is not lower-case letters, digits and -", n.Name)
	}
	if p.nodes[n.Name] {
		return nil, fmt.Errorf("there is a node %s already", n.Name)
	}
	err := options(args[1:], map[string]func(string) error{
		"type":      set(&n.Type),
		"zone":      set(&n.Zone),
		"labels":    set(&n.Labels),
		"taints":    set(&n.Taints),
		"spot":      flag(func() { n.Spot = true }),
		"on-demand": flag(func() { n.Spot = false }),
	})
	p.nodes[n.Name] = true
	return n, err
}

func (p *parser) apply(args []string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("apply takes one file")
	}
	return ApplyStatement{File: args[0]}, p.needFile(args[0])
}

func (p *parser) needFile(name string) error {
	if _, ok := p.scenario.Files[name]; !ok {
		return fmt.Errorf("there is no file %q in the archive: add it with the line -- %s --", name, name)
	}
	return nil
}

func (p *parser) rules(args []string) (any, error) {
	switch {
	case len(args) == 1 && (args[0] == string(RulesStandard) || args[0] == string(RulesNone)):
		return RulesStatement{Set: RuleSet(args[0])}, nil
	case len(args) == 2 && args[0] == string(RulesFrom):
		return RulesStatement{Set: RulesFrom, File: args[1]}, p.needFile(args[1])
	default:
		return nil, fmt.Errorf("unknown rules %q", strings.Join(args, " "))
	}
}

func (p *parser) lifeboat(args []string) (any, error) {
	if len(args) == 1 {
		switch act := LifeboatAct(args[0]); act {
		case LifeboatOn, LifeboatOff, LifeboatKill:
			return LifeboatStatement{Do: act}, nil
		}
	}
	if len(args) == 2 && args[0] == string(LifeboatOn) {
		if sources, ok := strings.CutPrefix(args[1], "sources="); ok && sources != "" {
			return LifeboatStatement{Do: LifeboatOn, Sources: sources}, nil
		}
	}
	return nil, fmt.Errorf("unknown act %q", strings.Join(args, " "))
}

func (p *parser) agents(args []string) (any, error) {
	if len(args) == 1 && (args[0] == "on" || args[0] == "off") {
		return AgentsStatement{On: args[0] == "on"}, nil
	}
	return nil, fmt.Errorf("unknown act %q", strings.Join(args, " "))
}

func (p *parser) interrupt(args []string) (any, error) {
	st := InterruptStatement{Kind: SpotInterruption, Via: ViaEC2, Notice: defaultNotice}
	for len(args) > 0 && !strings.Contains(args[0], "=") {
		if err := p.known(args[0]); err != nil {
			return nil, err
		}
		st.Nodes, args = append(st.Nodes, args[0]), args[1:]
	}
	if len(st.Nodes) == 0 {
		return nil, fmt.Errorf("interrupt takes at least one node")
	}
	if p.clock {
		return nil, fmt.Errorf("the clock runs already: a scenario has one interrupt, of one or more nodes")
	}
	err := options(args, map[string]func(string) error{
		"kind":   oneOf(&st.Kind, SpotInterruption, Rebalance),
		"via":    oneOf(&st.Via, ViaEC2, ViaFIS, ViaQueue),
		"notice": duration(&st.Notice),
	})
	p.clock, p.deadline = true, st.Kind == SpotInterruption
	if err != nil {
		return nil, err
	}
	return st, st.check()
}

// check refuses what AWS could not do.
func (st InterruptStatement) check() error {
	switch {
	case st.Kind == Rebalance && st.Via == ViaFIS:
		return fmt.Errorf("FIS sends the recommendation only together with an interruption: leave via=fis out")
	case st.Kind == Rebalance && st.Notice != defaultNotice:
		return fmt.Errorf("a rebalance recommendation has no deadline: leave notice out")
	case st.Via == ViaFIS && (st.Notice < 2*time.Minute || st.Notice > 15*time.Minute):
		return fmt.Errorf("FIS interrupts after 2m to 15m, not %s", st.Notice)
	default:
		return nil
	}
}

func (p *parser) known(node string) error {
	if p.nodes[node] {
		return nil
	}
	return fmt.Errorf("there is no node %q yet: begin with node %s", node, node)
}

func (p *parser) wait(args []string) (any, error) {
	st := CheckStatement{Mode: CheckWait, Within: time.Minute}
	if n := len(args); n >= 2 && args[n-2] == "within" {
		if err := duration(&st.Within)(args[n-1]); err != nil {
			return nil, err
		}
		args = args[:n-2]
	}
	var err error
	st.Cond, err = p.condition(args)
	return st, err
}

func (p *parser) expect(args []string) (any, error) {
	cond, err := p.condition(args)
	return CheckStatement{Mode: CheckNow, Cond: cond}, err
}

func (p *parser) at(args []string) (any, error) { return p.timed(CheckAt, args) }
func (p *parser) by(args []string) (any, error) { return p.timed(CheckBy, args) }

func (p *parser) timed(mode CheckMode, args []string) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a moment is missing")
	}
	when, err := p.when(args[0])
	if err != nil {
		return nil, err
	}
	cond, err := p.condition(args[1:])
	return CheckStatement{Mode: mode, When: when, Cond: cond}, err
}

func (p *parser) until(args []string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("until takes one moment")
	}
	when, err := p.when(args[0])
	return UntilStatement{Until: when}, err
}

func (p *parser) when(text string) (When, error) {
	if !p.clock {
		return When{}, fmt.Errorf("the clock starts with interrupt; before it there is no %s", text)
	}
	w, err := parseWhen(text)
	if err == nil && w.FromDeadline && !p.deadline {
		return w, fmt.Errorf("a rebalance recommendation has no deadline: write the time since the notice, such as 30s")
	}
	return w, err
}
