package policy_test

import (
	"fmt"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/sqs/policy"
)

const (
	queue = "arn:aws:sqs:us-east-1:123456789012:q"
	rule  = "arn:aws:events:us-east-1:123456789012:rule/spot"
	user  = "arn:aws:iam::123456789012:user/lifeboat"
)

var (
	byEvents = policy.Request{
		Service: "events.amazonaws.com", Action: "sqs:SendMessage", Resource: queue,
		Context: map[string]string{"aws:SourceArn": rule, "aws:SourceAccount": "123456789012", "aws:SecureTransport": "true"},
	}
	byUser = policy.Request{
		ARN: user, Account: "123456789012", Action: "sqs:SendMessage", Resource: queue,
		Context: map[string]string{"aws:SecureTransport": "true"},
	}
)

// statement is a policy of one statement; members replace those of a statement
// that allows everything to everybody.
func statement(members string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{%s}]}`, members)
}

func TestEvaluate(t *testing.T) {
	const (
		allow  = `"Effect":"Allow",`
		events = `"Principal":{"Service":"events.amazonaws.com"},`
		send   = `"Action":"sqs:SendMessage","Resource":"` + queue + `"`
	)
	condition := func(operator, key, value string) string {
		return statement(fmt.Sprintf(`%s%s%s,"Condition":{%q:{%q:%q}}`, allow, events, send, operator, key, value))
	}
	for _, tc := range []struct {
		name, document string
		request        policy.Request
		want           policy.Verdict
	}{
		{"service is named", statement(allow + events + send), byEvents, policy.Allow},
		{"service is in a list", statement(allow + `"Principal":{"Service":["sns.amazonaws.com","events.amazonaws.com"]},` + send), byEvents, policy.Allow},
		{"another service is named", statement(allow + `"Principal":{"Service":"sns.amazonaws.com"},` + send), byEvents, policy.NoOpinion},
		{"everybody is named", statement(allow + `"Principal":"*",` + send), byEvents, policy.Allow},
		{"every account is named", statement(allow + `"Principal":{"AWS":"*"},` + send), byEvents, policy.Allow},
		{"account id does not cover services", statement(allow + `"Principal":{"AWS":"123456789012"},` + send), byEvents, policy.NoOpinion},
		{"account id", statement(allow + `"Principal":{"AWS":"123456789012"},` + send), byUser, policy.Allow},
		{"account root", statement(allow + `"Principal":{"AWS":"arn:aws:iam::123456789012:root"},` + send), byUser, policy.Allow},
		{"root of another account", statement(allow + `"Principal":{"AWS":"arn:aws:iam::210987654321:root"},` + send), byUser, policy.NoOpinion},
		{"user by ARN", statement(allow + `"Principal":{"AWS":["` + user + `"]},` + send), byUser, policy.Allow},
		{"everybody else by NotPrincipal", statement(allow + `"NotPrincipal":{"AWS":"` + user + `"},` + send), byUser, policy.NoOpinion},
		{"action in another case", statement(allow + events + `"Action":"SQS:sendmessage","Resource":"*"`), byEvents, policy.Allow},
		{"action by wildcard", statement(allow + events + `"Action":["sqs:Get*","sqs:Se?dM*"],"Resource":"*"`), byEvents, policy.Allow},
		{"another action", statement(allow + events + `"Action":"sqs:ReceiveMessage","Resource":"*"`), byEvents, policy.NoOpinion},
		{"all but this action", statement(allow + events + `"NotAction":"sqs:SendMessage","Resource":"*"`), byEvents, policy.NoOpinion},
		{"resource by wildcard", statement(allow + events + `"Action":"*","Resource":"arn:aws:sqs:*:*:q"`), byEvents, policy.Allow},
		{"another resource", statement(allow + events + `"Action":"*","Resource":"` + queue + `2"`), byEvents, policy.NoOpinion},
		{"all but this resource", statement(allow + events + `"Action":"*","NotResource":"` + queue + `"`), byEvents, policy.NoOpinion},
		{"one statement that is no list", `{"Statement":{` + allow + events + send + `}}`, byEvents, policy.Allow},
		{"ArnEquals", condition("ArnEquals", "aws:SourceArn", rule), byEvents, policy.Allow},
		{"ArnEquals of another", condition("ArnEquals", "aws:SourceArn", rule+"2"), byEvents, policy.NoOpinion},
		{"key in another case", condition("ArnEquals", "AWS:sourcearn", rule), byEvents, policy.Allow},
		{"ArnLike by wildcard", condition("ArnLike", "aws:SourceArn", "arn:aws:events:*:123456789012:rule/*"), byEvents, policy.Allow},
		{"ArnLike does not reach over colons", condition("ArnLike", "aws:SourceArn", "arn:aws:events:*:rule/spot"), byEvents, policy.NoOpinion},
		{"StringLike does", condition("StringLike", "aws:SourceArn", "arn:aws:events:*:rule/spot"), byEvents, policy.Allow},
		{"StringEquals", condition("StringEquals", "aws:SourceAccount", "123456789012"), byEvents, policy.Allow},
		{"StringEquals takes no wildcard", condition("StringEquals", "aws:SourceArn", rule[:20]+"*"), byEvents, policy.NoOpinion},
		{"StringNotEquals", condition("StringNotEquals", "aws:SourceAccount", "123456789012"), byEvents, policy.NoOpinion},
		{"StringEqualsIgnoreCase", condition("StringEqualsIgnoreCase", "aws:SourceArn", "ARN:AWS:EVENTS:US-EAST-1:123456789012:RULE/SPOT"), byEvents, policy.Allow},
		{"missing key", condition("StringEquals", "aws:SourceOrgID", "o-1"), byEvents, policy.NoOpinion},
		{"missing key, negated", condition("StringNotLike", "aws:SourceOrgID", "o-*"), byEvents, policy.Allow},
		{"missing key, if it exists", condition("StringEqualsIfExists", "aws:SourceOrgID", "o-1"), byEvents, policy.Allow},
		{"set operator", condition("ForAnyValue:StringLike", "aws:SourceArn", "arn:*"), byEvents, policy.Allow},
		{"Null of a key that is there", condition("Null", "aws:SourceArn", "true"), byEvents, policy.NoOpinion},
		{"Null of a key that is not", condition("Null", "aws:SourceOrgID", "true"), byEvents, policy.Allow},
		{"Bool written as boolean", statement(allow + events + send + `,"Condition":{"Bool":{"aws:SecureTransport":true}}`), byEvents, policy.Allow},
		{"two conditions, one fails", statement(allow + events + send + `,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:*:*"},"StringEquals":{"aws:SourceAccount":"1"}}`), byEvents, policy.NoOpinion},
		{"one of many values", statement(allow + events + send + `,"Condition":{"ArnEquals":{"aws:SourceArn":["arn:aws:events:a:b:c","` + rule + `"]}}`), byEvents, policy.Allow},
		{"deny wins", `{"Statement":[{` + allow + events + send + `},{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"}]}`, byEvents, policy.Deny},
		{"deny wins, even first", `{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"},{` + allow + events + send + `}]}`, byEvents, policy.Deny},
		{"deny of plain HTTP does not apply", `{"Statement":[{` + allow + events + send + `},{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`, byEvents, policy.Allow},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := policy.Parse(tc.document)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Evaluate(tc.request); got != tc.want {
				t.Errorf("verdict = %d, want %d, of %s", got, tc.want, tc.document)
			}
		})
	}
}

func TestNoPolicyHasNoOpinion(t *testing.T) {
	var none *policy.Policy
	if got := none.Evaluate(byUser); got != policy.NoOpinion {
		t.Errorf("verdict = %d", got)
	}
}

var refused = map[string]string{
	"no JSON":                   `{`,
	"no statement":              `{"Version":"2012-10-17"}`,
	"unknown version":           `{"Version":"2020-01-01","Statement":[]}`,
	"no effect":                 statement(`"Principal":"*","Action":"*","Resource":"*"`),
	"unknown effect":            statement(`"Effect":"Permit","Principal":"*","Action":"*","Resource":"*"`),
	"no principal":              statement(`"Effect":"Allow","Action":"*","Resource":"*"`),
	"principal is a bare name":  statement(`"Effect":"Allow","Principal":"events.amazonaws.com","Action":"*","Resource":"*"`),
	"both actions":              statement(`"Effect":"Allow","Principal":"*","Action":"*","NotAction":"*","Resource":"*"`),
	"no resource":               statement(`"Effect":"Allow","Principal":"*","Action":"*"`),
	"operator not emulated":     statement(`"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}`),
	"action is neither of both": statement(`"Effect":"Allow","Principal":"*","Action":{"a":1},"Resource":"*"`),
}

func TestParseRefuses(t *testing.T) {
	for name, document := range refused {
		t.Run(name, func(t *testing.T) {
			if _, err := policy.Parse(document); err == nil {
				t.Errorf("accepted %s", document)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, document := range refused {
		f.Add(document, rule)
	}
	f.Add(statement(`"Effect":"Allow","Principal":"*","Action":"sqs:*?","Resource":"**","Condition":{"ArnLike":{"aws:SourceArn":"arn:*:?:*:*:*a*b"}}`), rule)
	f.Fuzz(func(t *testing.T, document, source string) {
		p, err := policy.Parse(document)
		if err != nil {
			return
		}
		request := byEvents
		request.Context = map[string]string{"aws:SourceArn": source}
		if first, again := p.Evaluate(request), p.Evaluate(request); first != again {
			t.Errorf("verdicts differ: %d and %d", first, again)
		}
	})
}
