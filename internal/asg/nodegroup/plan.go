package nodegroup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// Verb is what a step does.
type Verb string

// The verbs.
const (
	// CreateGroup creates the group, and its hooks with it.
	CreateGroup Verb = "create group"
	// PutHook creates a hook or updates it in place.
	PutHook Verb = "put hook"
	// DeleteHook deletes a hook that is no longer declared.
	DeleteHook Verb = "delete hook"
	// UpdateGroup changes the settings of a group.
	UpdateGroup Verb = "update group"
	// PutTags sets tags on a group.
	PutTags Verb = "put tags"
	// PutPool creates or updates the warm pool.
	PutPool Verb = "put warm pool"
	// DeletePool deletes the warm pool after its instances are terminated.
	DeletePool Verb = "delete warm pool"
	// DropPool force-deletes the warm pool with its instances, ignoring hooks.
	DropPool Verb = "drop warm pool"
	// DeleteGroup deletes a group that has no instances.
	DeleteGroup Verb = "delete group"
)

// Change is one setting that a step changes. Was is empty if it was not set.
type Change struct {
	Name   string `json:"name"`
	Was    string `json:"was,omitempty"`
	WillBe string `json:"willBe,omitempty"`
}

// Step is one API call.
type Step struct {
	Verb Verb `json:"verb"`
	// Object is the name of the changed object, if it is not the group.
	Object  string   `json:"object,omitempty"`
	Reason  string   `json:"reason"`
	Changes []Change `json:"changes,omitempty"`

	// hook is the complete hook after a PutHook.
	hook Hook
	// propagated are the keys of the tags that propagated to instances before a
	// PutTags.
	propagated []string
}

// String describes the step for users.
func (s Step) String() string {
	if s.Object == "" {
		return string(s.Verb)
	}
	return string(s.Verb) + " " + s.Object
}

// changes reports whether the step changes a setting.
func (s Step) changes(name string) bool {
	return slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Name == name })
}

// Plan is the list of steps to do now, in order, and the findings.
type Plan struct {
	Steps []Step `json:"steps"`
	// Held are the reasons of steps that must wait, as sentences.
	Held []string `json:"held,omitempty"`
	// Findings are the problems, the most severe first.
	Findings []finding.Finding `json:"findings"`
}

// History is what was observed in the group earlier.
type History struct {
	// Unhooked are instances that launched without the launch hook; see
	// [Unhooked].
	Unhooked []string
	// Boots are the observed times from launch to service; nil: none observed.
	Boots *v1beta1.BootTimes
	// Failures counts consecutive failed launches; LastFailure is the message
	// of the last one.
	Failures    int32
	LastFailure string
}

// Diff returns the next steps towards w, as far as its management allows, and
// the findings. A step that depends on another appears in a later plan: apply
// the steps, observe, and plan again.
func Diff(w Wanted, o Observed, h History) Plan {
	p := Plan{Steps: []Step{}, Findings: findings(w, o, h)}
	defer func() { finding.Sort(p.Findings) }()
	if !o.Exists {
		p.missing(w)
		return p
	}
	if o.Deleting || o.Operator != "" || w.Management == v1beta1.ManageNothing {
		return p
	}
	if cluster, _ := o.otherCluster(w.Cluster); cluster != "" {
		return p
	}
	p.hooks(w, o)
	if w.Management == v1beta1.ManageAll && o.owner() == "" {
		p.group(w, o)
		p.pool(w, o)
	}
	return p
}

// missing creates the group if allowed. The call includes the hooks, so that
// they exist before the first launch (EC2 Auto Scaling API Reference,
// CreateAutoScalingGroup, LifecycleHookSpecificationList). It cannot include a
// warm pool, which follows.
func (p *Plan) missing(w Wanted) {
	if w.Management != v1beta1.ManageAll {
		return
	}
	p.step(CreateGroup, "", "there is no group of this name yet; its hooks are created with it", []Change{
		{Name: fieldHooks, WillBe: w.Launch.Name + ", " + w.Terminate.Name},
		{Name: fieldMin, WillBe: fmt.Sprint(value(w.Spec.MinSize))}, {Name: fieldMax, WillBe: fmt.Sprint(value(w.Spec.MaxSize))},
		{Name: fieldTemplate, WillBe: templateText(w.Spec.LaunchTemplate)},
	})
	if w.Pool != nil {
		p.hold("the warm pool is created after the launch hook was observed")
	}
}

func (p *Plan) step(v Verb, object, reason string, changes []Change) {
	p.Steps = append(p.Steps, Step{Verb: v, Object: object, Reason: reason, Changes: changes})
}

func (p *Plan) hold(text string) { p.Held = append(p.Held, text) }

// hooks creates or corrects the two hooks and deletes Lifeboat's default hooks
// that are no longer declared.
func (p *Plan) hooks(w Wanted, o Observed) {
	if !o.HooksKnown {
		p.hold("hooks are changed after the existing ones could be read")
		return
	}
	for _, wanted := range []Hook{w.Launch, w.terminate(o)} {
		found, there := o.Hook(wanted.Name)
		switch {
		case !there:
			p.step(PutHook, wanted.Name, "the "+wanted.kind()+" is missing", hookChanges(w, wanted, nil))
			p.Steps[len(p.Steps)-1].hook = wanted
		case found.Terminating != wanted.Terminating:
			p.hold(fmt.Sprintf("hook %s holds the other transition, so Lifeboat does not change it", wanted.Name))
		default:
			if changes := hookChanges(w, wanted, &found); len(changes) > 0 {
				p.step(PutHook, wanted.Name, "the "+wanted.kind()+" has wrong settings; it is updated in place", changes)
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
			p.step(DeleteHook, h.Name, fmt.Sprintf("%s replaces it", successor.Name), nil)
		}
	}
}

// terminate is the wanted terminate hook. If the group retains abandoned
// instances and the NodeGroup does not declare otherwise, the hook keeps
// ABANDON.
func (w Wanted) terminate(o Observed) Hook {
	h, declared := w.Terminate, w.Spec.Hooks.Terminate
	if w.Spec.RetainUndrained == nil && (declared == nil || declared.OnTimeout == "") && o.Settings != nil && o.Settings.Retain {
		h.Abandons = true
	}
	return h
}

// hookFor is the wanted hook for the transition of h.
func (w Wanted) hookFor(h Hook) Hook {
	if h.Terminating {
		return w.Terminate
	}
	return w.Launch
}

// hookChanges are the settings that differ from the found hook. An undeclared
// timeout is not changed.
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

// stale are hooks with Lifeboat's default names for whose transition another
// hook is declared: they would hold instances a second time.
func (o Observed) stale(w Wanted) []Hook {
	var out []Hook
	for _, name := range []string{v1beta1.LaunchHook, v1beta1.TerminateHook} {
		if h, ok := o.Hook(name); ok && name != w.Launch.Name && name != w.Terminate.Name {
			out = append(out, h)
		}
	}
	return out
}

// Removable returns an error that says what to wait for if deleting a hook
// would do harm. Auto Scaling then abandons the launches that the hook holds
// and completes the terminations (EC2 Auto Scaling API Reference,
// DeleteLifecycleHook). An instance in the transition may reach the hook at any
// moment, so there must be none.
func Removable(o Observed, h Hook) error {
	phases, does := []lifecycle.Phase{lifecycle.Joining, lifecycle.Warming}, "abandons the launch"
	if h.Terminating {
		phases, does = []lifecycle.Phase{lifecycle.Leaving, lifecycle.LeavingPool, lifecycle.Warming}, "terminates them before they are drained"
	}
	moving := o.in(phases...)
	if len(moving) == 0 {
		return nil
	}
	return fmt.Errorf("hook %s is deleted when no instance is in its transition, because the deletion %s: %s", h.Name, does, names(moving))
}

// names lists the first few instances with their states.
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

// mostNamed is how many instances a message names.
const mostNamed = 5
