package ec2

import (
	"context"
	"slices"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type createTemplateInput struct {
	LaunchTemplateID   string `query:"LaunchTemplateId"`
	LaunchTemplateName string
	VersionDescription string
	SourceVersion      string
	ClientToken        string
	Data               *TemplateData      `query:"LaunchTemplateData"`
	TagSpecifications  []TagSpecification `query:"TagSpecification"`
}

type templateReply struct {
	Template templateInfo `xml:"launchTemplate"`
}

func (a *api) createLaunchTemplate(_ context.Context, _ *wire.Request, in *createTemplateInput) (*templateReply, error) {
	if in.Data == nil {
		return nil, missingParameter("LaunchTemplateData")
	}
	t, err := a.state.CreateTemplate(in.LaunchTemplateName, in.VersionDescription, in.ClientToken, *in.Data,
		tagsFor("launch-template", in.TagSpecifications))
	if err != nil {
		return nil, err
	}
	return &templateReply{templateToWire(t)}, nil
}

type versionReply struct {
	Version versionInfo `xml:"launchTemplateVersion"`
}

func (a *api) createLaunchTemplateVersion(_ context.Context, _ *wire.Request, in *createTemplateInput) (*versionReply, error) {
	if in.Data == nil {
		return nil, missingParameter("LaunchTemplateData")
	}
	ref := TemplateRef{ID: in.LaunchTemplateID, Name: in.LaunchTemplateName}
	t, v, err := a.state.AddTemplateVersion(ref, in.SourceVersion, in.VersionDescription, *in.Data)
	if err != nil {
		return nil, err
	}
	return &versionReply{versionToWire(t, v)}, nil
}

type templateRefInput struct {
	LaunchTemplateID   string `query:"LaunchTemplateId"`
	LaunchTemplateName string
	SetDefaultVersion  string
}

func (a *api) modifyLaunchTemplate(_ context.Context, _ *wire.Request, in *templateRefInput) (*templateReply, error) {
	t, err := a.state.SetDefaultVersion(TemplateRef{in.LaunchTemplateID, in.LaunchTemplateName, in.SetDefaultVersion})
	if err != nil {
		return nil, err
	}
	return &templateReply{templateToWire(t)}, nil
}

func (a *api) deleteLaunchTemplate(_ context.Context, _ *wire.Request, in *templateRefInput) (*templateReply, error) {
	t, err := a.state.DeleteTemplate(TemplateRef{ID: in.LaunchTemplateID, Name: in.LaunchTemplateName})
	if err != nil {
		return nil, err
	}
	return &templateReply{templateToWire(t)}, nil
}

type templatesInput struct {
	paging

	IDs     []string `query:"LaunchTemplateId"`
	Names   []string `query:"LaunchTemplateName"`
	Filters []Filter `query:"Filter"`
}

type templatesReply struct {
	Templates wire.Set[templateInfo] `xml:"launchTemplates"`
	NextToken string                 `xml:"nextToken,omitempty"`
}

func (a *api) describeLaunchTemplates(_ context.Context, _ *wire.Request, in *templatesInput) (*templatesReply, error) {
	list, err := byID(a.state.Templates(), in.IDs, func(t Template) string { return t.ID }, templateIDNotFound)
	if err != nil {
		return nil, err
	}
	if list, err = byID(list, in.Names, func(t Template) string { return t.Name }, templateNameNotFound); err != nil {
		return nil, err
	}
	list, err = filtered(list, in.Filters, func(t Template) map[string]string { return t.Tags }, map[string]field[Template]{
		"create-time":          one(func(t Template) string { return t.Created.Format("2006-01-02T15:04:05.000Z") }),
		"launch-template-id":   one(func(t Template) string { return t.ID }),
		"launch-template-name": one(func(t Template) string { return t.Name }),
	})
	if err != nil {
		return nil, err
	}
	list, next, err := pageUpTo(list, in.paging, 1, 200)
	out := &templatesReply{NextToken: next}
	for _, t := range list {
		out.Templates = append(out.Templates, templateToWire(t))
	}
	return out, err
}

type versionsInput struct {
	paging

	LaunchTemplateID   string `query:"LaunchTemplateId"`
	LaunchTemplateName string
	Versions           []string `query:"LaunchTemplateVersion"`
}

type versionsReply struct {
	Versions  wire.Set[versionInfo] `xml:"launchTemplateVersionSet"`
	NextToken string                `xml:"nextToken,omitempty"`
}

// describeLaunchTemplateVersions lists the versions of one template, the newest first.
func (a *api) describeLaunchTemplateVersions(_ context.Context, _ *wire.Request, in *versionsInput) (*versionsReply, error) {
	ref := TemplateRef{ID: in.LaunchTemplateID, Name: in.LaunchTemplateName, Version: "$Latest"}
	t, _, err := a.state.FindTemplate(ref)
	if err != nil {
		return nil, err
	}
	list := t.Versions
	if len(in.Versions) > 0 {
		list = nil
	}
	for _, number := range in.Versions {
		v, err := t.version(number)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	slices.SortStableFunc(list, func(a, b TemplateVersion) int { return b.Number - a.Number })
	list, next, err := pageUpTo(list, in.paging, 1, 200)
	out := &versionsReply{NextToken: next}
	for _, v := range list {
		out.Versions = append(out.Versions, versionToWire(t, v))
	}
	return out, err
}

type deleteVersionsInput struct {
	LaunchTemplateID   string `query:"LaunchTemplateId"`
	LaunchTemplateName string
	Versions           []string `query:"LaunchTemplateVersion"`
}

type versionOutcome struct {
	ID      string `xml:"launchTemplateId"`
	Name    string `xml:"launchTemplateName"`
	Number  int    `xml:"versionNumber"`
	Code    string `xml:"responseError>code,omitempty"`
	Message string `xml:"responseError>message,omitempty"`
}

type deleteVersionsReply struct {
	Deleted wire.Set[versionOutcome] `xml:"successfullyDeletedLaunchTemplateVersionSet"`
	Failed  wire.Set[versionOutcome] `xml:"unsuccessfullyDeletedLaunchTemplateVersionSet"`
}

// deleteLaunchTemplateVersions answers for each version separately.
func (a *api) deleteLaunchTemplateVersions(_ context.Context, _ *wire.Request, in *deleteVersionsInput) (*deleteVersionsReply, error) {
	if len(in.Versions) == 0 {
		return nil, missingParameter("LaunchTemplateVersion")
	}
	out := &deleteVersionsReply{}
	for _, text := range in.Versions {
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, invalidValue("Invalid launch template version: " + text)
		}
		ref := TemplateRef{in.LaunchTemplateID, in.LaunchTemplateName, text}
		t, problem, err := a.state.DeleteTemplateVersion(ref)
		if err != nil {
			return nil, err
		}
		outcome := versionOutcome{ID: t.ID, Name: t.Name, Number: number}
		if problem == "" {
			out.Deleted = append(out.Deleted, outcome)
			continue
		}
		outcome.Code, outcome.Message = problem, "The version "+text+" was not deleted."
		out.Failed = append(out.Failed, outcome)
	}
	return out, nil
}
