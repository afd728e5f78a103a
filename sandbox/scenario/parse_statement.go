package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

var nameFormat = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func (p *parser) node(args []string) (any, error) {
	n := NodeStatement{Type: "m5.large"}
	for len(args) > 0 && (len(n.Names) == 0 || !isOption(args[0])) {
		if err := p.newNode(args[0]); err != nil {
			return nil, err
		}
		n.Names, args = append(n.Names, args[0]), args[1:]
	}
	if len(n.Names) == 0 {
		return nil, fmt.Errorf("a node needs a name")
	}
	return n, options(args, map[string]func(string) error{
		"type":      set(&n.Type),
		"zone":      set(&n.Zone),
		"labels":    set(&n.Labels),
		"taints":    set(&n.Taints),
		"spot":      flag(func() { n.Spot = true }),
		"on-demand": flag(func() { n.Spot = false }),
	})
}

// newNode registers the name of a new node.
func (p *parser) newNode(name string) error {
	switch {
	case !nameFormat.MatchString(name):
		return fmt.Errorf("node name %q is not lower-case letters, digits and -", name)
	case p.nodes[name]:
		return fmt.Errorf("there is a node %s already", name)
	}
	p.nodes[name] = true
	return nil
}

// isOption reports whether a word is an option of node, and not another name.
func isOption(word string) bool {
	return strings.Contains(word, "=") || word == "spot" || word == "on-demand"
}

func (p *parser) apply(args []string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("apply takes one file")
	}
	st := ApplyStatement{File: args[0]}
	if err := p.needFile(st.File); err != nil {
		return nil, err
	}
	_, opens, err := fillIn(p.scenario.Files[st.File], time.Time{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("file %s: %w", st.File, err)
	case !opens.IsZero() && p.window:
		return nil, fmt.Errorf("file %s: a scenario has at most one window, and this is the second", st.File)
	case !opens.IsZero():
		p.window = true
	}
	return st, nil
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
	if len(args) < 2 || args[0] != string(LifeboatOn) {
		return nil, fmt.Errorf("unknown act %q", strings.Join(args, " "))
	}
	st := LifeboatStatement{Do: LifeboatOn}
	known := map[string]func(string) error{}
	for _, name := range []string{"sources", "status-interval", "status-threshold", "autoscaling-interval"} {
		known[name] = func(v string) error {
			st.Args = append(st.Args, "--"+name+"="+v)
			return needValue(v)
		}
	}
	return st, options(args[1:], known)
}

func (p *parser) agents(args []string) (any, error) {
	if len(args) == 1 && (args[0] == "on" || args[0] == "off") {
		return AgentsStatement{On: args[0] == "on"}, nil
	}
	return nil, fmt.Errorf("unknown act %q", strings.Join(args, " "))
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
	if len(args) == 3 && args[0] == "node" && args[2] == launched {
		return NamedStatement{Name: args[1], Within: st.Within}, p.launchedNode(args[1])
	}
	var err error
	st.Cond, err = p.condition(args)
	return st, err
}

func (p *parser) expect(args []string) (any, error) {
	cond, err := p.condition(args)
	return CheckStatement{Mode: CheckNow, Cond: cond}, err
}

func (p *parser) always(args []string) (any, error) {
	cond, err := p.condition(args)
	return AlwaysStatement{Cond: cond}, err
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
	if when.From == FromJob {
		return nil, errJob
	}
	cond, err := p.condition(args[1:])
	return CheckStatement{Mode: mode, When: when, Cond: cond}, err
}

func (p *parser) until(args []string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("until takes one moment")
	}
	when, err := p.when(args[0])
	if err == nil && when.From == FromJob {
		err = errJob
	}
	return UntilStatement{Until: when}, err
}

// errJob: the completion time of a Job is unknown beforehand.
var errJob = errors.New("a moment cannot be counted from job here: write wait job NAME complete, or pod NAME asked after job")

func (p *parser) when(text string) (When, error) {
	w, err := parseWhen(text)
	switch {
	case err != nil && p.clock:
		return w, err
	case err == nil && w.From == FromWindow:
		if !p.window {
			return w, fmt.Errorf("no window opens: apply a file with ${cron +20s} before")
		}
	case !p.clock:
		return w, fmt.Errorf("the clock starts with interrupt; before it there is no %s", text)
	case w.From == FromDeadline && !p.deadline:
		return w, fmt.Errorf("a notice of this kind has no deadline: write the time since the notice, such as 30s")
	}
	return w, nil
}
