package fis

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct{ state *State }

type createInput struct {
	ClientToken         string            `json:"clientToken"`
	Description         string            `json:"description"`
	Targets             map[string]Target `json:"targets"`
	Actions             map[string]Action `json:"actions"`
	StopConditions      []StopCondition   `json:"stopConditions"`
	RoleARN             string            `json:"roleArn"`
	Tags                map[string]string `json:"tags"`
	Options             TemplateOptions   `json:"experimentOptions"`
	LogConfiguration    json.RawMessage   `json:"logConfiguration"`
	ReportConfiguration json.RawMessage   `json:"experimentReportConfiguration"`
}

type templateOutput struct {
	Template Template `json:"experimentTemplate"`
}

func (a *api) createTemplate(_ context.Context, _ *wire.Request, in *createInput) (*templateOutput, error) {
	if in.LogConfiguration != nil || in.ReportConfiguration != nil {
		return nil, validation("Logs and reports of experiments are not supported by this emulator.")
	}
	t, err := a.state.CreateTemplate(Template{
		Description: in.Description, Targets: in.Targets, Actions: in.Actions,
		StopConditions: in.StopConditions, RoleARN: in.RoleARN, Tags: in.Tags, Options: in.Options,
	}, in.ClientToken)
	return &templateOutput{t}, err
}

func (a *api) getTemplate(_ context.Context, r *wire.Request, _ *wire.None) (*templateOutput, error) {
	t, err := a.state.Template(r.Param("id"))
	return &templateOutput{t}, err
}

func (a *api) deleteTemplate(_ context.Context, r *wire.Request, _ *wire.None) (*templateOutput, error) {
	t, err := a.state.DeleteTemplate(r.Param("id"))
	return &templateOutput{t}, err
}

type templateSummary struct {
	ID          string            `json:"id"`
	ARN         string            `json:"arn"`
	Description string            `json:"description"`
	Created     wire.Time         `json:"creationTime"`
	Updated     wire.Time         `json:"lastUpdateTime"`
	Tags        map[string]string `json:"tags"`
}

type listTemplatesOutput struct {
	Templates []templateSummary `json:"experimentTemplates"`
	NextToken string            `json:"nextToken,omitempty"`
}

func (a *api) listTemplates(_ context.Context, r *wire.Request, _ *wire.None) (*listTemplatesOutput, error) {
	list, next, err := page(a.state.Templates(), r)
	out := &listTemplatesOutput{Templates: []templateSummary{}, NextToken: next}
	for _, t := range list {
		out.Templates = append(out.Templates, templateSummary{t.ID, t.ARN, t.Description, t.Created, t.Updated, t.Tags})
	}
	return out, err
}

type startInput struct {
	ClientToken string            `json:"clientToken"`
	TemplateID  string            `json:"experimentTemplateId"`
	Tags        map[string]string `json:"tags"`
	Options     struct {
		ActionsMode string `json:"actionsMode"`
	} `json:"experimentOptions"`
}

type experimentOutput struct {
	Experiment Experiment `json:"experiment"`
}

func (a *api) startExperiment(_ context.Context, _ *wire.Request, in *startInput) (*experimentOutput, error) {
	e, err := a.state.Start(StartInput{
		TemplateID: in.TemplateID, ActionsMode: in.Options.ActionsMode, Tags: in.Tags, Token: in.ClientToken,
	})
	return &experimentOutput{e}, err
}

func (a *api) getExperiment(_ context.Context, r *wire.Request, _ *wire.None) (*experimentOutput, error) {
	e, err := a.state.Experiment(r.Param("id"))
	return &experimentOutput{e}, err
}

func (a *api) stopExperiment(_ context.Context, r *wire.Request, _ *wire.None) (*experimentOutput, error) {
	e, err := a.state.Stop(r.Param("id"))
	return &experimentOutput{e}, err
}

type experimentSummary struct {
	ID         string            `json:"id"`
	ARN        string            `json:"arn"`
	TemplateID string            `json:"experimentTemplateId"`
	State      Status            `json:"state"`
	Created    wire.Time         `json:"creationTime"`
	Tags       map[string]string `json:"tags"`
	Options    ExperimentOptions `json:"experimentOptions"`
}

type listExperimentsOutput struct {
	Experiments []experimentSummary `json:"experiments"`
	NextToken   string              `json:"nextToken,omitempty"`
}

func (a *api) listExperiments(_ context.Context, r *wire.Request, _ *wire.None) (*listExperimentsOutput, error) {
	list, next, err := page(a.state.Experiments(r.Param("experimentTemplateId")), r)
	out := &listExperimentsOutput{Experiments: []experimentSummary{}, NextToken: next}
	for _, e := range list {
		out.Experiments = append(out.Experiments, experimentSummary{e.ID, e.ARN, e.TemplateID, e.State, e.Created, e.Tags, e.Options})
	}
	return out, err
}

type targetKind struct {
	ResourceType string `json:"resourceType"`
}

type parameterKind struct {
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

type actionOnWire struct {
	ID          string                   `json:"id"`
	ARN         string                   `json:"arn"`
	Description string                   `json:"description"`
	Parameters  map[string]parameterKind `json:"parameters,omitempty"`
	Targets     map[string]targetKind    `json:"targets"`
	Tags        map[string]string        `json:"tags"`
}

func (a *api) actionToWire(k kind, whole bool) actionOnWire {
	out := actionOnWire{
		ID: k.id, ARN: a.state.scope.ARN("fis", "action/"+k.id), Description: k.description,
		Targets: map[string]targetKind{k.targetKey: {k.resourceType}}, Tags: map[string]string{},
	}
	if whole {
		out.Parameters = map[string]parameterKind{}
		for _, p := range k.parameters {
			out.Parameters[p.name] = parameterKind{p.description, p.required}
		}
	}
	return out
}

type actionOutput struct {
	Action actionOnWire `json:"action"`
}

func (a *api) getAction(_ context.Context, r *wire.Request, _ *wire.None) (*actionOutput, error) {
	k, ok := findKind(r.Param("id"))
	if !ok {
		return nil, notFound("Action %s does not exist.", r.Param("id"))
	}
	return &actionOutput{a.actionToWire(k, true)}, nil
}

type listActionsOutput struct {
	Actions   []actionOnWire `json:"actions"`
	NextToken string         `json:"nextToken,omitempty"`
}

func (a *api) listActions(_ context.Context, r *wire.Request, _ *wire.None) (*listActionsOutput, error) {
	list, next, err := page(kinds(), r)
	out := &listActionsOutput{Actions: []actionOnWire{}, NextToken: next}
	for _, k := range list {
		out.Actions = append(out.Actions, a.actionToWire(k, false))
	}
	return out, err
}

type tagsBody struct {
	Tags map[string]string `json:"tags"`
}

func (a *api) tagResource(_ context.Context, r *wire.Request, in *tagsBody) (*wire.None, error) {
	return nil, a.state.SetTags(r.Param("resourceArn"), in.Tags, nil)
}

func (a *api) untagResource(_ context.Context, r *wire.Request, _ *wire.None) (*wire.None, error) {
	return nil, a.state.SetTags(r.Param("resourceArn"), nil, r.Params("tagKeys"))
}

func (a *api) listTags(_ context.Context, r *wire.Request, _ *wire.None) (*tagsBody, error) {
	tags, err := a.state.Tags(r.Param("resourceArn"))
	return &tagsBody{tags}, err
}

// page returns the requested page of a list; 100 entries by default.
func page[T any](list []T, r *wire.Request) (items []T, next string, err error) {
	size, start := 100, 0
	if text := r.Param("maxResults"); text != "" {
		size, err = strconv.Atoi(text)
		if err != nil || size < 1 || size > 100 {
			return nil, "", validation("The maxResults must be 1 to 100; it is %s.", text)
		}
	}
	if token := r.Param("nextToken"); token != "" {
		raw, decodeErr := base64.URLEncoding.DecodeString(token)
		n, parseErr := strconv.Atoi(string(raw))
		if decodeErr != nil || parseErr != nil || n < 0 {
			return nil, "", validation("The nextToken is not valid.")
		}
		start = min(n, len(list))
	}
	end := min(start+size, len(list))
	if end < len(list) {
		next = base64.URLEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return slices.Clone(list[start:end]), next, nil
}
