package nodegroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Names of settings as in AWS's API.
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

// TagObject is on the groups that Lifeboat manages; its value is the name of
// the NodeGroup.
const TagObject = v1beta1.LabelNodeGroup

// TagCluster ends in a slash. The tag, followed by the cluster's name, is on the groups and instances of
// a cluster. Lifeboat's IAM permissions are limited to them.
const TagCluster = "kubernetes.io/cluster/"

// group plans the changes of the group's own settings.
func (p *Plan) group(w Wanted, o Observed) {
	if o.Settings == nil {
		p.hold("the group's settings are compared after they could be read")
		return
	}
	changes := append(append(p.sizes(w, o), p.launches(w, *o.Settings)...), settingChanges(w, *o.Settings)...)
	if len(changes) > 0 {
		reason := "the group differs from the spec"
		if n := w.Spec.MinSize; n != nil && *n > o.Desired {
			reason += fmt.Sprintf("; AWS then raises the desired capacity from %d to minSize and launches instances", o.Desired)
		}
		p.step(UpdateGroup, "", reason, changes)
	}
	if tags := tagChanges(w, o.Tags); len(tags) > 0 {
		p.step(PutTags, "", "tags are missing or different", tags)
		p.Steps[len(p.Steps)-1].propagated = o.Propagated
	}
}

// sizes are the changes in size. A MaxSize below the desired capacity also
// lowers that (EC2 Auto Scaling API Reference, UpdateAutoScalingGroup) and
// terminates running nodes, so it waits.
func (p *Plan) sizes(w Wanted, o Observed) []Change {
	var out []Change
	if n := w.Spec.MinSize; n != nil && *n != o.Min {
		out = append(out, Change{fieldMin, fmt.Sprint(o.Min), fmt.Sprint(*n)})
	}
	n := w.Spec.MaxSize
	switch {
	case n == nil || *n == o.Max:
	case *n < o.Desired:
		p.hold(fmt.Sprintf("maxSize %d is set when the desired capacity is no higher (now %d): before that, AWS would terminate running nodes. "+
			"Lower the desired capacity: `aws autoscaling set-desired-capacity --auto-scaling-group-name %s --desired-capacity %d`", *n, o.Desired, o.Name, *n))
	default:
		out = append(out, Change{fieldMax, fmt.Sprint(o.Max), fmt.Sprint(*n)})
	}
	return out
}

// launches are the changes in what is launched. AWS replaces template and
// policy as a whole. If the policy has settings that a NodeGroup cannot
// express, the changes wait, because they would delete those settings.
func (p *Plan) launches(w Wanted, s Settings) []Change {
	changes := launchChanges(w, s)
	if len(changes) == 0 || len(s.Inexpressible) == 0 {
		return changes
	}
	p.hold(fmt.Sprintf("the launch settings are not changed (%s): the mixed instances policy has %s, which a NodeGroup cannot express and the change would delete. "+
		"Make the change in AWS or with the tool that created the group, and declare the same here; or remove that from the policy first", differences(changes), strings.Join(s.Inexpressible, ", ")))
	return nil
}

// launchChanges are the declared launch settings that differ.
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

// settingChanges are the other declared settings that differ.
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

// tagChanges are the tags that are missing or different. None is deleted,
// because its owner is unknown. An existing cluster tag keeps its value: the
// tool that created the group may use it, and several clusters may share a
// group.
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

// tags are the tags that the group must have.
func (w Wanted) tags() map[string]string {
	out := map[string]string{TagObject: w.Object}
	if w.Cluster != "" {
		out[TagCluster+w.Cluster] = "owned"
	}
	maps.Copy(out, w.Spec.Tags)
	return out
}

// pool plans the warm pool after the launch hook exists: without it AWS stops
// instances before their set-up has finished (EC2 Auto Scaling User Guide,
// "Warm pools").
func (p *Plan) pool(w Wanted, o Observed) {
	_, hooked := o.launchHook(w)
	switch {
	case !o.PoolKnown:
		p.hold("the warm pool is compared after its settings could be read")
	case o.Pool != nil && o.Pool.Deleting:
		p.hold("AWS is deleting the warm pool")
	case w.Pool == nil && o.Pool == nil:
	case !o.HooksKnown || !hooked:
		p.hold("the warm pool is created or deleted after the launch hook was observed")
	case w.Pool == nil:
		p.step(DeletePool, "", "no warm pool is declared; its instances are terminated, those in service stay", nil)
	case o.Pool == nil:
		p.step(PutPool, "", "it does not exist yet, and the launch hook exists", poolChanges(*w.Pool, nil))
	default:
		if changes := poolChanges(*w.Pool, o.Pool); len(changes) > 0 {
			p.step(PutPool, "", "the warm pool differs from the spec", changes)
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

// sameTemplate compares by the declared field: id or name.
func sameTemplate(wanted, found *v1beta1.LaunchTemplate) bool {
	if found == nil || version(wanted) != version(found) {
		return false
	}
	if wanted.ID != "" {
		return wanted.ID == found.ID
	}
	return wanted.Name == found.Name
}

// version is the effective version of a template: $Default if none is set.
func version(t *v1beta1.LaunchTemplate) string {
	if t.Version == "" {
		return "$Default"
	}
	return t.Version
}

func templateText(t *v1beta1.LaunchTemplate) string {
	switch {
	case t == nil:
		return ""
	case t.Name != "":
		return t.Name + ", version " + version(t)
	}
	return t.ID + ", version " + version(t)
}

// usualSpot is the default spot allocation strategy.
const usualSpot = "price-capacity-optimized"

func mixedText(m *v1beta1.MixedInstances) string {
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

// unbounded tells AWS to remove the bound (EC2 Auto Scaling API Reference,
// PutWarmPool).
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
