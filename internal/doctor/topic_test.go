package doctor_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// sharing is an account in which two clusters share a topic.
type sharing struct {
	*account

	cfg   aws.Config
	other awssetup.Wiring
	topic string
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	s := &sharing{
		account: &account{t: t, server: server, want: awssetup.Desired("prod", server.Account(), server.Region())},
		cfg:     aws.Config{Region: server.Region(), BaseEndpoint: &url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x")},
		other:   awssetup.Desired("other", server.Account(), server.Region()),
	}
	s.queues, s.events = sqs.NewFromConfig(s.cfg), eventbridge.NewFromConfig(s.cfg)
	for _, w := range []awssetup.Wiring{s.other, s.want} {
		shared, err := w.Shared("lifeboat-shared")
		s.must(err)
		applied, err := awssetup.Apply(t.Context(), awssetup.NewClients(s.cfg), shared)
		s.must(err)
		s.url, s.topic = applied.QueueURL, shared.Target().ARN
	}
	return s
}

// findings are those of the account for a cluster, without their texts.
func (s *sharing) findings(w awssetup.Wiring) []string {
	s.t.Helper()
	read, err := doctor.ReadAccount(s.t.Context(), doctor.ClientsFor(s.cfg), doctor.Target{Desired: w})
	s.must(err)
	return brief(doctor.Run(read, w, doctor.Cluster{}))
}

// subscription is the ARN of the subscription of the cluster prod.
func (s *sharing) subscription() string {
	all, err := s.server.States.SNS.Subscriptions(s.topic)
	s.must(err)
	for _, one := range all {
		if one.Endpoint == s.want.QueueARN() {
			return one.ARN
		}
	}
	s.t.Fatal("no subscription")
	return ""
}

func (s *sharing) topicAttribute(name, value string) {
	s.must(s.server.States.SNS.SetTopicAttribute(s.topic, name, value))
}

func (s *sharing) subscriptionAttribute(name, value string) {
	s.must(s.server.States.SNS.SetSubscriptionAttribute(s.subscription(), name, value))
}

func (s *sharing) allows(condition string) string {
	return `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sns:Publish","Resource":"` + s.topic + `"` + condition + `},` +
		`{"Effect":"Deny","Principal":"*","Action":"sns:Publish","Resource":"` + s.topic + `","Condition":{"Bool":{"aws:PrincipalIsAWSService":"false"}}}]}`
}

// The controller's own check has no client for SNS. It finds what is wrong with the rules and with the
// queue, and takes the rest for granted.
func TestCauseWithoutTopics(t *testing.T) {
	t.Parallel()
	s := newSharing(t)
	cause := func() string {
		sentence, _ := doctor.Cause(t.Context(), doctor.NewClients(s.queues, s.events), doctor.Target{Desired: s.want}, notice.KindSpotInterruption)
		return sentence
	}
	if got := cause(); !strings.Contains(got, "has no known problem") {
		t.Errorf("sound wiring: %s", got)
	}
	_, err := s.events.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: aws.String("lifeboat-shared-ec2")})
	s.must(err)
	if got := cause(); !strings.Contains(got, "it is disabled") {
		t.Errorf("a disabled rule: %s", got)
	}
}

// The doctor names the broken link between a rule and the queue.
func TestBrokenLinksOfSharedTopic(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(*sharing)
		want []string
		// cause is a part of Cause's sentence about a missing spot interruption.
		cause string
		// both means that the other cluster has the same problem.
		both bool
	}{
		"nothing": {func(*sharing) {}, []string{}, "has no known problem", true},
		"the rule sends elsewhere": {func(s *sharing) {
			s.putTarget("lifeboat-shared-ec2", "", ebtypes.Target{Id: aws.String("lifeboat-topic"), Arn: aws.String(s.want.DeadLetterARN())})
		}, []string{"broken rule-wrong-target rule lifeboat-shared-ec2"}, "is not its target", true},
		"the rule is disabled": {func(s *sharing) {
			_, err := s.events.DisableRule(s.t.Context(), &eventbridge.DisableRuleInput{Name: aws.String("lifeboat-shared-ec2")})
			s.must(err)
		}, []string{"broken rule-disabled rule lifeboat-shared-ec2"}, "it is disabled", true},
		"the topic is gone": {func(s *sharing) { s.server.States.SNS.DeleteTopic(s.topic) },
			[]string{"broken topic-missing topic lifeboat-shared"}, "the topic does not exist", true},
		"the topic refuses EventBridge": {func(s *sharing) {
			s.topicAttribute("Policy", strings.Replace(s.allows(""), "events.amazonaws.com", "s3.amazonaws.com", 1))
		}, []string{"broken topic-policy-refuses topic lifeboat-shared"}, "does not allow events.amazonaws.com", true},
		"the topic's policy has a condition on the rule": {func(s *sharing) {
			s.topicAttribute("Policy", s.allows(`,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:*:rule/*"}}`))
		}, []string{"broken topic-policy-refuses topic lifeboat-shared"}, "EventBridge sends no condition keys", true},
		"identities may publish": {func(s *sharing) {
			s.topicAttribute("Policy", `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sns:Publish","Resource":"`+s.topic+`"}]}`)
		}, []string{"warning topic-policy-open topic lifeboat-shared"}, "has no known problem", true},
		"the topic has AWS's key": {func(s *sharing) { s.topicAttribute("KmsMasterKeyId", "alias/aws/sns") },
			[]string{"broken topic-policy-refuses topic lifeboat-shared", "broken topic-encryption-aws-key topic lifeboat-shared"}, "", true},
		"the subscription is gone": {func(s *sharing) { s.server.States.SNS.Unsubscribe(s.subscription()) },
			[]string{"broken subscription-missing topic lifeboat-shared"}, "no subscription of the queue lifeboat-prod", false},
		"the subscription has a filter": {func(s *sharing) { s.subscriptionAttribute("FilterPolicy", `{"a":["b"]}`) },
			[]string{"broken subscription-filter topic lifeboat-shared"}, "has the filter", false},
		"the subscription has no dead-letter queue": {func(s *sharing) { s.subscriptionAttribute("RedrivePolicy", "") },
			[]string{"info subscription-dead-letter-missing topic lifeboat-shared"}, "has no known problem", false},
		"messages are wrapped": {func(s *sharing) { s.subscriptionAttribute("RawMessageDelivery", "false") }, []string{}, "has no known problem", false},
		"the queue refuses the topic": {func(s *sharing) {
			s.set(map[string]string{"Policy": `{"Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + s.want.QueueARN() + `","Condition":{"ArnEquals":{"aws:SourceArn":"` + s.topic + `2"}}}]}`})
		}, []string{"broken queue-policy-refuses queue lifeboat-prod", "warning queue-policy-undenied queue lifeboat-prod"}, "does not let the topic lifeboat-shared send", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharing(t)
			tc.do(s)
			if diff := cmp.Diff(tc.want, s.findings(s.want)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			want := []string{}
			if tc.both {
				want = tc.want
			}
			if diff := cmp.Diff(want, s.findings(s.other)); diff != "" {
				t.Errorf("findings of the other cluster (-want +got):\n%s", diff)
			}
			sentence, _ := doctor.Cause(t.Context(), doctor.ClientsFor(s.cfg), doctor.Target{Desired: s.want}, notice.KindSpotInterruption)
			if !strings.Contains(sentence, tc.cause) {
				t.Errorf("cause: %s; want %q", sentence, tc.cause)
			}
		})
	}
}
