package ec2

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct{ state *State }

type runInput struct {
	TemplateData

	MinCount, MaxCount int
	SubnetID           string `query:"SubnetId"`
	ClientToken        string
	LaunchTemplate     TemplateRef
}

func (a *api) runInstances(_ context.Context, _ *wire.Request, in *runInput) (*reservationReply, error) {
	data, system := in.TemplateData, map[string]string(nil)
	if in.LaunchTemplate != (TemplateRef{}) {
		t, v, err := a.state.FindTemplate(in.LaunchTemplate)
		if err != nil {
			return nil, err
		}
		data, system = data.over(v.Data), templateTags(t.ID, strconv.Itoa(v.Number))
	}
	input, err := data.launch()
	if err != nil {
		return nil, err
	}
	input.Min, input.Max, input.ClientToken, input.systemTags = in.MinCount, in.MaxCount, in.ClientToken, system
	if in.SubnetID != "" {
		input.SubnetID = in.SubnetID
	}
	if id := data.Placement.AvailabilityZoneID; id != "" && input.Zone == "" {
		if input.Zone = a.state.zoneOf(id); input.Zone == "" {
			return nil, invalidValue("Invalid availability zone id: [" + id + "]")
		}
	}
	list, err := a.state.Launch(input)
	if err != nil {
		return nil, err
	}
	made := reservations(list, a.state.scope.Account)
	if len(made) == 0 {
		// All instances of the token are deleted.
		return nil, tokenReused()
	}
	return &made[0], nil
}

type idsInput struct {
	InstanceIDs []string `query:"InstanceId"`
	// Of StopInstances and TerminateInstances: do not wait for the operating system.
	Force, SkipOsShutdown bool
}

func (in *idsInput) check() error {
	if len(in.InstanceIDs) == 0 {
		return missingParameter("InstanceId")
	}
	return nil
}

// transition makes an action that starts, stops or terminates instances. skip cuts the power
// without waiting for operating systems; nil if the action has no such option.
func transition(f func(ids []string) ([]Transition, error), skip func(ids []string)) wire.Action {
	return wire.Do(func(_ context.Context, _ *wire.Request, in *idsInput) (*transitionsReply, error) {
		if err := in.check(); err != nil {
			return nil, err
		}
		list, err := f(in.InstanceIDs)
		if err != nil {
			return nil, err
		}
		if skip != nil && (in.Force || in.SkipOsShutdown) {
			skip(in.InstanceIDs)
		}
		return transitionsToWire(list), nil
	})
}

func (a *api) rebootInstances(_ context.Context, _ *wire.Request, in *idsInput) (*wire.None, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return nil, a.state.Reboot(in.InstanceIDs)
}

type describeInput struct {
	paging

	InstanceIDs         []string `query:"InstanceId"`
	Filters             []Filter `query:"Filter"`
	IncludeAllInstances bool
}

// check rejects page sizes together with ids.
func (in *describeInput) check() error {
	if len(in.InstanceIDs) > 0 && in.MaxResults != nil {
		return invalidCombination("The parameter instancesSet cannot be used with the parameter maxResults")
	}
	return nil
}

type describeReply struct {
	Reservations wire.Set[reservationReply] `xml:"reservationSet"`
	NextToken    string                     `xml:"nextToken,omitempty"`
}

func (a *api) describeInstances(_ context.Context, _ *wire.Request, in *describeInput) (*describeReply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	list, err := a.state.Describe(in.InstanceIDs, in.Filters)
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	return &describeReply{reservations(list, a.state.scope.Account), next}, err
}

type statusesReply struct {
	Statuses  wire.Set[instanceStatusReply] `xml:"instanceStatusSet"`
	NextToken string                        `xml:"nextToken,omitempty"`
}

// maxStatusIDs bounds the ids of one DescribeInstanceStatus call (EC2 API Reference).
const maxStatusIDs = 100

func (a *api) describeInstanceStatus(_ context.Context, _ *wire.Request, in *describeInput) (*statusesReply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if n := len(in.InstanceIDs); n > maxStatusIDs {
		return nil, invalidValue(fmt.Sprintf("The number of instance IDs (%d) exceeds the maximum of %d", n, maxStatusIDs))
	}
	list, err := a.state.DescribeStatus(in.InstanceIDs, in.Filters, in.IncludeAllInstances)
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	out := &statusesReply{NextToken: next}
	for _, in := range list {
		out.Statuses = append(out.Statuses, statusToWire(in))
	}
	return out, err
}

type spotInput struct {
	paging

	IDs     []string `query:"SpotInstanceRequestId"`
	Filters []Filter `query:"Filter"`
}

type spotReply struct {
	Requests  wire.Set[spotRequestReply] `xml:"spotInstanceRequestSet"`
	NextToken string                     `xml:"nextToken,omitempty"`
}

func (a *api) describeSpotInstanceRequests(_ context.Context, _ *wire.Request, in *spotInput) (*spotReply, error) {
	list, err := a.state.DescribeSpotRequests(in.IDs, in.Filters)
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	out := &spotReply{NextToken: next}
	for _, r := range list {
		out.Requests = append(out.Requests, spotRequestToWire(r))
	}
	return out, err
}

type cancelledReply struct {
	Requests wire.Set[cancelledRequest] `xml:"spotInstanceRequestSet"`
}

type cancelledRequest struct {
	ID    string `xml:"spotInstanceRequestId"`
	State string `xml:"state"`
}

func (a *api) cancelSpotInstanceRequests(_ context.Context, _ *wire.Request, in *spotInput) (*cancelledReply, error) {
	if len(in.IDs) == 0 {
		return nil, missingParameter("SpotInstanceRequestId")
	}
	list, err := a.state.CancelSpotRequests(in.IDs)
	out := &cancelledReply{}
	for _, r := range list {
		out.Requests = append(out.Requests, cancelledRequest{r.ID, r.State})
	}
	return out, err
}

type tagsInput struct {
	ResourceIDs []string `query:"ResourceId"`
	Tags        []struct {
		Key   string
		Value *string
	} `query:"Tag"`
}

// tags are the tags with their values; one without a value is empty.
func (in *tagsInput) tags() map[string]string {
	tags := map[string]string{}
	for _, t := range in.Tags {
		tags[t.Key] = ""
		if t.Value != nil {
			tags[t.Key] = *t.Value
		}
	}
	return tags
}

func (a *api) createTags(_ context.Context, _ *wire.Request, in *tagsInput) (*wire.None, error) {
	if len(in.ResourceIDs) == 0 {
		return nil, missingParameter("ResourceId")
	}
	return nil, a.state.CreateTags(in.ResourceIDs, in.tags())
}

func (a *api) deleteTags(_ context.Context, _ *wire.Request, in *tagsInput) (*wire.None, error) {
	tags := map[string]*string{}
	for _, t := range in.Tags {
		tags[t.Key] = t.Value
	}
	return nil, a.state.DeleteTags(in.ResourceIDs, tags)
}

// dryRunnable answers a request with DryRun=true as EC2 answers an allowed one.
func dryRunnable(f wire.Action) wire.Action {
	return func(ctx context.Context, r *wire.Request) (any, error) {
		if strings.EqualFold(r.Form.Get("DryRun"), "true") {
			return nil, dryRun()
		}
		return f(ctx, r)
	}
}
