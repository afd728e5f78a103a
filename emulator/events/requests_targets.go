package events

import (
	"context"
	"fmt"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// targetOnWire is a target as PutTargets takes it and ListTargetsByRule shows it.
type targetOnWire struct {
	ID               string               `json:"Id"`
	Arn              string               `json:"Arn"`
	RoleArn          string               `json:"RoleArn,omitempty"`
	Input            string               `json:"Input,omitempty"`
	InputPath        string               `json:"InputPath,omitempty"`
	InputTransformer *transformerOnWire   `json:"InputTransformer,omitempty"`
	DeadLetterConfig *deadLetterOnWire    `json:"DeadLetterConfig,omitempty"`
	RetryPolicy      *RetryPolicy         `json:"RetryPolicy,omitempty"`
	SqsParameters    *sqsParametersOnWire `json:"SqsParameters,omitempty"`
}

type transformerOnWire struct {
	InputPathsMap map[string]string `json:",omitempty"`
	InputTemplate string
}

type deadLetterOnWire struct{ Arn string }

type sqsParametersOnWire struct {
	MessageGroupID string `json:"MessageGroupId"`
}

func (t targetOnWire) target() (Target, error) {
	switch {
	case t.RoleArn != "":
		return Target{}, validation("RoleArn is not supported for target %s: SQS queues are authorized by their queue policy.", t.ID)
	case t.SqsParameters != nil:
		return Target{}, validation("Parameter(s) SqsParameters not valid for target %s: it is no FIFO queue.", t.ID)
	}
	out := Target{ID: t.ID, ARN: t.Arn, Input: t.Input, InputPath: t.InputPath, Retry: t.RetryPolicy}
	if t.InputTransformer != nil {
		out.Transformer = &Transformer{Paths: t.InputTransformer.InputPathsMap, Template: t.InputTransformer.InputTemplate}
	}
	if t.DeadLetterConfig != nil {
		out.DeadLetterARN = t.DeadLetterConfig.Arn
	}
	return out, nil
}

func targetToWire(t Target) targetOnWire {
	out := targetOnWire{ID: t.ID, Arn: t.ARN, Input: t.Input, InputPath: t.InputPath, RetryPolicy: t.Retry}
	if t.Transformer != nil {
		out.InputTransformer = &transformerOnWire{t.Transformer.Paths, t.Transformer.Template}
	}
	if t.DeadLetterARN != "" {
		out.DeadLetterConfig = &deadLetterOnWire{t.DeadLetterARN}
	}
	return out
}

type putTargetsInput struct {
	Rule         string
	EventBusName string
	Targets      []targetOnWire
}

// failedTarget is an entry for which PutTargets or RemoveTargets failed.
type failedTarget struct {
	TargetID     string `json:"TargetId"`
	ErrorCode    string
	ErrorMessage string
}

type failedTargets struct {
	FailedEntryCount int
	FailedEntries    []failedTarget
}

func (a *api) putTargets(_ context.Context, _ *wire.Request, in *putTargetsInput) (*failedTargets, error) {
	if n := len(in.Targets); n < 1 || n > maxPerCall {
		return nil, constraint(fmt.Sprintf("[%d entries]", n), "targets", "have length between 1 and 10")
	}
	var targets []Target
	for _, t := range in.Targets {
		target, err := t.target()
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	if err := a.state.PutTargets(in.EventBusName, in.Rule, targets); err != nil {
		return nil, err
	}
	return &failedTargets{FailedEntries: []failedTarget{}}, nil
}

type removeTargetsInput struct {
	Rule         string
	EventBusName string
	IDs          []string `json:"Ids"`
}

func (a *api) removeTargets(_ context.Context, _ *wire.Request, in *removeTargetsInput) (*failedTargets, error) {
	if n := len(in.IDs); n < 1 || n > 100 {
		return nil, constraint(fmt.Sprintf("[%d entries]", n), "ids", "have length between 1 and 100")
	}
	unknown, err := a.state.RemoveTargets(in.EventBusName, in.Rule, in.IDs)
	if err != nil {
		return nil, err
	}
	out := &failedTargets{FailedEntryCount: len(unknown), FailedEntries: []failedTarget{}}
	for _, id := range unknown {
		out.FailedEntries = append(out.FailedEntries, failedTarget{
			id, "ResourceNotFoundException", fmt.Sprintf("Target %s does not exist on rule %s.", id, in.Rule),
		})
	}
	return out, nil
}

type listTargetsInput struct {
	paging

	Rule         string
	EventBusName string
}

type listTargetsOutput struct {
	Targets   []targetOnWire
	NextToken string `json:",omitempty"`
}

func (a *api) listTargetsByRule(_ context.Context, _ *wire.Request, in *listTargetsInput) (*listTargetsOutput, error) {
	all, err := a.state.Targets(in.EventBusName, in.Rule)
	if err != nil {
		return nil, err
	}
	targets, next, err := page(all, in.paging)
	out := &listTargetsOutput{Targets: []targetOnWire{}, NextToken: next}
	for _, t := range targets {
		out.Targets = append(out.Targets, targetToWire(t))
	}
	return out, err
}
