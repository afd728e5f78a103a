package fis

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Limits of templates (FIS User Guide, Quotas).
const (
	maxActions      = 20
	maxResourceARNs = 5
)

// Template describes an experiment and its targets. Its JSON is the API's.
type Template struct {
	ID             string            `json:"id"`
	ARN            string            `json:"arn"`
	Description    string            `json:"description"`
	Targets        map[string]Target `json:"targets"`
	Actions        map[string]Action `json:"actions"`
	StopConditions []StopCondition   `json:"stopConditions"`
	RoleARN        string            `json:"roleArn"`
	Created        wire.Time         `json:"creationTime"`
	Updated        wire.Time         `json:"lastUpdateTime"`
	Tags           map[string]string `json:"tags"`
	Options        TemplateOptions   `json:"experimentOptions"`
}

// Target names the resources of an experiment: by ARN, or by tags and filters.
type Target struct {
	ResourceType  string            `json:"resourceType"`
	ResourceARNs  []string          `json:"resourceArns,omitempty"`
	ResourceTags  map[string]string `json:"resourceTags,omitempty"`
	Filters       []TargetFilter    `json:"filters,omitempty"`
	SelectionMode string            `json:"selectionMode"` // ALL, COUNT(n) or PERCENT(n)
	Parameters    map[string]string `json:"parameters,omitempty"`
}

// TargetFilter narrows a target to the resources that have one of the values.
type TargetFilter struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

// Action is one thing to do to one target.
type Action struct {
	ActionID    string            `json:"actionId"`
	Description string            `json:"description,omitempty"`
	Parameters  map[string]string `json:"parameters,omitempty"`
	Targets     map[string]string `json:"targets,omitempty"`
	StartAfter  []string          `json:"startAfter,omitempty"`
}

// StopCondition ends an experiment early; the only supported source is "none".
type StopCondition struct {
	Source string `json:"source"`
	Value  string `json:"value,omitempty"`
}

// TemplateOptions are the options of every experiment made from a template.
type TemplateOptions struct {
	AccountTargeting string `json:"accountTargeting"`
	// EmptyTargets is fail or skip: what to do when a target matches nothing.
	EmptyTargets string `json:"emptyTargetResolutionMode"`
}

var (
	rolePattern      = regexp.MustCompile(`^arn:[a-z-]+:iam::[0-9]{12}:role/[\w+=,.@/-]+$`)
	selectionPattern = regexp.MustCompile(`^(?:ALL|(COUNT|PERCENT)\(([0-9]{1,4})\))$`)
)

// check rejects what FIS rejects, and what this emulator does not support. It fills in the
// defaults.
func (t *Template) check() error {
	switch {
	case t.Description == "" || len(t.Description) > 512:
		return validation("The description must be 1 to 512 characters long.")
	case !rolePattern.MatchString(t.RoleARN):
		return validation("The roleArn %q is not the ARN of an IAM role.", t.RoleARN)
	case len(t.Actions) == 0:
		return validation("An experiment template must have at least one action.")
	case len(t.Actions) > maxActions:
		return quotaExceeded("An experiment template can have at most %d actions.", maxActions)
	}
	if err := t.checkOptions(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Targets)) {
		if err := t.Targets[name].check(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Actions)) {
		if err := t.checkAction(name, t.Actions[name]); err != nil {
			return err
		}
	}
	return t.checkOrder()
}

func (t *Template) checkOptions() error {
	if len(t.StopConditions) == 0 {
		return validation("At least one stop condition is required; use the source none to have none.")
	}
	for _, c := range t.StopConditions {
		if c.Source != "none" {
			return validation("The stop condition %q is not supported by this emulator; use none.", c.Source)
		}
	}
	if t.Options.AccountTargeting == "" {
		t.Options.AccountTargeting = "single-account"
	}
	if t.Options.AccountTargeting != "single-account" {
		return validation("The accountTargeting %q is not supported by this emulator; use single-account.", t.Options.AccountTargeting)
	}
	if t.Options.EmptyTargets == "" {
		t.Options.EmptyTargets = "fail"
	}
	if m := t.Options.EmptyTargets; m != "fail" && m != "skip" {
		return validation("The emptyTargetResolutionMode must be fail or skip; it is %q.", m)
	}
	return nil
}

func (t Target) check(name string) error {
	if err := t.checkSelectors(name); err != nil {
		return err
	}
	if err := checkMode(name, t.SelectionMode); err != nil {
		return err
	}
	for _, arn := range t.ResourceARNs {
		if instanceOf(arn) == "" {
			return validation("%q is not the ARN of an instance, in target %s.", arn, name)
		}
	}
	for _, f := range t.Filters {
		if filterField(f.Path) == nil {
			return validation("The filter path %q of target %s is not supported by this emulator.", f.Path, name)
		}
	}
	return nil
}

// checkSelectors rejects inconsistent ways of naming resources.
func (t Target) checkSelectors(name string) error {
	switch {
	case len(t.ResourceARNs) > 0 && len(t.ResourceTags) > 0:
		return validation("You cannot specify both resource ARNs and resource tags for target %s.", name)
	case len(t.ResourceARNs) > 0 && len(t.Filters) > 0:
		return validation("You cannot specify both resource ARNs and filters for target %s.", name)
	case len(t.ResourceARNs)+len(t.ResourceTags)+len(t.Filters) == 0:
		return validation("You must specify resource ARNs, resource tags or filters for target %s.", name)
	case len(t.ResourceARNs) > maxResourceARNs:
		return validation("Target %s has %d resource ARNs; at most %d are allowed.", name, len(t.ResourceARNs), maxResourceARNs)
	case len(t.Parameters) > 0:
		return validation("Target parameters are not supported by this emulator: target %s.", name)
	default:
		return nil
	}
}

// checkMode rejects an invalid selection mode.
func checkMode(target, mode string) error {
	m := selectionPattern.FindStringSubmatch(mode)
	if m == nil {
		return validation("The selectionMode %q of target %s must be ALL, COUNT(n) or PERCENT(n).", mode, target)
	}
	if n, _ := strconv.Atoi(m[2]); m[1] != "" && n < 1 || m[1] == "PERCENT" && n > 100 {
		return validation("The selectionMode %q of target %s is out of range.", mode, target)
	}
	return nil
}

func (t *Template) checkAction(name string, a Action) error {
	k, ok := findKind(a.ActionID)
	if !ok {
		return validation("The action %q is not supported by this emulator; it has %s, %s and %s.",
			a.ActionID, sendSpotInterruptions, stopInstances, terminateInstances)
	}
	for _, key := range slices.Sorted(maps.Keys(a.Targets)) {
		if key != k.targetKey {
			return validation("Unexpected target %q found in action %q.", key, name)
		}
	}
	target, ok := t.Targets[a.Targets[k.targetKey]]
	switch {
	case a.Targets[k.targetKey] == "":
		return validation("Action %q is missing the required target %q.", name, k.targetKey)
	case !ok:
		return validation("Action %q refers to the target %q, which is not defined.", name, a.Targets[k.targetKey])
	case target.ResourceType != k.resourceType:
		return validation("Action %q needs a target of type %s; %q is of type %s.", name, k.resourceType, a.Targets[k.targetKey], target.ResourceType)
	}
	return k.check(name, a.Parameters)
}

// checkOrder rejects actions that wait for unknown ones or for each other.
func (t *Template) checkOrder() error {
	for name, a := range t.Actions {
		for _, before := range a.StartAfter {
			if _, ok := t.Actions[before]; !ok {
				return validation("Action %q starts after %q, which is not defined.", name, before)
			}
		}
	}
	ready := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for name, a := range t.Actions {
			if !ready[name] && all(a.StartAfter, ready) {
				ready[name], grown = true, true
			}
		}
	}
	if len(ready) < len(t.Actions) {
		return validation("The actions wait for each other in a circle.")
	}
	return nil
}

func all(names []string, in map[string]bool) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !in[n] })
}
