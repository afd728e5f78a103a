package sns

import (
	"context"
	"encoding/xml"
	"maps"
	"slices"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct{ state *State }

// entries is a map as SNS writes it: <Attributes><entry><key>…</key><value>…</value></entry>.
type entries map[string]string

// MarshalXML implements xml.Marshaler.
func (m entries) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	type entry struct {
		Key   string `xml:"key"`
		Value string `xml:"value"`
	}
	var list struct {
		Entries []entry `xml:"entry"`
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list.Entries = append(list.Entries, entry{key, m[key]})
	}
	return e.EncodeElement(list, start)
}

type tag struct{ Key, Value string }

func tagMap(list []tag) map[string]string {
	out := map[string]string{}
	for _, t := range list {
		out[t.Key] = t.Value
	}
	return out
}

// input has the members of all actions.
type input struct {
	Name            string
	TopicArn        string
	SubscriptionArn string
	ResourceArn     string
	Protocol        string
	Endpoint        string
	AttributeName   string
	AttributeValue  string
	Attributes      map[string]string
	Tags            []tag
	TagKeys         []string
	NextToken       string
}

type topicOutput struct{ TopicArn string }

func (a *api) createTopic(_ context.Context, _ *wire.Request, in *input) (*topicOutput, error) {
	arn, err := a.state.CreateTopic(in.Name, in.Attributes, tagMap(in.Tags))
	return &topicOutput{arn}, err
}

func (a *api) deleteTopic(_ context.Context, _ *wire.Request, in *input) (*wire.None, error) {
	a.state.DeleteTopic(in.TopicArn)
	return nil, nil
}

type attributesOutput struct{ Attributes entries }

func (a *api) getTopicAttributes(_ context.Context, _ *wire.Request, in *input) (*attributesOutput, error) {
	found, err := a.state.TopicAttributes(in.TopicArn)
	if err != nil {
		return nil, err
	}
	subscriptions, err := a.state.Subscriptions(in.TopicArn)
	found["SubscriptionsConfirmed"], found["SubscriptionsPending"] = strconv.Itoa(len(subscriptions)), "0"
	return &attributesOutput{found}, err
}

func (a *api) setTopicAttributes(_ context.Context, _ *wire.Request, in *input) (*wire.None, error) {
	return nil, a.state.SetTopicAttribute(in.TopicArn, in.AttributeName, in.AttributeValue)
}

type topicsOutput struct {
	Topics    wire.Members[topicOutput]
	NextToken string `xml:",omitempty"`
}

func (a *api) listTopics(_ context.Context, _ *wire.Request, in *input) (*topicsOutput, error) {
	page, next := paged(a.state.Topics(), in.NextToken)
	out := &topicsOutput{NextToken: next}
	for _, arn := range page {
		out.Topics = append(out.Topics, topicOutput{arn})
	}
	return out, nil
}

type subscribeOutput struct{ SubscriptionArn string }

func (a *api) subscribe(_ context.Context, _ *wire.Request, in *input) (*subscribeOutput, error) {
	arn, err := a.state.Subscribe(in.TopicArn, in.Protocol, in.Endpoint, in.Attributes)
	return &subscribeOutput{arn}, err
}

func (a *api) unsubscribe(_ context.Context, _ *wire.Request, in *input) (*wire.None, error) {
	a.state.Unsubscribe(in.SubscriptionArn)
	return nil, nil
}

func (a *api) getSubscriptionAttributes(_ context.Context, _ *wire.Request, in *input) (*attributesOutput, error) {
	found, err := a.state.SubscriptionAttributes(in.SubscriptionArn)
	return &attributesOutput{found}, err
}

func (a *api) setSubscriptionAttributes(_ context.Context, _ *wire.Request, in *input) (*wire.None, error) {
	return nil, a.state.SetSubscriptionAttribute(in.SubscriptionArn, in.AttributeName, in.AttributeValue)
}

type subscriptionReply struct {
	SubscriptionArn, Owner, Protocol, Endpoint, TopicArn string
}

type subscriptionsOutput struct {
	Subscriptions wire.Members[subscriptionReply]
	NextToken     string `xml:",omitempty"`
}

func (a *api) listSubscriptionsByTopic(_ context.Context, _ *wire.Request, in *input) (*subscriptionsOutput, error) {
	all, err := a.state.Subscriptions(in.TopicArn)
	page, next := paged(all, in.NextToken)
	out := &subscriptionsOutput{NextToken: next}
	for _, u := range page {
		out.Subscriptions = append(out.Subscriptions, subscriptionReply{u.ARN, a.state.scope.Account, u.Protocol, u.Endpoint, u.TopicARN})
	}
	return out, err
}

// pageSize is the size of SNS's pages (Amazon SNS API Reference, ListTopics).
const pageSize = 100

// paged returns the page that a token names, which is the index of its first item.
func paged[T any](all []T, token string) (page []T, next string) {
	from, err := strconv.Atoi(token)
	if err != nil || from < 0 || from > len(all) {
		from = 0
	}
	to := min(from+pageSize, len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return all[from:to], next
}

func (a *api) tagResource(_ context.Context, _ *wire.Request, in *input) (*struct{}, error) {
	return &struct{}{}, a.state.tag(in.ResourceArn, tagMap(in.Tags), nil)
}

func (a *api) untagResource(_ context.Context, _ *wire.Request, in *input) (*struct{}, error) {
	return &struct{}{}, a.state.tag(in.ResourceArn, nil, in.TagKeys)
}

type tagsOutput struct{ Tags wire.Members[tag] }

func (a *api) listTags(_ context.Context, _ *wire.Request, in *input) (*tagsOutput, error) {
	found, err := a.state.tags(in.ResourceArn)
	out := &tagsOutput{}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out.Tags = append(out.Tags, tag{key, found[key]})
	}
	return out, err
}

type publishInput struct {
	TopicArn, Message, Subject string

	MessageAttributes map[string]struct{ DataType, StringValue string } `query:"MessageAttributes,Name,Value"`
}

type publishOutput struct {
	MessageID string `xml:"MessageId"`
}

func (a *api) publish(_ context.Context, _ *wire.Request, in *publishInput) (*publishOutput, error) {
	attributes := map[string]Attribute{}
	for name, value := range in.MessageAttributes {
		attributes[name] = Attribute{value.DataType, value.StringValue}
	}
	id, err := a.state.Publish(in.TopicArn, in.Message, in.Subject, attributes)
	return &publishOutput{id}, err
}
