package doctor

import (
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/queuepolicy"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// simpleNotification is the service principal that a queue's policy must allow.
const simpleNotification = "sns.amazonaws.com"

// checkTopic checks the shared topic: from the rules to the topic, from it to its subscription, and
// from there to the queue. checkRules checks that the rules send to it.
func checkTopic(e *diagnosis) []finding.Finding {
	if e.desired.Topic == "" {
		return nil
	}
	topic, read := e.FindTopic(e.desired.Target().ARN)
	var kinds []string
	for _, r := range e.desired.Rules {
		kinds = union(kinds, r.Kinds)
	}
	object := "topic " + e.desired.Topic
	var all []finding.Finding
	add := func(bad bool, severity finding.Severity, id, object, problem string) {
		if bad {
			f := finding.Finding{Severity: severity, ID: id, Object: object, Problem: problem, Fix: e.applyCommand()}
			if severity == finding.Broken {
				f.Kinds = kinds
			}
			all = append(all, f)
		}
	}
	if e.refusesTopic(topic) {
		add(true, finding.Broken, idQueuePolicyRefuses, e.queueObject(), "its policy does not let the topic "+e.desired.Topic+" send: SNS cannot deliver the events of the shared rules")
	}
	if !read {
		return all
	}
	if topic.Missing {
		add(true, finding.Broken, idTopicMissing, object, "the topic does not exist in this account and region: no notice can arrive")
		return all
	}
	if topic.Known {
		add(e.topicRefuses(topic), finding.Broken, idTopicPolicyRefuses, object, topicRefusal(topic.Policy))
		open := topicOpen(topic, e.account())
		add(open != "", finding.Warning, idTopicPolicyOpen, object,
			"its policy lets "+open+" publish: a forged notice drains nodes, in each cluster that shares the topic")
		add(isAWSTopicKey(topic.KMSKey), finding.Broken, idTopicEncryption, object,
			"it is encrypted with alias/aws/sns. EventBridge may not use that key, and its policy cannot be changed: every delivery fails")
	}
	if !topic.SubscriptionsKnown {
		return all
	}
	subscription, subscribed := topic.SubscriptionOf(e.queue.ARN)
	link := "the subscription of queue " + e.queue.Name
	switch {
	case !subscribed:
		add(true, finding.Broken, idSubscriptionMissing, object, "it has no subscription of the queue "+e.queue.Name+": no notice can arrive")
		return all
	case subscription.Pending:
		add(true, finding.Broken, idSubscriptionMissing, object, link+" is not confirmed: no notice can arrive")
		return all
	}
	add(subscription.Filter != "", finding.Broken, idSubscriptionFilter, object,
		link+" has the filter "+subscription.Filter+". Messages of EventBridge have no message attributes: SNS drops them silently")
	add(subscription.DeadLetterARN == "", finding.Info, idSubscriptionDeadLetter, object, link+" has no dead-letter queue: SNS silently drops what it cannot deliver")
	return all
}

// topicRefusal says why a topic's policy refuses EventBridge.
func topicRefusal(policy string) string {
	if strings.Contains(policy, eventBridge) {
		return "its policy allows " + eventBridge + " to publish only with conditions, or denies it. EventBridge sends no condition keys to topics: every delivery fails"
	}
	return "its policy does not allow " + eventBridge + " to publish: every delivery fails"
}

// publishRequest is what a service or an identity asks of a topic. EventBridge sends no condition
// keys ("You can't use Condition blocks in Amazon SNS topic policies for EventBridge", EventBridge
// User Guide, "Using resource-based policies").
func publishRequest(topicARN string) queuepolicy.Request {
	return queuepolicy.Request{Action: "sns:Publish", Resource: topicARN, Context: map[string]string{}}
}

// topicRefuses reports whether the topic's policy refuses EventBridge. It returns false if the policy
// is unknown.
func (e *diagnosis) topicRefuses(t snapshot.Topic) bool {
	if !t.Known {
		return t.Missing
	}
	policy, err := parsePolicy(t.Policy)
	request := publishRequest(t.ARN)
	request.Service = eventBridge
	verdict := policy.Evaluate(request)
	return err != nil || verdict == queuepolicy.NoOpinion || verdict == queuepolicy.Deny || isAWSTopicKey(t.KMSKey)
}

// topicOpen names the senders besides EventBridge that the topic's policy lets publish: foreign ones,
// or identities of the account, whose own policies are enough if the topic's does not deny.
func topicOpen(t snapshot.Topic, account string) string {
	policy, err := parsePolicy(t.Policy)
	if err != nil {
		return ""
	}
	request := func(account string) queuepolicy.Request {
		r := publishRequest(t.ARN)
		r.ARN, r.Account = "arn:"+snapshot.Part(t.ARN, 1)+":iam::"+account+":role/any", account
		r.Context = map[string]string{"aws:SecureTransport": "true", "aws:PrincipalIsAWSService": "false", "aws:SourceOwner": account, "aws:PrincipalAccount": account}
		return r
	}
	switch {
	case policy.Evaluate(request(foreignAccount)) == queuepolicy.Allow:
		return "anyone"
	case policy.Evaluate(request(account)) != queuepolicy.Deny:
		return "identities of the account"
	}
	return ""
}

func isAWSTopicKey(key string) bool {
	return key == "alias/aws/sns" || strings.HasSuffix(key, ":alias/aws/sns")
}

// refusesTopic reports whether the queue's policy refuses a topic. It returns false if the policy is
// unknown.
func (e *diagnosis) refusesTopic(t snapshot.Topic) bool {
	if !e.queue.PolicyKnown {
		return false
	}
	policy, err := parsePolicy(e.queue.Policy)
	if err != nil {
		return true
	}
	verdict := policy.Evaluate(queuepolicy.Request{
		Service: simpleNotification, Action: "sqs:SendMessage", Resource: e.queue.ARN,
		Context: map[string]string{"aws:SourceArn": t.ARN, "aws:SecureTransport": "true", "aws:PrincipalIsAWSService": "true", "aws:PrincipalServiceName": simpleNotification},
		// The documentation names only the ARN.
		UnknownKeys: []string{"aws:SourceAccount", "aws:SourceOrgID", "aws:SourceOrgPaths"},
	})
	return slices.Contains([]queuepolicy.Verdict{queuepolicy.NoOpinion, queuepolicy.Deny}, verdict)
}
