package ssm

import (
	"context"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// maxNames is how many parameters a request may ask for (AWS Systems Manager API
// Reference, GetParameters).
const maxNames = 10

// api turns requests into calls on the state.
type api struct{ state *State }

type parameter struct {
	Name             string
	Type             string
	Value            string
	Version          int
	LastModifiedDate wire.Time
	ARN              string
	DataType         string
}

func toWire(p Parameter) parameter {
	return parameter{p.Name, "String", p.Value, p.Version, wire.Time{Time: p.Modified}, p.ARN, "text"}
}

type getInput struct{ Name string }

type getOutput struct{ Parameter parameter }

func (a *api) getParameter(_ context.Context, _ *wire.Request, in *getInput) (*getOutput, error) {
	if in.Name == "" {
		return nil, wire.Errorf("ValidationException", "1 validation error detected: Value at 'name' failed to satisfy constraint: Member must not be null")
	}
	p, ok := a.state.Parameter(in.Name)
	if !ok {
		return nil, wire.Errorf("ParameterNotFound", "") // AWS sends no message either
	}
	return &getOutput{toWire(p)}, nil
}

type getAllInput struct{ Names []string }

type getAllOutput struct {
	Parameters        []parameter
	InvalidParameters []string
}

func (a *api) getParameters(_ context.Context, _ *wire.Request, in *getAllInput) (*getAllOutput, error) {
	if n := len(in.Names); n < 1 || n > maxNames {
		return nil, wire.Errorf("ValidationException", "1 validation error detected: Value '%v' at 'names' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d, and greater than or equal to 1", in.Names, maxNames)
	}
	out := &getAllOutput{Parameters: []parameter{}, InvalidParameters: []string{}}
	for _, name := range in.Names {
		if p, ok := a.state.Parameter(name); ok {
			out.Parameters = append(out.Parameters, toWire(p))
		} else {
			out.InvalidParameters = append(out.InvalidParameters, name)
		}
	}
	return out, nil
}
