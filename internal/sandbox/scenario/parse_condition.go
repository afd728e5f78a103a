package scenario

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// conditionUsage is what a condition may be.
const conditionUsage = `pods ready | pods lost=0 cut=0 whole>=2 | every pod whole | some pod lost | no pod asked | ` +
	`pod web-* whole | pod web-* asked after 60s | node a cordoned | node a pods=4 | record a none | record a phase=Ignored policy=team`

func (p *parser) condition(words []string) (Condition, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("a condition is missing: %s", conditionUsage)
	}
	rest := words[1:]
	switch words[0] {
	case "pods":
		return podsCondition(rest)
	case "every", "some", "no":
		if len(rest) != 2 || rest[0] != "pod" {
			return nil, fmt.Errorf("%s goes with pod and a verdict, as in %s pod whole", words[0], words[0])
		}
		verdict, err := parseVerdict(rest[1])
		return quantified{Quantity: words[0], Verdict: verdict}, err
	case "pod":
		return p.podCondition(rest)
	case "node":
		return p.nodeCondition(rest)
	case "record":
		return p.recordCondition(rest)
	default:
		return nil, fmt.Errorf("unknown condition %q: there are %s", words[0], conditionUsage)
	}
}

var countFormat = regexp.MustCompile(`^([a-z]+)(=|>=|<=)([0-9]{1,6})$`)

func podsCondition(words []string) (Condition, error) {
	if len(words) == 1 && words[0] == "ready" {
		return podsReady{}, nil
	}
	var c counts
	for _, w := range words {
		m := countFormat.FindStringSubmatch(w)
		if m == nil {
			return nil, fmt.Errorf("%q is no count: write one such as lost=0 or whole>=2, or ready", w)
		}
		verdict, err := parseVerdict(m[1])
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(m[3])
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", w, err)
		}
		c = append(c, count{verdict, m[2], n})
	}
	return c, nil
}

// asked is a verdict that a script may also name: the pod was asked to stop,
// whatever became of it.
const asked Verdict = "asked"

func parseVerdict(text string) (Verdict, error) {
	var v Verdict
	return v, oneOf(&v, Whole, Cut, Lost, Kept, Leaving, asked)(text)
}

func (p *parser) podCondition(words []string) (Condition, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("pod goes with a name and a verdict, as in pod web-* whole")
	}
	c := podIs{Glob: words[0]}
	if _, err := path.Match(c.Glob, ""); err != nil {
		return nil, fmt.Errorf("%q is no pattern: write one such as web-*", c.Glob)
	}
	var err error
	if c.Verdict, err = parseVerdict(words[1]); err != nil {
		return nil, err
	}
	switch rest := words[2:]; {
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
	if m := countFormat.FindStringSubmatch(words[1]); m != nil && m[1] == "pods" {
		n, err := strconv.Atoi(m[3])
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", words[1], err)
		}
		return nodePods{Node: words[0], Op: m[2], N: n}, nil
	}
	c := nodeIs{Node: words[0]}
	return c, oneOf(&c.State, nodeUp, nodeSilent, nodeCordoned, nodeAtRisk, nodeOpen, nodeEmpty, nodeDark, nodeGone)(words[1])
}

func (p *parser) recordCondition(words []string) (Condition, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("record goes with a node and what it says, as in record a phase=Ignored")
	}
	if err := p.known(words[0]); err != nil {
		return nil, err
	}
	c := recordSays{Node: words[0]}
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
		"wiring":  oneOf(&c.Wiring, wiringDegraded),
	})
}
