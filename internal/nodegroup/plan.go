package nodegroup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// Verb is what a step does.
type Verb string

// The verbs.
const (
	// CreateGroup creates the group, and its hooks with it.
	CreateGroup Verb = "create group"
	// PutHook makes a hook, or changes it in its place.
	PutHook Verb = "put hook"
	// DeleteHook deletes one that is not wanted any more.
	DeleteHook Verb = "delete hook"
	// UpdateGroup changes the settings of a group.
	UpdateGroup Verb = "update group"
	// PutTags puts tags on a group.
	PutTags Verb = "put tags"
	// PutPool makes the warm pool, or changes it.
	PutPool Verb = "put warm pool"
	// DeletePool takes the warm pool away, once its instances are.
	DeletePool Verb = "delete warm pool"
	// DropPool takes the warm pool away with its instances, hooks or not.
	DropPool Verb = "drop warm pool"
	// DeleteGroup deletes a group that has no instances.
	DeleteGroup Verb = "delete group"
)

// Change is one setting that a step changes. Was is empty where there was none.
type Change struct {
	Name   string `json:"name"`
	Was    string `json:"was,omitempty"`
	WillBe string `json:"willBe,omitempty"`
}

// Step is one thing to do: one call.
type Step struct {
	Verb Verb `json:"verb"`
	// Object is the name of what it is done to, where it is not the group.
	Object  string   `json:"object,omitempty"`
	Reason  string   `json:"reason"`
	Changes []Change `json:"changes,omitempty"`

	// hook is the hook that a PutHook ends with, whole.
	hook Hook
	// propagated are the keys of the tags that instances got before a PutTags.
	propagated []string
}

// String names the step for people.
func (s Step) String() string {
	if s.Object == "" {
		return string(s.Verb)
	}
	return string(s.Verb) + " " + s.Object
}

// changes tells whether the step changes a setting.
func (s Step) changes(name string) bool {
	return slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Name == name })
}

// Plan is what is to be done now, in order, and what is wrong.
type Plan struct {
	Steps []Step `json:"steps"`
	// Held are steps that wait for something, as sentences.
	Held []string `json:"held,omitempty"`
	// Findings are what is wrong, the worst first.
	Findings []finding.Finding `json:"findings"`
}

// History is what happened in the group before, as far as it was seen.
type History struct {
	// Unhooked are instances that went past the launch hook; see [Unhooked].
	Unhooked []string
	// Boots is how long instances took into service; nil: none was seen.
	Boots *v1alpha1.BootTimes
	// Failures counts the launches that failed since the last that did not;
	// LastFailure says of the last what was wrong.
	Failures    int32
	LastFailure string
}

// Diff is what has to be done next to have o as w wants it, as far as w's
// management allows, and what is wrong with it. What waits for a step of it
// comes in a later plan: do the steps, look again, and plan again.
func Diff(w Wanted, o Observed, h History) Plan {
	p := Plan{Steps: []Step{}, Findings: findings(w, o, h)}
	defer func() { finding.Sort(p.Findings) }()
	if !o.Exists {
		p.missing(w)
		return p
	}
	if o.Deleting || o.Operator != "" || w.Management == v1alpha1.ManageNothing {
		return p
	}
	p.hooks(w, o)
	if w.Management == v1alpha1.ManageAll && o.owner() == "" {
		p.group(w, o)
		p.pool(w, o)
	}
	return p
}

// missing creates the group if it may. Hooks come with it in the one call that
// has them there before the first instance is launched (EC2 Auto Scaling API
// Reference, CreateAutoScalingGroup, LifecycleHookSpecificationList); a warm pool
// has no place in it and follows.
func (p *Plan) missing(w Wanted) {
	if w.Management != v1alpha1.ManageAll {
		return
	}
	p.step(CreateGroup, "", "there is no group of this name yet; its hooks are created with it", []Change{
		{Name: fieldHooks, WillBe: w.Launch.Name + ", " + w.Terminate.Name},
		{Name: fieldMin, WillBe: fmt.Sprint(value(w.Spec.MinSize))}, {Name: fieldMax, WillBe: fmt.Sprint(value(w.Spec.MaxSize))},
		{Name: fieldTemplate, WillBe: templateText(w.Spec.LaunchTemplate)},
	})
	if w.Pool != nil {
		p.hold("the warm pool is put once the launch hook is seen to be there")
	}
}

func (p *Plan) step(v Verb, object, reason string, changes []Change) {
	p.Steps = append(p.Steps, Step{Verb: v, Object: object, Reason: reason, Changes: changes})
}

func (p *Plan) hold(text string) { p.Held = append(p.Held, text) }

// hooks puts what is missing or wrong of the two hooks, and takes away those of
// Lifeboat's own names that are not wanted any more.
func (p *Plan) hooks(w Wanted, o Observed) {
	if !o.HooksKnown {
		p.hold("hooks are put once it is known which there are")
		return
	}
	for _, wanted := range []Hook{w.Launch, w.terminate(o)} {
		found, there := o.Hook(wanted.Name)
		switch {
		case !there:
			p.step(PutHook, wanted.Name, "the "+wanted.kind()+" is missing", hookChanges(w, wanted, nil))
			p.Steps[len(p.Steps)-1].hook = wanted
		case found.Terminating != wanted.Terminating:
			p.hold(fmt.Sprintf("hook %s holds the other transition: it is left alone", wanted.Name))
		default:
			if changes := hookChanges(w, wanted, &found); len(changes) > 0 {
				p.step(PutHook, wanted.Name, "the "+wanted.kind()+" is not as it has to be; it is changed in its place", changes)
				if !w.timeoutDeclared(wanted.Terminating) {
					wanted.Timeout = found.Timeout
				}
				p.Steps[len(p.Steps)-1].hook = wanted
			}
		}
	}
	for _, h := range o.stale(w) {
		if err := Removable(o, h); err != nil {
			p.hold(err.Error())
		} else if successor, ok := o.own(w.hookFor(h)); ok {
			p.step(DeleteHook, h.Name, fmt.Sprintf("%s has taken its place", successor.Name), nil)
		}
	}
}

// terminate is the terminate hook as it is wanted in a group as it is: where the
// group retains what is abandoned, and the NodeGroup leaves that to it, the hook
// goes on abandoning.
func (w Wanted) terminate(o Observed) Hook {
	h, declared := w.Terminate, w.Spec.Hooks.Terminate
	if w.Spec.RetainUndrained == nil && (declared == nil || declared.OnTimeout == "") && o.Settings != nil && o.Settings.Retain {
		h.Abandons = true
	}
	return h
}

// hookFor is the hook that is wanted for the transition of h.
func (w Wanted) hookFor(h Hook) Hook {
	if h.Terminating {
		return w.Terminate
	}
	return w.Launch
}

// hookChanges are the settings that differ from those of the hook that was found.
// A timeout that nobody declared is left as it is.
func hookChanges(w Wanted, wanted Hook, found *Hook) []Change {
	var out []Change
	was := Hook{Timeout: -1}
	if found != nil {
		was = *found
	}
	if was.Timeout != wanted.Timeout && (found == nil || w.timeoutDeclared(wanted.Terminating)) {
		out = append(out, Change{Name: fieldTimeout, Was: seconds(found, was.Timeout), WillBe: seconds(&wanted, wanted.Timeout)})
	}
	if found == nil || was.Abandons != wanted.Abandons {
		c := Change{Name: fieldResult, WillBe: wanted.result()}
		if found != nil {
			c.Was = found.result()
		}
		out = append(out, c)
	}
	return out
}

// stale are the hooks of the names that Lifeboat gives that are not wanted any
// more, as others were declared: they would hold instances a second time.
func (o Observed) stale(w Wanted) []Hook {
	var out []Hook
	for _, name := range []string{v1alpha1.LaunchHook, v1alpha1.TerminateHook} {
		if h, ok := o.Hook(name); ok && name != w.Launch.Name && name != w.Terminate.Name {
			out = append(out, h)
		}
	}
	return out
}

// Removable returns an error, which says what to wait for, where deleting a hook
// would do harm: Auto Scaling abandons the launches that it holds, and lets the
// terminations go on that it holds (EC2 Auto Scaling API Reference,
// DeleteLifecycleHook). An instance that is on its way may be held the next
// moment, so there must be none.
func Removable(o Observed, h Hook) error {
	phases, does := []lifecycle.Phase{lifecycle.Joining, lifecycle.Warming}, "abandons their launch"
	if h.Terminating {
		phases, does = []lifecycle.Phase{lifecycle.Leaving, lifecycle.LeavingPool, lifecycle.Warming}, "ends them before they are drained"
	}
	moving := o.in(phases...)
	if len(moving) == 0 {
		return nil
	}
	return fmt.Errorf("hook %s is deleted once no instance is on its way that it may hold, as deleting it %s: %s", h.Name, does, names(moving))
}

// names lists instances with their states, the first few of them.
func names(all []Instance) string {
	var parts []string
	for _, i := range all[:min(len(all), mostNamed)] {
		parts = append(parts, fmt.Sprintf("%s (%s)", i.ID, i.State))
	}
	if more := len(all) - mostNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// mostNamed is how many instances a sentence names.
const mostNamed = 5
