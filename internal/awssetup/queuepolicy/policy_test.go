package queuepolicy_test

import (
	"fmt"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/queuepolicy"
)

const (
	queue = "arn:aws:sqs:us-east-1:123456789012:q"
	rule  = "arn:aws:events:us-east-1:123456789012:rule/spot"
	user  = "arn:aws:iam::123456789012:user/lifeboat"
)

var (
	byEvents = queuepolicy.Request{
		Service: "events.amazonaws.com", Action: "sqs:SendMessage", Resource: queue,
		Context: map[string]string{"aws:SourceArn": rule, "aws:SourceAccount": "123456789012", "aws:SecureTransport": "true"},
	}
	byUser = queuepolicy.Request{
		ARN: user, Account: "123456789012", Action: "sqs:SendMessage", Resource: queue,
		Context: map[string]string{"aws:SecureTransport": "true"},
	}
)

// statement returns a policy with one statement that has these members.
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
		request        queuepolicy.Request
		want           queuepolicy.Verdict
	}{
		{"service is named", statement(allow + events + send), byEvents, queuepolicy.Allow},
		{"service is in a list", statement(allow + `"Principal":{"Service":["sns.amazonaws.com","events.amazonaws.com"]},` + send), byEvents, queuepolicy.Allow},
		{"another service is named", statement(allow + `"Principal":{"Service":"sns.amazonaws.com"},` + send), byEvents, queuepolicy.NoOpinion},
		{"all principals", statement(allow + `"Principal":"*",` + send), byEvents, queuepolicy.Allow},
		{"every account is named", statement(allow + `"Principal":{"AWS":"*"},` + send), byEvents, queuepolicy.Allow},
		{"account id does not cover services", statement(allow + `"Principal":{"AWS":"123456789012"},` + send), byEvents, queuepolicy.NoOpinion},
		{"account id", statement(allow + `"Principal":{"AWS":"123456789012"},` + send), byUser, queuepolicy.Allow},
		{"account root", statement(allow + `"Principal":{"AWS":"arn:aws:iam::123456789012:root"},` + send), byUser, queuepolicy.Allow},
		{"root of another account", statement(allow + `"Principal":{"AWS":"arn:aws:iam::210987654321:root"},` + send), byUser, queuepolicy.NoOpinion},
		{"user by ARN", statement(allow + `"Principal":{"AWS":["` + user + `"]},` + send), byUser, queuepolicy.Allow},
		{"NotPrincipal", statement(allow + `"NotPrincipal":{"AWS":"` + user + `"},` + send), byUser, queuepolicy.NoOpinion},
		{"action in another case", statement(allow + events + `"Action":"SQS:sendmessage","Resource":"*"`), byEvents, queuepolicy.Allow},
		{"action by wildcard", statement(allow + events + `"Action":["sqs:Get*","sqs:Se?dM*"],"Resource":"*"`), byEvents, queuepolicy.Allow},
		{"another action", statement(allow + events + `"Action":"sqs:ReceiveMessage","Resource":"*"`), byEvents, queuepolicy.NoOpinion},
		{"all but this action", statement(allow + events + `"NotAction":"sqs:SendMessage","Resource":"*"`), byEvents, queuepolicy.NoOpinion},
		{"resource by wildcard", statement(allow + events + `"Action":"*","Resource":"arn:aws:sqs:*:*:q"`), byEvents, queuepolicy.Allow},
		{"another resource", statement(allow + events + `"Action":"*","Resource":"` + queue + `2"`), byEvents, queuepolicy.NoOpinion},
		{"all but this resource", statement(allow + events + `"Action":"*","NotResource":"` + queue + `"`), byEvents, queuepolicy.NoOpinion},
		{"one statement that is not a list", `{"Statement":{` + allow + events + send + `}}`, byEvents, queuepolicy.Allow},
		{"ArnEquals", condition("ArnEquals", "aws:SourceArn", rule), byEvents, queuepolicy.Allow},
		{"ArnEquals of another", condition("ArnEquals", "aws:SourceArn", rule+"2"), byEvents, queuepolicy.NoOpinion},
		{"key in another case", condition("ArnEquals", "AWS:sourcearn", rule), byEvents, queuepolicy.Allow},
		{"ArnLike by wildcard", condition("ArnLike", "aws:SourceArn", "arn:aws:events:*:123456789012:rule/*"), byEvents, queuepolicy.Allow},
		{"ArnLike does not reach over colons", condition("ArnLike", "aws:SourceArn", "arn:aws:events:*:rule/spot"), byEvents, queuepolicy.NoOpinion},
		{"StringLike does", condition("StringLike", "aws:SourceArn", "arn:aws:events:*:rule/spot"), byEvents, queuepolicy.Allow},
		{"StringEquals", condition("StringEquals", "aws:SourceAccount", "123456789012"), byEvents, queuepolicy.Allow},
		{"StringEquals takes no wildcard", condition("StringEquals", "aws:SourceArn", rule[:20]+"*"), byEvents, queuepolicy.NoOpinion},
		{"StringNotEquals", condition("StringNotEquals", "aws:SourceAccount", "123456789012"), byEvents, queuepolicy.NoOpinion},
		{"StringEqualsIgnoreCase", condition("StringEqualsIgnoreCase", "aws:SourceArn", "ARN:AWS:EVENTS:US-EAST-1:123456789012:RULE/SPOT"), byEvents, queuepolicy.Allow},
		{"missing key", condition("StringEquals", "aws:SourceOrgID", "o-1"), byEvents, queuepolicy.NoOpinion},
		{"missing key, negated", condition("StringNotLike", "aws:SourceOrgID", "o-*"), byEvents, queuepolicy.Allow},
		{"missing key, if it exists", condition("StringEqualsIfExists", "aws:SourceOrgID", "o-1"), byEvents, queuepolicy.Allow},
		{"set operator", condition("ForAnyValue:StringLike", "aws:SourceArn", "arn:*"), byEvents, queuepolicy.Allow},
		{"Null of a key that is there", condition("Null", "aws:SourceArn", "true"), byEvents, queuepolicy.NoOpinion},
		{"Null of a key that is not", condition("Null", "aws:SourceOrgID", "true"), byEvents, queuepolicy.Allow},
		{"Bool written as boolean", statement(allow + events + send + `,"Condition":{"Bool":{"aws:SecureTransport":true}}`), byEvents, queuepolicy.Allow},
		{"two conditions, one fails", statement(allow + events + send + `,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:*:*"},"StringEquals":{"aws:SourceAccount":"1"}}`), byEvents, queuepolicy.NoOpinion},
		{"one of many values", statement(allow + events + send + `,"Condition":{"ArnEquals":{"aws:SourceArn":["arn:aws:events:a:b:c","` + rule + `"]}}`), byEvents, queuepolicy.Allow},
		{"deny wins", `{"Statement":[{` + allow + events + send + `},{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"}]}`, byEvents, queuepolicy.Deny},
		{"deny wins, even first", `{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"},{` + allow + events + send + `}]}`, byEvents, queuepolicy.Deny},
		{"deny of plain HTTP does not apply", `{"Statement":[{` + allow + events + send + `},{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`, byEvents, queuepolicy.Allow},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := queuepolicy.Parse(tc.document)
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
	var none *queuepolicy.Policy
	if got := none.Evaluate(byUser); got != queuepolicy.NoOpinion {
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
	"operator not implemented":  statement(`"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}`),
	"action is neither of both": statement(`"Effect":"Allow","Principal":"*","Action":{"a":1},"Resource":"*"`),
}

func TestParseRefuses(t *testing.T) {
	for name, document := range refused {
		t.Run(name, func(t *testing.T) {
			if _, err := queuepolicy.Parse(document); err == nil {
				t.Errorf("accepted %s", document)
			}
		})
	}
}

func TestEvaluateUnknownOperator(t *testing.T) {
	const (
		sends   = `"Principal":"*","Action":"sqs:SendMessage","Resource":"*"`
		address = `"Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}`
		allow   = `{"Effect":"Allow",` + sends
		deny    = `{"Effect":"Deny",` + sends
	)
	for name, tc := range map[string]struct {
		statements string
		want       queuepolicy.Verdict
	}{
		"may allow":                      {allow + "," + address + "}", queuepolicy.Unknown},
		"may deny what is allowed":       {allow + "}," + deny + "," + address + "}", queuepolicy.Unknown},
		"may deny what nothing allows":   {deny + "," + address + "}", queuepolicy.NoOpinion},
		"denied for another reason":      {allow + "," + address + "}," + deny + "}", queuepolicy.Deny},
		"allowed for another reason":     {allow + "," + address + "}," + allow + "}", queuepolicy.Allow},
		"fails by its other condition":   {allow + `,"Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"},"Bool":{"aws:SecureTransport":"false"}}}`, queuepolicy.NoOpinion},
		"applies only to another action": {`{"Effect":"Allow","Principal":"*","Action":"sqs:ReceiveMessage","Resource":"*",` + address + "}", queuepolicy.NoOpinion},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := queuepolicy.ParseAny(`{"Statement":[` + tc.statements + `]}`)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Evaluate(byEvents); got != tc.want {
				t.Errorf("verdict = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestEvaluateUnknownKey(t *testing.T) {
	request := byEvents
	request.UnknownKeys = []string{"aws:SourceOrgID"}
	document := statement(`"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"StringEquals":{"AWS:SourceOrgId":"o-1"}}`)
	p, err := queuepolicy.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Evaluate(request); got != queuepolicy.Unknown {
		t.Errorf("verdict = %d, want %d", got, queuepolicy.Unknown)
	}
}

func FuzzParse(f *testing.F) {
	for _, document := range refused {
		f.Add(document, rule)
	}
	f.Add(statement(`"Effect":"Allow","Principal":"*","Action":"sqs:*?","Resource":"**","Condition":{"ArnLike":{"aws:SourceArn":"arn:*:?:*:*:*a*b"}}`), rule)
	f.Fuzz(func(t *testing.T, document, source string) {
		p, err := queuepolicy.ParseAny(document)
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
