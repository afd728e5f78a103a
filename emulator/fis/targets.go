package fis

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

var instanceARN = regexp.MustCompile(`^arn:[a-z-]+:ec2:[a-z0-9-]+:[0-9]{12}:instance/(i-[0-9a-f]+)$`)

// instanceOf is the instance id in an ARN; empty: it is the ARN of another resource.
func instanceOf(arn string) string {
	if m := instanceARN.FindStringSubmatch(arn); m != nil {
		return m[1]
	}
	return ""
}

// resolve finds the instances of a target and selects among them.
func resolve(t Target, k kind, instances []ec2.Instance) ([]string, error) {
	var ids []string
	for _, in := range instances {
		if t.means(in, k) {
			ids = append(ids, in.ID)
		}
	}
	if missing := len(t.ResourceARNs) - len(ids); missing > 0 {
		return nil, fmt.Errorf("%d of the %d resources named do not exist, or are not of type %s", missing, len(t.ResourceARNs), k.resourceType)
	}
	ids = choose(t.SelectionMode, ids)
	if len(t.ResourceARNs) == 0 && k.byTagQuota > 0 && len(ids) > k.byTagQuota {
		return nil, fmt.Errorf("the target matches %d resources; the quota of %s is %d when targets are found by tag", len(ids), k.id, k.byTagQuota)
	}
	return ids, nil
}

// means reports whether an instance belongs to a target.
func (t Target) means(in ec2.Instance, k kind) bool {
	if k.resourceType == "aws:ec2:spot-instance" && !in.Spot() {
		return false
	}
	if len(t.ResourceARNs) > 0 {
		return slices.ContainsFunc(t.ResourceARNs, func(arn string) bool { return instanceOf(arn) == in.ID })
	}
	for key, want := range t.ResourceTags {
		if got, ok := in.Tags[key]; !ok || got != want {
			return false
		}
	}
	for _, f := range t.Filters {
		if !slices.Contains(f.Values, filterField(f.Path)(in)) {
			return false
		}
	}
	return true
}

// filterField reads what a filter compares, by its path in the output of
// DescribeInstances; nil: not supported.
func filterField(path string) func(ec2.Instance) string {
	switch path {
	case "State.Name":
		return func(in ec2.Instance) string { return string(in.State) }
	case "Placement.AvailabilityZone":
		return func(in ec2.Instance) string { return in.Zone }
	case "InstanceType":
		return func(in ec2.Instance) string { return in.Type }
	case "SubnetId":
		return func(in ec2.Instance) string { return in.SubnetID }
	default:
		return nil
	}
}

// choose applies a selection mode: all of the ids, or some at random. A percentage is
// rounded down (FIS User Guide, Targets).
func choose(mode string, ids []string) []string {
	m := selectionPattern.FindStringSubmatch(mode)
	if m == nil || m[1] == "" {
		return ids
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return ids
	}
	if m[1] == "PERCENT" {
		n = len(ids) * n / 100
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:min(n, len(ids))]
}
