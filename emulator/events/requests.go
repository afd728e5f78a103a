package events

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/events/pattern"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// namePattern matches the names of rules, targets and buses.
var namePattern = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,64}$`)

// api turns requests into calls on the state.
type api struct{ state *State }

type tag struct{ Key, Value string }

func tagMap(tags []tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[t.Key] = t.Value
	}
	return m
}

type putRuleInput struct {
	Name               string
	EventBusName       string
	EventPattern       string
	ScheduleExpression string
	State              string
	Description        string
	RoleArn            string
	Tags               []tag
}

type putRuleOutput struct{ RuleArn string }

func (a *api) putRule(_ context.Context, _ *wire.Request, in *putRuleInput) (*putRuleOutput, error) {
	switch {
	case !namePattern.MatchString(in.Name):
		return nil, constraint(in.Name, "name", `satisfy regular expression pattern: [\.\-_A-Za-z0-9]+`)
	case in.ScheduleExpression != "":
		return nil, notValid("ScheduleExpression", "this emulator has no schedules; use EventPattern.")
	case in.EventPattern == "":
		return nil, validation("Parameter(s) EventPattern or ScheduleExpression must be specified.")
	case !slices.Contains([]string{"", stateEnabled, stateEnabledAll, stateDisabled}, in.State):
		return nil, constraint(in.State, "state", "satisfy enum value set: [ENABLED, DISABLED, ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS]")
	}
	arn, err := a.state.PutRule(RuleInput{
		Name: in.Name, Bus: in.EventBusName, Pattern: in.EventPattern, Description: in.Description,
		RoleARN: in.RoleArn, Disabled: in.State == stateDisabled, Tags: tagMap(in.Tags),
	})
	return &putRuleOutput{arn}, err
}

// The states of a rule.
const (
	stateEnabled    = "ENABLED"
	stateDisabled   = "DISABLED"
	stateEnabledAll = "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"
)

// ruleOnWire is a rule as DescribeRule and ListRules show it.
type ruleOnWire struct {
	Name         string
	Arn          string
	EventPattern string
	State        string
	Description  string `json:",omitempty"`
	RoleArn      string `json:",omitempty"`
	EventBusName string
	CreatedBy    string `json:",omitempty"`
}

func onWire(r Rule) ruleOnWire {
	state := stateDisabled
	if r.Enabled {
		state = stateEnabled
	}
	return ruleOnWire{
		Name: r.Name, Arn: r.ARN, EventPattern: r.Pattern, State: state,
		Description: r.Description, RoleArn: r.RoleARN, EventBusName: r.Bus,
	}
}

type ruleName struct {
	Name         string
	EventBusName string
}

func (a *api) describeRule(_ context.Context, _ *wire.Request, in *ruleName) (*ruleOnWire, error) {
	r, err := a.state.Rule(in.EventBusName, in.Name)
	if err != nil {
		return nil, err
	}
	out := onWire(r)
	out.CreatedBy = a.state.scope.Account
	return &out, nil
}

func (a *api) enableRule(_ context.Context, _ *wire.Request, in *ruleName) (*wire.None, error) {
	return nil, a.state.SetEnabled(in.EventBusName, in.Name, true)
}

func (a *api) disableRule(_ context.Context, _ *wire.Request, in *ruleName) (*wire.None, error) {
	return nil, a.state.SetEnabled(in.EventBusName, in.Name, false)
}

func (a *api) deleteRule(_ context.Context, _ *wire.Request, in *ruleName) (*wire.None, error) {
	return nil, a.state.DeleteRule(in.EventBusName, in.Name)
}

// paging is the paging part of a request.
type paging struct {
	Limit     *int
	NextToken string
}

// page returns one page of a list. The token of the next page is opaque to callers.
func page[T any](all []T, p paging) (items []T, next string, err error) {
	size := 100
	if p.Limit != nil {
		size = *p.Limit
	}
	if size < 1 || size > 100 {
		return nil, "", constraint(size, "limit", "have value between 1 and 100")
	}
	start := 0
	if p.NextToken != "" {
		raw, decodeErr := base64.StdEncoding.DecodeString(p.NextToken)
		n, parseErr := strconv.Atoi(string(raw))
		if decodeErr != nil || parseErr != nil || n < 0 {
			return nil, "", validation("The token is not valid.")
		}
		start = min(n, len(all))
	}
	end := min(start+size, len(all))
	if end < len(all) {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return all[start:end], next, nil
}

type listRulesInput struct {
	paging

	NamePrefix   string
	EventBusName string
}

type listRulesOutput struct {
	Rules     []ruleOnWire
	NextToken string `json:",omitempty"`
}

func (a *api) listRules(_ context.Context, _ *wire.Request, in *listRulesInput) (*listRulesOutput, error) {
	all, err := a.state.Rules(in.EventBusName, in.NamePrefix)
	if err != nil {
		return nil, err
	}
	rules, next, err := page(all, in.paging)
	out := &listRulesOutput{Rules: []ruleOnWire{}, NextToken: next}
	for _, r := range rules {
		out.Rules = append(out.Rules, onWire(r))
	}
	return out, err
}

type rulesByTargetInput struct {
	paging

	TargetArn    string
	EventBusName string
}

type rulesByTargetOutput struct {
	RuleNames []string
	NextToken string `json:",omitempty"`
}

func (a *api) listRuleNamesByTarget(_ context.Context, _ *wire.Request, in *rulesByTargetInput) (*rulesByTargetOutput, error) {
	all, err := a.state.RulesOf(in.EventBusName, in.TargetArn)
	if err != nil {
		return nil, err
	}
	names, next, err := page(all, in.paging)
	return &rulesByTargetOutput{append([]string{}, names...), next}, err
}

type testPatternInput struct{ EventPattern, Event string }

type testPatternOutput struct{ Result bool }

func (a *api) testEventPattern(_ context.Context, _ *wire.Request, in *testPatternInput) (*testPatternOutput, error) {
	if err := checkEnvelope(in.Event); err != nil {
		return nil, err
	}
	p, err := compile(in.EventPattern)
	if err != nil {
		return nil, err
	}
	event, err := pattern.Decode([]byte(in.Event))
	if err != nil {
		return nil, notValid("Event", err.Error())
	}
	return &testPatternOutput{p.Matches(event)}, nil
}

// checkEnvelope checks the fields that TestEventPattern requires of an event (EventBridge API
// Reference, TestEventPattern).
func checkEnvelope(event string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(event), &fields); err != nil || fields == nil {
		return notValid("Event", "it is not a JSON object.")
	}
	var missing []string
	for _, name := range []string{"id", "account", "source", "time", "region", "resources", "detail-type"} {
		if _, ok := fields[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return notValid("Event", "mandatory fields are missing: "+strings.Join(missing, ", ")+".")
	}
	return nil
}

type tagsInput struct {
	ResourceARN string
	Tags        []tag
	TagKeys     []string
}

func (a *api) changeTags(_ context.Context, _ *wire.Request, in *tagsInput) (*wire.None, error) {
	return nil, a.state.SetTags(in.ResourceARN, tagMap(in.Tags), in.TagKeys)
}

type tagsOutput struct{ Tags []tag }

func (a *api) listTags(_ context.Context, _ *wire.Request, in *tagsInput) (*tagsOutput, error) {
	tags, err := a.state.Tags(in.ResourceARN)
	out := &tagsOutput{Tags: []tag{}}
	for k, v := range tags {
		out.Tags = append(out.Tags, tag{k, v})
	}
	slices.SortFunc(out.Tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return out, err
}
