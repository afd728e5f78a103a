package ec2

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// rate is a token bucket: its capacity, and its refill per second.
type rate struct {
	burst     int
	perSecond float64
}

// The categories of actions, and the actions with limits of their own (Amazon EC2 Developer Guide,
// "Request throttling for the Amazon EC2 API"). Each action has its own bucket.
var (
	reads      = rate{100, 20}
	listsOfAll = rate{50, 10} // reads of everything, without a filter and a page size
	writes     = rate{50, 5}

	ownRates = map[string]rate{
		"CancelSpotInstanceRequests":  {50, 5},
		"CreateLaunchTemplateVersion": {100, 5},
		"CreateTags":                  {100, 10},
		"DeleteTags":                  {100, 10},
		"ModifyLaunchTemplate":        {100, 5},
		"RunInstances":                {5, 2},
		"StartInstances":              {5, 2},
		"TerminateInstances":          {100, 5},
	}
	// perResource take as many tokens of a second bucket as there are instances in the call.
	perResource = map[string]rate{
		"RunInstances":       {1000, 2},
		"StartInstances":     {1000, 2},
		"StopInstances":      {1000, 20},
		"TerminateInstances": {1000, 20},
	}
	smallerWithoutPages = []string{"DescribeInstanceStatus", "DescribeInstances", "DescribeSecurityGroups", "DescribeSpotInstanceRequests"}
)

// draws are the tokens that a call takes.
func draws(r *wire.Request) []wire.Draw {
	bucket, of := r.Action, writes
	own, has := ownRates[r.Action]
	switch {
	case has:
		of = own
	case slices.Contains(smallerWithoutPages, r.Action) && !r.Form.Has("MaxResults") && !r.Form.Has("Filter.1.Name"):
		bucket, of = r.Action+" of all", listsOfAll
	case strings.HasPrefix(r.Action, "Describe"), strings.HasPrefix(r.Action, "Get"):
		of = reads
	}
	out := []wire.Draw{{Bucket: bucket, PerSecond: of.perSecond, Burst: of.burst}}
	if of, has := perResource[r.Action]; has {
		out = append(out, wire.Draw{Bucket: r.Action + " of instances", PerSecond: of.perSecond, Burst: of.burst, Tokens: instancesOf(r)})
	}
	return out
}

// instancesOf is how many instances a call launches or changes.
func instancesOf(r *wire.Request) int {
	if n, err := strconv.Atoi(r.Form.Get("MaxCount")); err == nil {
		return n
	}
	n := 0
	for r.Form.Has("InstanceId." + strconv.Itoa(n+1)) {
		n++
	}
	return n
}
