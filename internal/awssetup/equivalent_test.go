package awssetup_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

func TestSamePolicy(t *testing.T) {
	const ours = `{"Version":"2012-10-17","Statement":[{"Sid":"LifeboatRules","Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
		`"Action":"sqs:SendMessage","Resource":"arn:q","Condition":{"ArnEquals":{"aws:SourceArn":["arn:a","arn:b"]},"StringEquals":{"aws:SourceAccount":"1"}}}]}`
	for _, tc := range []struct {
		name, other string
		same        bool
	}{
		{"itself", ours, true},
		{"white space, another order, lists of one, another Sid", `{ "Id": "x", "Statement": {"Action": ["SQS:SendMessage"], "Effect": "Allow",
			"Resource": ["arn:q"], "Principal": {"Service": ["events.amazonaws.com"]}, "Sid": "1",
			"Condition": {"StringEquals": {"AWS:sourceAccount": ["1"]}, "ArnEquals": {"aws:SourceArn": ["arn:b", "arn:a", "arn:b"]}}},
			"Version": "2012-10-17"}`, true},
		{"a rule less", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"arn:q","Condition":{"ArnEquals":{"aws:SourceArn":"arn:a"},"StringEquals":{"aws:SourceAccount":"1"}}}]}`, false},
		{"no condition", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"arn:q"}]}`, false},
		{"the case of a value", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"arn:Q","Condition":{"ArnEquals":{"aws:SourceArn":["arn:a","arn:b"]},"StringEquals":{"aws:SourceAccount":"1"}}}]}`, false},
		{"a further statement", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"arn:q","Condition":{"ArnEquals":{"aws:SourceArn":["arn:a","arn:b"]},"StringEquals":{"aws:SourceAccount":"1"}}},` +
			`{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"arn:q"}]}`, false},
		{"none", "", false},
		{"no JSON", "{", false},
		{"text after it", ours + "x", false},
	} {
		if got := awssetup.SamePolicy(tc.other, ours); got != tc.same {
			t.Errorf("%s: the same: %v, want %v", tc.name, got, tc.same)
		}
	}
	if !awssetup.SamePolicy(`{"deadLetterTargetArn":"arn:d","maxReceiveCount":"30"}`, `{"maxReceiveCount":30,"deadLetterTargetArn":"arn:d"}`) {
		t.Error("SQS accepts the count as text too")
	}
	if !awssetup.SamePolicy(`{"Statement":[{"Principal":"*"}]}`, `{"Statement":[{"Principal":{"AWS":"*"}}]}`) {
		t.Error("both notations of all principals must be equal")
	}
}

func TestSamePattern(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{`{"source":["a","b"],"detail":{"x":[1]}}`, "{\"detail\": {\"x\": [1]},\n\"source\": [\"b\", \"a\"]}", true},
		{`{"source":["a"]}`, `{"source":["A"]}`, false},
		{`{"source":["a"]}`, `{"Source":["a"]}`, false},
		{`{"a":[1]}`, `{"a":["1"]}`, false},
		{`{"a":[{"numeric":[">",0,"<",5]}]}`, `{"a":[{"numeric":["<",5,">",0]}]}`, false},
		{`{"$or":[{"a":[1]},{"b":[2]}]}`, `{"$or":[{"b":[2]},{"a":[1]}]}`, true},
		{`{`, `{`, true},
		{`{`, `[`, false},
	} {
		if got := awssetup.SamePattern(tc.a, tc.b); got != tc.same {
			t.Errorf("%s and %s: the same: %v, want %v", tc.a, tc.b, got, tc.same)
		}
	}
}
