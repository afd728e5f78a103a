package sqs

import (
	"context"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type getQueueAttributesInput struct {
	queueRef

	AttributeNames []string `query:"AttributeName"`
}

type queueAttributesOutput struct {
	Attributes wire.Attributes `json:",omitempty" xml:"Attribute"`
}

func (a *api) getQueueAttributes(_ context.Context, r *wire.Request, in *getQueueAttributesInput) (*queueAttributesOutput, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	all, err := a.state.Attributes(name)
	if err != nil || slices.Contains(in.AttributeNames, "All") {
		return &queueAttributesOutput{Attributes: all}, err
	}
	chosen := wire.Attributes{}
	for _, attribute := range in.AttributeNames {
		if !known(attribute) {
			return nil, unknownAttribute(attribute)
		}
		if value, ok := all[attribute]; ok {
			chosen[attribute] = value
		}
	}
	return &queueAttributesOutput{Attributes: chosen}, nil
}

type setQueueAttributesInput struct {
	queueRef

	Attributes map[string]string `query:"Attribute,Name,Value"`
}

func (a *api) setQueueAttributes(_ context.Context, r *wire.Request, in *setQueueAttributesInput) (*wire.None, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	if len(in.Attributes) == 0 {
		return nil, missingParameter("Attribute.Name")
	}
	return nil, a.state.SetAttributes(name, in.Attributes)
}

type tagQueueInput struct {
	queueRef

	Tags map[string]string `query:"Tag,Key,Value"`
}

func (a *api) tagQueue(_ context.Context, r *wire.Request, in *tagQueueInput) (*wire.None, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, missingParameter("Tags")
	}
	return nil, a.state.Tag(name, in.Tags, nil)
}

type untagQueueInput struct {
	queueRef

	TagKeys []string `query:"TagKey"`
}

func (a *api) untagQueue(_ context.Context, r *wire.Request, in *untagQueueInput) (*wire.None, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	if len(in.TagKeys) == 0 {
		return nil, missingParameter("TagKeys")
	}
	return nil, a.state.Tag(name, nil, in.TagKeys)
}

type listQueueTagsOutput struct {
	Tags wire.Tags `json:",omitempty" xml:"Tag"`
}

func (a *api) listQueueTags(_ context.Context, r *wire.Request, in *queueRef) (*listQueueTagsOutput, error) {
	name, err := a.queue(r, *in)
	if err != nil {
		return nil, err
	}
	tags, err := a.state.Tags(name)
	return &listQueueTagsOutput{Tags: tags}, err
}

type addPermissionInput struct {
	queueRef

	Label         string
	AWSAccountIDs []string `json:"AWSAccountIds" query:"AWSAccountId"`
	Actions       []string `query:"ActionName"`
}

func (a *api) addPermission(_ context.Context, r *wire.Request, in *addPermissionInput) (*wire.None, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Label == "":
		return nil, missingParameter("Label")
	case len(in.AWSAccountIDs) == 0:
		return nil, missingParameter("PrincipalId")
	case len(in.Actions) == 0:
		return nil, missingParameter("ActionName")
	}
	return nil, a.state.AddPermission(name, in.Label, in.AWSAccountIDs, in.Actions)
}

type removePermissionInput struct {
	queueRef

	Label string
}

func (a *api) removePermission(_ context.Context, r *wire.Request, in *removePermissionInput) (*wire.None, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	return nil, a.state.RemovePermission(name, in.Label)
}

type startMoveInput struct {
	SourceArn      string
	DestinationArn string
}

type moveHandle struct {
	TaskHandle string
}

func (a *api) startMessageMoveTask(_ context.Context, _ *wire.Request, in *startMoveInput) (*moveHandle, error) {
	if in.SourceArn == "" {
		return nil, missingParameter("SourceArn")
	}
	task, err := a.state.Move(in.SourceArn, in.DestinationArn)
	return &moveHandle{TaskHandle: task.Handle}, err
}

type listMovesInput struct {
	SourceArn  string
	MaxResults *int
}

type moveResult struct {
	Status         string
	SourceArn      string
	DestinationArn string `json:",omitempty" xml:",omitempty"`
	Moved          int    `json:"ApproximateNumberOfMessagesMoved" xml:"ApproximateNumberOfMessagesMoved"`
	Started        int64  `json:"StartedTimestamp" xml:"StartedTimestamp"`
}

type listMovesOutput struct {
	Results []moveResult `xml:"ListMessageMoveTasksResultEntry"`
}

func (a *api) listMessageMoveTasks(_ context.Context, _ *wire.Request, in *listMovesInput) (*listMovesOutput, error) {
	limit := orDefault(in.MaxResults, 1)
	if limit < 1 || limit > 10 {
		return nil, badParameter("Value %d for parameter MaxResults is invalid. Reason: must be between 1 and 10.", limit)
	}
	tasks, err := a.state.Moves(in.SourceArn, limit)
	if err != nil {
		return nil, err
	}
	out := &listMovesOutput{Results: []moveResult{}}
	for _, task := range tasks {
		out.Results = append(out.Results, moveResult{
			Status:         "COMPLETED",
			SourceArn:      task.Source,
			DestinationArn: task.Destination,
			Moved:          task.Moved,
			Started:        task.Started.Truncate(time.Millisecond).UnixMilli(),
		})
	}
	return out, nil
}

func (a *api) cancelMessageMoveTask(_ context.Context, _ *wire.Request, in *moveHandle) (*wire.None, error) {
	return nil, a.state.CancelMove(in.TaskHandle)
}
