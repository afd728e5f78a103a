package sns

import (
	"maps"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// DeliverFunc sends a message to a queue, as [sqs.State.Deliver] does.
type DeliverFunc func(queueARN, body string, from sqs.Sender) error

// State is the account's topics. It is safe for concurrent use.
type State struct {
	scope   wire.Scope
	deliver DeliverFunc

	mu     sync.Mutex
	topics map[string]*topic // by ARN
}

type topic struct {
	arn        string
	attributes map[string]string
	policy     *policy.Policy
	tags       map[string]string
	// subscriptions are in the order of their creation.
	subscriptions []*subscription
}

// New is a state without topics.
func New(scope wire.Scope, deliver DeliverFunc) *State {
	return &State{scope: scope, deliver: deliver, topics: map[string]*topic{}}
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

const attributePolicy = "Policy"

// CreateTopic creates a topic, or returns the ARN of an equal one. Errors: InvalidParameter.
func (s *State) CreateTopic(name string, attributes, tags map[string]string) (string, error) {
	if !topicName.MatchString(name) {
		return "", invalid("Topic Name", "this emulator has standard topics only, whose names have 1 to 256 letters, digits, hyphens and underscores")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	arn := s.scope.ARN("sns", name)
	if t := s.topics[arn]; t != nil {
		for key, value := range attributes {
			if t.attributes[key] != value {
				return "", invalid("Attributes", "Topic already exists with different attributes")
			}
		}
		for key, value := range tags {
			if t.tags[key] != value {
				return "", invalid("Tags", "Topic already exists with different tags")
			}
		}
		return arn, nil
	}
	t := &topic{arn: arn, attributes: map[string]string{}, tags: map[string]string{}}
	if err := t.set(attributePolicy, defaultPolicy(arn, s.scope.Account)); err != nil {
		return "", err
	}
	for key, value := range attributes {
		if err := t.set(key, value); err != nil {
			return "", err
		}
	}
	maps.Copy(t.tags, tags)
	s.topics[arn] = t
	return arn, nil
}

// defaultPolicy is the policy that AWS gives a new topic: identities of the account may use it
// (Amazon SNS Developer Guide, "Example cases for Amazon SNS access control").
func defaultPolicy(arn, account string) string {
	return `{"Version":"2008-10-17","Id":"__default_policy_ID","Statement":[{"Sid":"__default_statement_ID","Effect":"Allow","Principal":{"AWS":"*"},` +
		`"Action":["SNS:Publish","SNS:RemovePermission","SNS:SetTopicAttributes","SNS:DeleteTopic","SNS:ListSubscriptionsByTopic","SNS:GetTopicAttributes","SNS:AddPermission","SNS:Subscribe"],` +
		`"Resource":"` + arn + `","Condition":{"StringEquals":{"AWS:SourceOwner":"` + account + `"}}}]}`
}

// set changes an attribute. Errors: InvalidParameter.
func (t *topic) set(name, value string) error {
	switch name {
	case attributePolicy:
		parsed, err := policy.Parse(value)
		if err != nil {
			return invalid("Policy Error", "%v", err)
		}
		t.policy = parsed
	case "DisplayName", "KmsMasterKeyId", "DeliveryPolicy", "TracingConfig", "SignatureVersion":
	default:
		return invalid("AttributeName", "this emulator does not have the attribute %s", name)
	}
	t.attributes[name] = value
	return nil
}

// find returns a topic. The caller holds the lock. Errors: NotFound.
func (s *State) find(arn string) (*topic, error) {
	if t := s.topics[arn]; t != nil {
		return t, nil
	}
	return nil, notFound("Topic")
}

// DeleteTopic deletes a topic with its subscriptions. It succeeds if there is none.
func (s *State) DeleteTopic(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.topics, arn)
}

// SetTopicAttribute changes an attribute. Errors: NotFound, InvalidParameter.
func (s *State) SetTopicAttribute(arn, name, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(arn)
	if err != nil {
		return err
	}
	return t.set(name, value)
}

// TopicAttributes returns the attributes as GetTopicAttributes does, without the counts. Errors:
// NotFound.
func (s *State) TopicAttributes(arn string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(arn)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(t.attributes)
	out["TopicArn"], out["Owner"] = arn, s.scope.Account
	return out, nil
}

// Topics returns the ARNs of all topics, sorted.
func (s *State) Topics() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.topics))
}

// tag adds tags to a topic, and removes those of keys. Errors: ResourceNotFound.
func (s *State) tag(arn string, tags map[string]string, remove []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[arn]
	if t == nil {
		return noResource()
	}
	maps.Copy(t.tags, tags)
	for _, key := range remove {
		delete(t.tags, key)
	}
	return nil
}

// tags returns the tags of a topic. Errors: ResourceNotFound.
func (s *State) tags(arn string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[arn]
	if t == nil {
		return nil, noResource()
	}
	return maps.Clone(t.tags), nil
}

func newID() string { return string(uuid.NewUUID()) }
