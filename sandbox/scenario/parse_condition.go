package scenario

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// conditionUsage lists the forms of a condition.
const conditionUsage = `pods ready | pods lost=0 cut=0 whole>=2 | pods web-* ready>=1 leaving<=1 | every pod whole | some pod lost | no pod asked | ` +
	`pod web-* whole | pod web-* owned | pod web-* unowned | pod web-* asked after 60s | pod web-* grace<=110 | node a cordoned | node a pods=4 | nodes draining<=1 | deployments serving | deployments available | ` +
	`instances=1 | launched=2 | claims=1 | group web in-service=2 warm=1 | instance a is Warmed:Stopped | instance a was Pending:Wait | instance a answered=2 | every hook of web answered | nodegroup web ready | job NAME complete | record a none | record a phase=Ignored policy=team`

func (p *parser) condition(words []string) (Condition, error) {
	if len(words) == 1 {
		if what, op, n, err := bound(words[0], ""); err == nil {
			return p.machinesCondition(what, op, n)
		}
	}
	if len(words) < 2 {
		return nil, fmt.Errorf("a condition is missing: %s", conditionUsage)
	}
	parse, ok := conditions()[words[0]]
	if !ok {
		return nil, fmt.Errorf("unknown condition %q: there are %s", words[0], conditionUsage)
	}
	return parse(p, words[1:])
}

// conditions has a parser for each first word of a condition.
func conditions() map[string]func(p *parser, rest []string) (Condition, error) {
	plain := func(parse func([]string) (Condition, error)) func(*parser, []string) (Condition, error) {
		return func(_ *parser, rest []string) (Condition, error) { return parse(rest) }
	}
	return map[string]func(*parser, []string) (Condition, error){
		"pods": plain(podsCondition), "nodes": plain(nodesCondition), "job": plain(jobCondition), "deployment": plain(deploymentCondition), "deployments": plain(deploymentsCondition),
		"pod": (*parser).podCondition, "node": (*parser).nodeCondition, "record": (*parser).recordCondition,
		"group": (*parser).groupCondition, "instance": (*parser).instanceCondition, "nodegroup": (*parser).nodeGroupCondition,
		"every": quantity("every"), "some": quantity("some"), "no": quantity("no"),
	}
}

// quantity reads conditions such as "every pod whole" and "every hook of web answered".
func quantity(word string) func(*parser, []string) (Condition, error) {
	return func(p *parser, rest []string) (Condition, error) {
		if word == "every" && rest[0] == "hook" {
			return p.hooksCondition(rest)
		}
		if len(rest) != 2 || rest[0] != "pod" {
			return nil, fmt.Errorf("%s goes with pod and a verdict, as in %s pod whole", word, word)
		}
		verdict, err := parseVerdict(rest[1])
		return quantified{Quantity: word, Verdict: verdict}, err
	}
}

var countFormat = regexp.MustCompile(`^([a-z-]+)(=|>=|<=)([0-9]{1,6})$`)

// bound reads a word such as lost=0: the counted item, the comparison and the number.
func bound(word, example string) (what, op string, n int, err error) {
	m := countFormat.FindStringSubmatch(word)
	if m == nil {
		return "", "", 0, fmt.Errorf("%q is no count: write one such as %s", word, example)
	}
	n, err = strconv.Atoi(m[3])
	if err != nil {
		return "", "", 0, fmt.Errorf("reading %q: %w", word, err)
	}
	return m[1], m[2], n, nil
}

func podsCondition(words []string) (Condition, error) {
	if len(words) == 1 && words[0] == "ready" {
		return podsReady{}, nil
	}
	var c counts
	example := "lost=0 or whole>=2, or ready"
	if !countFormat.MatchString(words[0]) && len(words) > 1 {
		c.Glob, words = words[0], words[1:]
		example = "lost=0 or ready>=1"
		if err := checkGlob(c.Glob); err != nil {
			return nil, err
		}
	}
	for _, w := range words {
		what, op, n, err := bound(w, example)
		if err != nil {
			return nil, err
		}
		if what == string(podReadyNow) && c.Glob != "" {
			c.Bounds = append(c.Bounds, count{podReadyNow, op, n})
			continue
		}
		verdict, err := parseVerdict(what)
		if err != nil {
			return nil, err
		}
		c.Bounds = append(c.Bounds, count{verdict, op, n})
	}
	return c, nil
}

func checkGlob(glob string) error {
	if _, err := path.Match(glob, ""); err != nil {
		return fmt.Errorf("%q is no pattern: write one such as web-*", glob)
	}
	return nil
}

func nodesCondition(words []string) (Condition, error) {
	if len(words) != 1 {
		return nil, fmt.Errorf("nodes goes with a count, as in nodes draining<=1")
	}
	what, op, n, err := bound(words[0], "draining<=1")
	if err != nil {
		return nil, err
	}
	c := nodesCount{Op: op, N: n}
	return c, oneOf(&c.State, nodeStates()...)(what)
}

func jobCondition(words []string) (Condition, error) {
	if len(words) != 2 {
		return nil, fmt.Errorf("job goes with a name and a state, as in job flush-* complete")
	}
	c := jobIs{Glob: words[0]}
	if err := checkGlob(c.Glob); err != nil {
		return nil, err
	}
	return c, oneOf(&c.State, jobRunning, jobComplete, jobFailed, jobNone)(words[1])
}

// asked is a further verdict of scripts: the pod was asked to stop, with any result.
const asked Verdict = "asked"

func parseVerdict(text string) (Verdict, error) {
	var v Verdict
	return v, oneOf(&v, Whole, Cut, Lost, Kept, Leaving, asked)(text)
}

func (p *parser) podCondition(words []string) (Condition, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("pod goes with a name and a verdict, as in pod web-* whole")
	}
	if err := checkGlob(words[0]); err != nil {
		return nil, err
	}
	if what, op, n, err := bound(words[1], "grace<=110"); len(words) == 2 && (what == "grace" || words[1] == "grace") {
		return podGrace{words[0], op, n}, err
	}
	if len(words) == 2 && (words[1] == "owned" || words[1] == "unowned") {
		return podOwned{words[0], words[1] == "owned"}, nil
	}
	return p.podIs(words[0], words[1], words[2:])
}

func (p *parser) podIs(glob, verdict string, rest []string) (Condition, error) {
	c := podIs{Glob: glob}
	var err error
	if c.Verdict, err = parseVerdict(verdict); err != nil {
		return nil, err
	}
	switch {
	case len(rest) == 0:
		return c, nil
	case len(rest) == 2 && c.Verdict == asked && (rest[0] == "before" || rest[0] == "after"):
		c.Relation = rest[0]
		c.When, err = p.when(rest[1])
		return c, err
	default:
		return nil, fmt.Errorf("%q is too much: only asked goes with before or after and a moment", strings.Join(rest, " "))
	}
}

func (p *parser) nodeCondition(words []string) (Condition, error) {
	if len(words) != 2 {
		return nil, fmt.Errorf("node goes with a name and a state, as in node a cordoned")
	}
	if err := p.known(words[0]); err != nil {
		return nil, err
	}
	if what, op, n, err := bound(words[1], ""); err == nil && what == "pods" {
		return nodePods{Node: words[0], Op: op, N: n}, nil
	}
	c := nodeIs{Node: words[0]}
	return c, oneOf(&c.State, nodeStates()...)(words[1])
}

func (p *parser) recordCondition(words []string) (Condition, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("record goes with a node and fields, as in record a phase=Ignored")
	}
	if err := p.known(words[0]); err != nil {
		return nil, err
	}
	c := recordIs{Node: words[0]}
	if len(words) == 2 && words[1] == "none" {
		c.None = true
		return c, nil
	}
	return c, options(words[1:], map[string]func(string) error{
		"phase":   set(&c.Phase),
		"action":  set(&c.Action),
		"policy":  set(&c.Policy),
		"kinds":   set(&c.Kinds),
		"sources": set(&c.Sources),

		"replacement": set(&c.Replacement),
		"wiring":      oneOf(&c.Wiring, wiringDegraded),
	})
}
