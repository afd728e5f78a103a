package drill

import (
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/fis/types"
)

// Limits of FIS (AWS FIS User Guide, "Quotas" and the action
// aws:ec2:send-spot-instance-interruptions).
const (
	spotAction       = "aws:ec2:send-spot-instance-interruptions"
	spotResource     = "aws:ec2:spot-instance"
	targetsPerAction = 5
	actionsPerRun    = 20
	// Lead is the time between the interruption notice and the interruption. It is
	// also FIS's minimum delay before the interruption.
	Lead = 2 * time.Minute
	// MaxDelay is the maximum time before the notice: FIS waits at most 15 minutes
	// before the interruption.
	MaxDelay = 13 * time.Minute
)

// Template is an experiment template in the format of `aws fis
// create-experiment-template --cli-input-json`.
type Template struct {
	Description    string                    `json:"description"`
	RoleARN        string                    `json:"roleArn"`
	StopConditions []StopCondition           `json:"stopConditions"`
	Targets        map[string]TemplateTarget `json:"targets"`
	Actions        map[string]TemplateAction `json:"actions"`
	Tags           map[string]string         `json:"tags"`
}

// StopCondition is a condition that stops an experiment; the source "none" means no
// condition.
type StopCondition struct {
	Source string `json:"source"`
}

// TemplateTarget is a named set of resources.
type TemplateTarget struct {
	ResourceType  string   `json:"resourceType"`
	ResourceARNs  []string `json:"resourceArns"`
	SelectionMode string   `json:"selectionMode"`
}

// TemplateAction is an action on the resources of a target.
type TemplateAction struct {
	ActionID   string            `json:"actionId"`
	Parameters map[string]string `json:"parameters"`
	Targets    map[string]string `json:"targets"`
}

// Templates returns the experiments that interrupt the targets: FIS allows five
// instances per action, and twenty actions per experiment.
func (e Experiment) Templates(targets []Target) []Template {
	var all []Template
	for batch := range slices.Chunk(targets, targetsPerAction*actionsPerRun) {
		all = append(all, e.template(batch))
	}
	return all
}

func (e Experiment) template(targets []Target) Template {
	t := Template{
		Description: "Lifeboat: spot interruption on purpose", RoleARN: e.RoleARN,
		StopConditions: []StopCondition{{Source: "none"}},
		Targets:        map[string]TemplateTarget{}, Actions: map[string]TemplateAction{}, Tags: tags(),
	}
	for batch := range slices.Chunk(targets, targetsPerAction) {
		name := fmt.Sprintf("batch%02d", len(t.Actions))
		arns := make([]string, 0, len(batch))
		for _, target := range batch {
			arns = append(arns, e.Place.instanceARN(target.InstanceID))
		}
		t.Targets[name] = TemplateTarget{ResourceType: spotResource, ResourceARNs: arns, SelectionMode: "ALL"}
		t.Actions[name] = TemplateAction{
			ActionID:   spotAction,
			Parameters: map[string]string{"durationBeforeInterruption": isoDuration(Lead + e.Delay)},
			Targets:    map[string]string{"SpotInstances": name},
		}
	}
	return t
}

// input converts the template to the SDK's type.
func (t Template) input() *fis.CreateExperimentTemplateInput {
	in := &fis.CreateExperimentTemplateInput{
		Description: aws.String(t.Description), RoleArn: aws.String(t.RoleARN), Tags: t.Tags,
		Targets: map[string]types.CreateExperimentTemplateTargetInput{},
		Actions: map[string]types.CreateExperimentTemplateActionInput{},
	}
	for _, c := range t.StopConditions {
		in.StopConditions = append(in.StopConditions, types.CreateExperimentTemplateStopConditionInput{Source: aws.String(c.Source)})
	}
	for name, target := range t.Targets {
		in.Targets[name] = types.CreateExperimentTemplateTargetInput{
			ResourceType: aws.String(target.ResourceType), ResourceArns: target.ResourceARNs, SelectionMode: aws.String(target.SelectionMode),
		}
	}
	for name, action := range t.Actions {
		in.Actions[name] = types.CreateExperimentTemplateActionInput{
			ActionId: aws.String(action.ActionID), Parameters: action.Parameters, Targets: action.Targets,
		}
	}
	return in
}

func tags() map[string]string {
	return map[string]string{"lifeboat.dev/drill": "true"}
}

// isoDuration formats whole seconds in ISO 8601, for example PT2M15S.
func isoDuration(d time.Duration) string {
	minutes, seconds := int(d.Minutes()), int(d.Round(time.Second).Seconds())%60
	if seconds == 0 {
		return fmt.Sprintf("PT%dM", minutes)
	}
	return fmt.Sprintf("PT%dM%dS", minutes, seconds)
}
