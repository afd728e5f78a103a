package scenario

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
)

const (
	ending     = ".txtar"
	scriptFile = "script"
)

// defaultNotice is what EC2 gives a spot instance (EC2 User Guide, Spot Instance
// interruption notices).
const defaultNotice = 2 * time.Minute

// ParseError is an error in a line, with the correction.
type ParseError struct {
	File string
	Line int // in the archive, from 1; 0: the archive as a whole
	Err  error
}

func (e *ParseError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *ParseError) Unwrap() error { return e.Err }

// Parse reads a scenario. name is the name of its file, with or without .txtar. The error is a
// *ParseError about the first wrong line.
func Parse(name string, text []byte) (*Scenario, error) {
	name = strings.TrimSuffix(name, ending)
	file := name + ending
	archive := txtar.Parse(text)
	sc := &Scenario{Name: name, Files: map[string][]byte{}}
	title, prose, _ := strings.Cut(strings.TrimSpace(string(archive.Comment)), "\n")
	sc.Title, sc.Prose = strings.TrimSpace(title), strings.TrimSpace(prose)
	if sc.Title == "" {
		return nil, &ParseError{file, 1, fmt.Errorf("no title: begin with a line that describes what the scenario shows")}
	}
	var script []byte
	found := false
	for _, f := range archive.Files {
		if f.Name == scriptFile {
			script, found = f.Data, true
			continue
		}
		if _, twice := sc.Files[f.Name]; twice {
			return nil, &ParseError{file, 0, fmt.Errorf("the file %q exists twice", f.Name)}
		}
		sc.Files[f.Name] = f.Data
	}
	if !found {
		return nil, &ParseError{file, 0, fmt.Errorf("no script: add a file with the line -- %s --", scriptFile)}
	}
	p := &parser{file: file, scenario: sc, nodes: map[string]bool{}, groups: map[string]bool{}}
	if err := p.script(script, scriptStart(text)); err != nil {
		return nil, err
	}
	return sc, nil
}

// scriptStart is the number of the line before the script's first. txtar does not provide it; a
// file begins after the first marker line with its name.
func scriptStart(text []byte) int {
	marker := regexp.MustCompile(`^-- +` + scriptFile + ` +--\s*$`)
	for i, line := range bytes.Split(text, []byte("\n")) {
		if marker.Match(line) {
			return i + 1
		}
	}
	return 0
}

// parser holds the state of earlier lines.
type parser struct {
	file      string
	scenario  *Scenario
	nodes     map[string]bool
	groups    map[string]bool
	karpenter bool // Karpenter provisions
	clock     bool // an interruption has started it
	deadline  bool // and it has a deadline
	window    bool // an applied file sets when a window opens
	planned   bool // an interrupt has scheduled an event, which can be cancelled
}

// verb is a kind of line.
type verb struct {
	name, usage string
	parse       func(p *parser, args []string) (any, error)
}

func verbs() []verb {
	return []verb{
		{"node", "node NAME… [type=m5.large] [zone=us-east-1a] [spot|on-demand] [labels=a=b,c=d] [taints=key=value:NoSchedule]", (*parser).node},
		{"apply", "apply FILE", (*parser).apply},
		{"rules", "rules standard | rules none | rules from FILE", (*parser).rules},
		{"lifeboat", "lifeboat on [sources=sqs,ec2,autoscaling] [status-interval=2s] [status-threshold=5s] [autoscaling-interval=5s] | lifeboat off | lifeboat kill", (*parser).lifeboat},
		{"boot", "boot 2s | boot ordinary", (*parser).boot},
		{"karpenter", "karpenter on [own-queue] [guard] | karpenter off | karpenter kill", (*parser).karpenterLine},
		{"capacity", "capacity none [type=m5.large] [zone=us-east-1a] [spot|on-demand] | capacity back", (*parser).capacity},
		{"group", "group NAME [desired=1] [min=0] [max=10] [type=m5.large] [zones=us-east-1a,us-east-1b] [spot] [rebalance] [warm=1] [pool=stopped|running|hibernated] [reuse] " +
			"[hooks=both|launch|terminate|none] [launch-time=5m] [terminate-time=5m] [boot=3s] [prepare=5s] [agent=answers|silent|none] [declared] [labels=a=b] [taints=key=value:NoSchedule]", (*parser).group},
		{"scale", "scale GROUP to 2", (*parser).scale},
		{"refresh", "refresh GROUP", (*parser).refresh},
		{"balance", "balance GROUP", (*parser).balance},
		{"detach", "detach NODE", (*parser).detach},
		{"terminate", "terminate NODE [by=ec2|group|autoscaler]", (*parser).terminate},
		{"agents", "agents on | agents off", (*parser).agents},
		{"interrupt", "interrupt NODE… [kind=spot|rebalance|scheduled|status] [via=ec2|fis|queue] [notice=2m] [code=instance-stop] [capacity=none]", (*parser).interrupt},
		{"cancel", "cancel NODE…", (*parser).cancel},
		{"chaos", "chaos FAULT [for=10s] [seed=1]", (*parser).chaos},
		{"approve", "approve NODE by=NAME", (*parser).approve},
		{"hold", "hold NODE by=NAME", (*parser).hold},
		{"release", "release NODE by=NAME", (*parser).release},
		{"wait", "wait CONDITION [within 60s] | wait node NAME launched [within 60s]", (*parser).wait},
		{"expect", "expect CONDITION", (*parser).expect},
		{"always", "always CONDITION", (*parser).always},
		{"at", "at 60s CONDITION", (*parser).at},
		{"by", "by 3s CONDITION", (*parser).by},
		{"until", "until 60s | until deadline+3s | until window", (*parser).until},
	}
}

func (p *parser) script(script []byte, line int) error {
	for _, text := range strings.Split(string(script), "\n") {
		line++
		words := strings.Fields(stripComment(text))
		if len(words) == 0 {
			continue
		}
		do, err := p.statement(words)
		if err != nil {
			return &ParseError{p.file, line, err}
		}
		p.scenario.Steps = append(p.scenario.Steps, Step{Line: line, Text: strings.Join(words, " "), Do: do})
	}
	if len(p.scenario.Steps) == 0 {
		return &ParseError{p.file, line, fmt.Errorf("the script is empty: begin with a node")}
	}
	return nil
}

func stripComment(line string) string {
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return ""
	}
	before, _, _ := strings.Cut(line, " #")
	return before
}

func (p *parser) statement(words []string) (any, error) {
	all := verbs()
	i := slices.IndexFunc(all, func(v verb) bool { return v.name == words[0] })
	if i < 0 {
		var names []string
		for _, v := range all {
			names = append(names, v.name)
		}
		return nil, fmt.Errorf("unknown verb %q: write %s", words[0], orList(names))
	}
	do, err := all[i].parse(p, words[1:])
	if err != nil {
		return nil, fmt.Errorf("%w; write: %s", err, all[i].usage)
	}
	return do, nil
}
