package nodegroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Names of settings, in the words of AWS's API.
const (
	fieldMin       = "MinSize"
	fieldMax       = "MaxSize"
	fieldTemplate  = "LaunchTemplate"
	fieldMixed     = "MixedInstancesPolicy"
	fieldSubnets   = "VPCZoneIdentifier"
	fieldRebalance = "CapacityRebalance"
	fieldRetain    = "InstanceLifecyclePolicy"
	fieldTag       = "Tag "
	fieldHooks     = "LifecycleHookSpecificationList"
	fieldTimeout   = "HeartbeatTimeout"
	fieldResult    = "DefaultResult"
	fieldState     = "PoolState"
	fieldPrepared  = "MaxGroupPreparedCapacity"
	fieldReuse     = "ReuseOnScaleIn"
)

// TagObject is on the groups that Lifeboat keeps, with the name of their
// NodeGroup.
const TagObject = v1alpha1.LabelNodeGroup

// TagCluster is what tells the groups and instances of a cluster, with the
// cluster's name behind it. Lifeboat's permissions reach what has it.
const TagCluster = "kubernetes.io/cluster/"

// group changes the group's own settings.
func (p *Plan) group(w Wanted, o Observed) {
	if o.Settings == nil {
		p.hold("the group's settings are compared once they could be read")
		return
	}
	changes := append(append(p.sizes(w, o), p.launches(w, *o.Settings)...), settingChanges(w, *o.Settings)...)
	if len(changes) > 0 {
		reason := "the group is not as declared"
		if n := w.Spec.MinSize; n != nil && *n > o.Desired {
			reason += fmt.Sprintf("; AWS then raises the desired capacity from %d to minSize, and launches", o.Desired)
		}
		p.step(UpdateGroup, "", reason, changes)
	}
	if tags := tagChanges(w, o.Tags); len(tags) > 0 {
		p.step(PutTags, "", "tags are missing or different", tags)
		p.Steps[len(p.Steps)-1].propagated = o.Propagated
	}
}

// sizes are the changes in size. A largest size below the desired capacity
// lowers that too (EC2 Auto Scaling API Reference, UpdateAutoScalingGroup), and
// takes running nodes down: it waits.
func (p *Plan) sizes(w Wanted, o Observed) []Change {
	var out []Change
	if n := w.Spec.MinSize; n != nil && *n != o.Min {
		out = append(out, Change{fieldMin, fmt.Sprint(o.Min), fmt.Sprint(*n)})
	}
	n := w.Spec.MaxSize
	switch {
	case n == nil || *n == o.Max:
	case *n < o.Desired:
		p.hold(fmt.Sprintf("maxSize %d is put once no more than that are desired (now %d): sooner, AWS would terminate running nodes. "+
			"Lower the desired capacity: `aws autoscaling set-desired-capacity --auto-scaling-group-name %s --desired-capacity %d`", *n, o.Desired, o.Name, *n))
	default:
		out = append(out, Change{fieldMax, fmt.Sprint(o.Max), fmt.Sprint(*n)})
	}
	return out
}

// launches are the changes in what is launched. AWS takes template and policy
// whole, so where the policy has what a NodeGroup cannot say they wait: they would
// take that away.
func (p *Plan) launches(w Wanted, s Settings) []Change {
	changes := launchChanges(w, s)
	if len(changes) == 0 || len(s.Unsaid) == 0 {
		return changes
	}
	p.hold(fmt.Sprintf("what the group launches is not changed (%s), as its mixed instances policy has %s, which a NodeGroup cannot say and the change would take away. "+
		"Change it at AWS, or where the group was made, and declare the same here; or take that out of the policy first", differences(changes), strings.Join(s.Unsaid, ", ")))
	return nil
}

// launchChanges are what is declared of what is launched, and differs.
func launchChanges(w Wanted, s Settings) []Change {
	var out []Change
	wanted := w.Spec.LaunchTemplate
	if wanted == nil {
		return nil
	}
	if !sameTemplate(wanted, s.Template) {
		out = append(out, Change{fieldTemplate, templateText(s.Template), templateText(wanted)})
	}
	if was, wanted := mixedText(s.Mixed), mixedText(w.Spec.MixedInstances); was != wanted {
		out = append(out, Change{fieldMixed, was, wanted})
	}
	return out
}

// settingChanges are the other settings that are declared and differ.
func settingChanges(w Wanted, s Settings) []Change {
	var out []Change
	add := func(name, was, wanted string) {
		if was != wanted {
			out = append(out, Change{name, was, wanted})
		}
	}
	spec := w.Spec
	if len(spec.Subnets) > 0 {
		add(fieldSubnets, sorted(s.Subnets), sorted(spec.Subnets))
	}
	if spec.CapacityRebalance != nil {
		add(fieldRebalance, fmt.Sprint(s.CapacityRebalance), fmt.Sprint(*spec.CapacityRebalance))
	}
	if spec.RetainUndrained != nil {
		add(fieldRetain, retention(s.Retain), retention(*spec.RetainUndrained))
	}
	return out
}

// tagChanges are the tags that are missing or different. None is taken away:
// whose it is cannot be told. Nor is one of a cluster changed, whatever its value:
// who made the group goes by it too, and a group may be of several clusters.
func tagChanges(w Wanted, found map[string]string) []Change {
	var out []Change
	wanted := w.tags()
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		was, ok := found[key]
		if !ok || was != wanted[key] && !strings.HasPrefix(key, TagCluster) {
			out = append(out, Change{fieldTag + key, was, wanted[key]})
		}
	}
	return out
}

// tags are those that the group has to have.
func (w Wanted) tags() map[string]string {
	out := map[string]string{TagObject: w.Object}
	if w.Cluster != "" {
		out[TagCluster+w.Cluster] = "owned"
	}
	maps.Copy(out, w.Spec.Tags)
	return out
}

// pool puts or takes away the warm pool, once the launch hook is there to hold
// what is launched into it: an instance that nothing holds is stopped in the
// middle of its set-up (EC2 Auto Scaling User Guide, "Warm pools").
func (p *Plan) pool(w Wanted, o Observed) {
	_, hooked := o.launchHook(w)
	switch {
	case !o.PoolKnown:
		p.hold("the warm pool is compared once its settings could be read")
	case o.Pool != nil && o.Pool.Deleting:
		p.hold("AWS is deleting the warm pool")
	case w.Pool == nil && o.Pool == nil:
	case !o.HooksKnown || !hooked:
		p.hold("the warm pool is put or deleted once the launch hook is seen to be there")
	case w.Pool == nil:
		p.step(DeletePool, "", "none is declared; its instances are terminated, those in service stay", nil)
	case o.Pool == nil:
		p.step(PutPool, "", "there is none yet, and the launch hook is there", poolChanges(*w.Pool, nil))
	default:
		if changes := poolChanges(*w.Pool, o.Pool); len(changes) > 0 {
			p.step(PutPool, "", "the warm pool is not as declared", changes)
		}
	}
}

func poolChanges(w Pool, found *Pool) []Change {
	var out []Change
	text := func(p *Pool) [4]string {
		if p == nil {
			return [4]string{}
		}
		return [4]string{p.State, fmt.Sprint(p.Min), prepared(p.MaxPrepared), fmt.Sprint(p.Reuse)}
	}
	was, wanted := text(found), text(&w)
	for i, name := range [4]string{fieldState, fieldMin, fieldPrepared, fieldReuse} {
		if was[i] != wanted[i] {
			out = append(out, Change{name, was[i], wanted[i]})
		}
	}
	return out
}

// sameTemplate compares by what is declared: the id or the name.
func sameTemplate(wanted, found *v1alpha1.LaunchTemplate) bool {
	if found == nil || version(wanted) != version(found) {
		return false
	}
	if wanted.ID != "" {
		return wanted.ID == found.ID
	}
	return wanted.Name == found.Name
}

// version is what a template's version is read as: $Default where none is given.
func version(t *v1alpha1.LaunchTemplate) string {
	if t.Version == "" {
		return "$Default"
	}
	return t.Version
}

func templateText(t *v1alpha1.LaunchTemplate) string {
	switch {
	case t == nil:
		return ""
	case t.Name != "":
		return t.Name + ", version " + version(t)
	}
	return t.ID + ", version " + version(t)
}

// usualSpot is how spot pools are chosen where nothing is declared.
const usualSpot = "price-capacity-optimized"

func mixedText(m *v1alpha1.MixedInstances) string {
	if m == nil {
		return ""
	}
	strategy := m.SpotAllocationStrategy
	if strategy == "" {
		strategy = usualSpot
	}
	return fmt.Sprintf("%s; %d on demand, then %d%%; spot %s", strings.Join(m.InstanceTypes, " "), m.OnDemandBase, m.OnDemandPercent, strategy)
}

func sorted(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ",") }

func retention(retain bool) string {
	if retain {
		return "retain"
	}
	return "terminate"
}

// unbounded is how AWS is told to take a bound away (EC2 Auto Scaling API
// Reference, PutWarmPool).
const unbounded = -1

func prepared(n *int32) string {
	if n == nil || *n == unbounded {
		return ""
	}
	return fmt.Sprint(*n)
}

func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func seconds(h *Hook, d time.Duration) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
