package autoscaling

import (
	"context"
	"maps"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type activityReply struct {
	ID            string `xml:"ActivityId"`
	Group         string `xml:"AutoScalingGroupName"`
	GroupARN      string `xml:"AutoScalingGroupARN,omitempty"`
	Description   string
	Cause         string
	StartTime     wire.Time
	EndTime       wire.Time
	StatusCode    string
	StatusMessage string `xml:",omitempty"`
	Progress      int
	Details       string
}

func activityToWire(a Activity, groupARN string) activityReply {
	details, err := wire.JSON(map[string]string{"Subnet ID": a.SubnetID, "Availability Zone": a.Zone})
	if err != nil {
		details = nil // strings always encode
	}
	return activityReply{
		ID: a.ID, Group: a.Group, GroupARN: groupARN, Description: a.Description, Cause: a.Cause, StartTime: wire.Time{Time: a.Start},
		EndTime: wire.Time{Time: a.End}, StatusCode: a.Status, StatusMessage: a.Message, Progress: a.Progress, Details: string(details),
	}
}

type describeActivitiesInput struct {
	paging

	Group string   `query:"AutoScalingGroupName"`
	IDs   []string `query:"ActivityIds"`
}

func (a *api) describeActivities(_ context.Context, _ *wire.Request, in *describeActivitiesInput) (*activitiesReply, error) {
	if in.Group != "" && a.state.GroupARN(in.Group) == "" {
		return nil, groupNotFound(in.Group)
	}
	list := slices.DeleteFunc(a.state.Activities(in.Group), func(act Activity) bool {
		return len(in.IDs) > 0 && !slices.Contains(in.IDs, act.ID)
	})
	list, next, err := page(list, in.paging, maxGroups)
	if err != nil {
		return nil, err
	}
	out, err := a.activities(list, nil)
	out.NextToken = next
	return out, err
}

type refreshInput struct {
	paging

	Group       string `query:"AutoScalingGroupName"`
	Strategy    string
	Preferences struct {
		MinHealthyPercentage      *int
		SkipMatching              bool
		ScaleInProtectedInstances string
	}
	DesiredConfiguration *struct{}
	IDs                  []string `query:"InstanceRefreshIds"`
}

type refreshIDReply struct {
	ID string `xml:"InstanceRefreshId"`
}

func (a *api) startRefresh(_ context.Context, _ *wire.Request, in *refreshInput) (*refreshIDReply, error) {
	switch {
	case in.Strategy != "" && in.Strategy != "Rolling":
		return nil, validation("This emulator plays the strategy Rolling only.")
	case in.DesiredConfiguration != nil:
		return nil, validation("This emulator does not play DesiredConfiguration: update the group first.")
	}
	id, err := a.state.StartRefresh(in.Group, RefreshOptions{
		MinHealthy: in.Preferences.MinHealthyPercentage, SkipMatching: in.Preferences.SkipMatching,
		Protected: in.Preferences.ScaleInProtectedInstances,
	})
	return &refreshIDReply{id}, err
}

func (a *api) cancelRefresh(_ context.Context, _ *wire.Request, in *refreshInput) (*refreshIDReply, error) {
	id, err := a.state.CancelRefresh(in.Group)
	return &refreshIDReply{id}, err
}

type refreshReply struct {
	ID                 string `xml:"InstanceRefreshId"`
	Group              string `xml:"AutoScalingGroupName"`
	Status             string
	StartTime, EndTime wire.Time
	PercentageComplete int
	InstancesToUpdate  int
	Strategy           string
	Preferences        struct {
		MinHealthyPercentage int
		SkipMatching         bool
	}
}

type refreshesReply struct {
	Refreshes wire.Members[refreshReply] `xml:"InstanceRefreshes"`
	NextToken string                     `xml:",omitempty"`
}

func (a *api) describeRefreshes(_ context.Context, _ *wire.Request, in *refreshInput) (*refreshesReply, error) {
	list, err := a.state.Refreshes(in.Group)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(r Refresh) bool { return len(in.IDs) > 0 && !slices.Contains(in.IDs, r.ID) })
	list, next, err := page(list, in.paging, maxGroups)
	out := &refreshesReply{NextToken: next}
	for _, r := range list {
		reply := refreshReply{
			ID: r.ID, Group: r.Group, Status: r.Status, StartTime: wire.Time{Time: r.Start}, EndTime: wire.Time{Time: r.End},
			PercentageComplete: 100, InstancesToUpdate: r.Left, Strategy: "Rolling",
		}
		if r.Total > 0 {
			reply.PercentageComplete = 100 * (r.Total - r.Left) / r.Total
		}
		reply.Preferences.MinHealthyPercentage, reply.Preferences.SkipMatching = r.Options.minHealthy(), r.Options.SkipMatching
		out.Refreshes = append(out.Refreshes, reply)
	}
	return out, err
}

type tagInput struct {
	ResourceID        string `query:"ResourceId"`
	ResourceType      string
	Key, Value        string
	PropagateAtLaunch bool
}

// put sets the tag on a group.
func (t tagInput) put(g *Group) {
	g.Tags = maps.Clone(g.Tags)
	if g.Tags == nil {
		g.Tags = map[string]string{}
	}
	g.Tags[t.Key] = t.Value
	g.NotPropagated = slices.DeleteFunc(slices.Clone(g.NotPropagated), func(key string) bool { return key == t.Key })
	if !t.PropagateAtLaunch {
		g.NotPropagated = append(g.NotPropagated, t.Key)
	}
}

type tagsInput struct {
	paging

	Tags    []tagInput
	Filters []filter
}

func (a *api) putTags(_ context.Context, _ *wire.Request, in *tagsInput) (*wire.None, error) {
	return nil, a.state.retag(in.Tags, func(g *Group, t tagInput) { t.put(g) })
}

func (a *api) deleteTags(_ context.Context, _ *wire.Request, in *tagsInput) (*wire.None, error) {
	return nil, a.state.retag(in.Tags, func(g *Group, t tagInput) {
		g.Tags = maps.Clone(g.Tags)
		if value, ok := g.Tags[t.Key]; ok && (t.Value == "" || t.Value == value) {
			delete(g.Tags, t.Key)
		}
	})
}

// retag changes tags of groups; existing instances keep theirs.
func (s *State) retag(tags []tagInput, change func(*Group, tagInput)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tags {
		switch {
		case t.ResourceType != "" && t.ResourceType != groupResource:
			return validation("The resource type %s is not valid: use %s.", t.ResourceType, groupResource)
		case s.groups[t.ResourceID] == nil:
			return groupNotFound(t.ResourceID)
		case t.Key == "":
			return constraint("", "tags.1.member.key", "have length greater than or equal to 1")
		}
	}
	for _, t := range tags {
		change(&s.groups[t.ResourceID].Group, t)
	}
	return nil
}

type tagsReply struct {
	Tags      wire.Members[tagReply]
	NextToken string `xml:",omitempty"`
}

func (a *api) describeTags(_ context.Context, _ *wire.Request, in *tagsInput) (*tagsReply, error) {
	var list []tagReply
	for _, g := range a.state.describe() {
		list = append(list, tagsToWire(g)...)
	}
	for _, f := range in.Filters {
		of := map[string]func(tagReply) string{
			"auto-scaling-group": func(t tagReply) string { return t.ResourceID },
			"key":                func(t tagReply) string { return t.Key },
			"value":              func(t tagReply) string { return t.Value },
			"propagate-at-launch": func(t tagReply) string {
				return map[bool]string{true: "true", false: "false"}[t.PropagateAtLaunch]
			},
		}[f.Name]
		if of == nil {
			return nil, validation("Filter type %s is not correct. Allowed Filter types are: auto-scaling-group, key, value, propagate-at-launch", f.Name)
		}
		list = slices.DeleteFunc(list, func(t tagReply) bool { return !slices.Contains(f.Values, of(t)) })
	}
	list, next, err := page(list, in.paging, maxGroups)
	return &tagsReply{list, next}, err
}
