package events

import (
	"context"
	"regexp"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

var busPattern = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,256}$`)

type busInput struct {
	paging

	Name        string
	NamePrefix  string
	Description string
}

type busOnWire struct {
	Name             string
	Arn              string
	Description      string `json:",omitempty"`
	CreationTime     wire.Time
	LastModifiedTime wire.Time
}

func busToWire(b Bus) busOnWire {
	at := wire.Time{Time: b.Created}
	return busOnWire{b.Name, b.ARN, b.Description, at, at}
}

type createBusOutput struct{ EventBusArn string }

func (a *api) createEventBus(_ context.Context, _ *wire.Request, in *busInput) (*createBusOutput, error) {
	if !busPattern.MatchString(in.Name) {
		return nil, constraint(in.Name, "name", `satisfy regular expression pattern: [\.\-_A-Za-z0-9]+`)
	}
	arn, err := a.state.CreateBus(in.Name, in.Description)
	return &createBusOutput{arn}, err
}

func (a *api) deleteEventBus(_ context.Context, _ *wire.Request, in *busInput) (*wire.None, error) {
	return nil, a.state.DeleteBus(busName(in.Name))
}

func (a *api) describeEventBus(_ context.Context, _ *wire.Request, in *busInput) (*busOnWire, error) {
	name, all := busName(in.Name), a.state.Buses("")
	i := slices.IndexFunc(all, func(b Bus) bool { return b.Name == name })
	if i < 0 {
		return nil, busNotFound(name)
	}
	out := busToWire(all[i])
	return &out, nil
}

type listBusesOutput struct {
	EventBuses []busOnWire
	NextToken  string `json:",omitempty"`
}

func (a *api) listEventBuses(_ context.Context, _ *wire.Request, in *busInput) (*listBusesOutput, error) {
	buses, next, err := page(a.state.Buses(in.NamePrefix), in.paging)
	out := &listBusesOutput{EventBuses: []busOnWire{}, NextToken: next}
	for _, b := range buses {
		out.EventBuses = append(out.EventBuses, busToWire(b))
	}
	return out, err
}
