package autoscaling

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct{ state *State }

// Page sizes (Amazon EC2 Auto Scaling API Reference).
const (
	usualPage = 50
	maxGroups = 100
	maxOthers = 50
)

// paging is the part of a request that asks for one page.
type paging struct {
	MaxRecords *int
	NextToken  string
}

// page cuts one page out of a list.
func page[T any](list []T, p paging, most int) (items []T, next string, err error) {
	size, start := usualPage, 0
	if p.MaxRecords != nil {
		size = *p.MaxRecords
	}
	if size < 1 || size > most {
		return nil, "", constraint(size, "maxRecords", fmt.Sprintf("have value between 1 and %d", most))
	}
	if p.NextToken != "" {
		raw, decodeErr := base64.StdEncoding.DecodeString(p.NextToken)
		n, parseErr := strconv.Atoi(string(raw))
		if decodeErr != nil || parseErr != nil || n < 0 {
			return nil, "", invalidToken()
		}
		start = min(n, len(list))
	}
	end := min(start+size, len(list))
	if end < len(list) {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return list[start:end], next, nil
}

type groupsInput struct {
	paging

	Names            []string `query:"AutoScalingGroupNames"`
	Filters          []filter
	IncludeInstances *bool
}

type filter struct {
	Name   string
	Values []string
}

// check rejects unknown filters.
func (f filter) check() error {
	if f.Name == "tag-key" || f.Name == "tag-value" || strings.HasPrefix(f.Name, "tag:") {
		return nil
	}
	return validation("Filter type %s is not correct. Allowed Filter types are: tag-key, tag-value, tag:<tagKey>", f.Name)
}

// passes reports whether one of a group's tags matches the filter.
func (f filter) passes(tags map[string]string) bool {
	for key, value := range tags {
		compared := value
		switch f.Name {
		case "tag-key":
			compared = key
		case "tag-value", "tag:" + key:
		default:
			continue
		}
		if slices.Contains(f.Values, compared) {
			return true
		}
	}
	return false
}

type groupsReply struct {
	Groups    wire.Members[groupReply] `xml:"AutoScalingGroups"`
	NextToken string                   `xml:",omitempty"`
}

func (a *api) describeGroups(_ context.Context, _ *wire.Request, in *groupsInput) (*groupsReply, error) {
	for _, f := range in.Filters {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	list := slices.DeleteFunc(a.state.describe(), func(g described) bool {
		return len(in.Names) > 0 && !slices.Contains(in.Names, g.Name) ||
			slices.ContainsFunc(in.Filters, func(f filter) bool { return !f.passes(g.Tags) })
	})
	list, next, err := page(list, in.paging, maxGroups)
	out := &groupsReply{NextToken: next}
	for _, g := range list {
		out.Groups = append(out.Groups, groupToWire(g, in.IncludeInstances == nil || *in.IncludeInstances))
	}
	return out, err
}

type instancesInput struct {
	paging

	InstanceIDs []string `query:"InstanceIds"`
}

type instancesReply struct {
	Instances wire.Members[instanceReply] `xml:"AutoScalingInstances"`
	NextToken string                      `xml:",omitempty"`
}

// describeInstances skips instances that are in no group, as AWS does.
func (a *api) describeInstances(_ context.Context, _ *wire.Request, in *instancesInput) (*instancesReply, error) {
	if n := len(in.InstanceIDs); n > maxOthers {
		return nil, constraint(fmt.Sprintf("[%d ids]", n), "instanceIds", fmt.Sprintf("have length less than or equal to %d", maxOthers))
	}
	var list []instanceReply
	for _, g := range a.state.describe() {
		for _, m := range g.members {
			if len(in.InstanceIDs) == 0 || slices.Contains(in.InstanceIDs, m.InstanceID) {
				list = append(list, memberToWire(g, m, g.Name))
			}
		}
	}
	list, next, err := page(list, in.paging, maxOthers)
	return &instancesReply{list, next}, err
}

type actionInput struct {
	Group      string `query:"AutoScalingGroupName"`
	Hook       string `query:"LifecycleHookName"`
	Token      string `query:"LifecycleActionToken"`
	InstanceID string `query:"InstanceId"`
	Result     Result `query:"LifecycleActionResult"`
}

// ref checks how a request names its action.
func (in *actionInput) ref() (Ref, error) {
	switch {
	case in.Group == "":
		return Ref{}, constraint("", "autoScalingGroupName", "not be null")
	case in.Hook == "":
		return Ref{}, constraint("", "lifecycleHookName", "not be null")
	case in.Token != "" && len(in.Token) != tokenSize:
		return Ref{}, constraint(in.Token, "lifecycleActionToken", "have length equal to 36")
	case in.Token == "" && in.InstanceID == "":
		return Ref{}, validation("Either the lifecycle action token or the instance ID is required")
	}
	return Ref{Group: in.Group, Hook: in.Hook, Token: in.Token, InstanceID: in.InstanceID}, nil
}

func (a *api) complete(_ context.Context, _ *wire.Request, in *actionInput) (*wire.None, error) {
	ref, err := in.ref()
	if err != nil {
		return nil, err
	}
	if in.Result != Continue && in.Result != Abandon {
		return nil, validation("Invalid lifecycle action result '%s'; use CONTINUE or ABANDON", in.Result)
	}
	return &wire.None{}, a.state.Complete(ref, in.Result)
}

func (a *api) heartbeat(_ context.Context, _ *wire.Request, in *actionInput) (*wire.None, error) {
	ref, err := in.ref()
	if err != nil {
		return nil, err
	}
	return &wire.None{}, a.state.Heartbeat(ref)
}
