package policy_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/conformance"
)

func TestConformance(t *testing.T) {
	words := map[policy.Decision]string{policy.Silent: conformance.Silent, policy.Allowed: conformance.Allow, policy.Denied: conformance.Deny}
	for _, c := range conformance.QueuePolicies(t) {
		t.Run(c.Name, func(t *testing.T) {
			got := conformance.Invalid
			if p, err := policy.Parse(string(c.Policy)); err == nil {
				keys := map[string][]string{}
				for key, value := range c.Request.Keys {
					keys[key] = []string{value}
				}
				got = words[p.Decide(policy.Request{
					Service: c.Request.Service, ARN: c.Request.ARN, Account: c.Request.Account,
					Action: c.Request.Action, Resource: c.Request.Resource, Keys: keys,
				})]
			}
			if got != c.Want {
				t.Errorf("%s: got %q, want %q, policy %s", c.From, got, c.Want, c.Policy)
			}
		})
	}
}

func TestNoPolicyIsSilent(t *testing.T) {
	var none *policy.Policy
	if got := none.Decide(policy.Request{}); got != policy.Silent {
		t.Errorf("decision %d", got)
	}
}

func TestParseRefusesWhatItCannotEvaluate(t *testing.T) {
	for _, operator := range []string{
		"IpAddress", "DateLessThan", "NotBool", "StringLikes", "NumericNotLessThan", "NullIfExists", "ForEveryValue:StringEquals",
	} {
		_, err := policy.Parse(`{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"` + operator + `":{"aws:SourceIp":"10.0.0.0/8"}}}}`)
		if err == nil {
			t.Errorf("Parse accepted %s", operator)
		}
	}
}

func TestIdentityPoliciesNameNoPrincipal(t *testing.T) {
	with, without := `{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}}`, `{"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`
	if _, err := policy.ParseIdentity(with); err == nil {
		t.Error("ParseIdentity accepted a Principal")
	}
	p, err := policy.ParseIdentity(without)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Decide(policy.Request{Action: "sqs:SendMessage", Resource: "arn:aws:sqs:eu-west-1:123456789012:q"}); got != policy.Allowed {
		t.Errorf("decision %d, want Allowed", got)
	}
}

// The cases follow the IAM User Guide, "Condition operators" and "Set operators for multivalued
// context keys". Requests to queues have no key with several values, so these are not among the
// cases of the conformance tests.
func TestConditionsOnKeysWithSeveralValues(t *testing.T) {
	const key = "aws:TagKeys"
	for _, tc := range []struct {
		operator, values string
		got              []string
		want             bool
	}{
		{"ForAllValues:StringEquals", `["a","b"]`, []string{"a", "b"}, true},
		{"ForAllValues:StringEquals", `["a","b"]`, []string{"a", "c"}, false},
		{"ForAllValues:StringEquals", `["a","b"]`, nil, true},
		{"ForAllValues:StringNotLike", `["x*"]`, []string{"a", "b"}, true},
		{"ForAllValues:StringNotLike", `["x*"]`, []string{"a", "xb"}, false},
		{"ForAnyValue:StringEquals", `["a","b"]`, []string{"c", "b"}, true},
		{"ForAnyValue:StringEquals", `["a","b"]`, []string{"c"}, false},
		{"ForAnyValue:StringEquals", `["a","b"]`, nil, false},
		{"ForAnyValue:StringNotEquals", `["a"]`, []string{"a", "b"}, true},
		{"ForAnyValue:StringNotEquals", `["a"]`, []string{"a"}, false},
		{"ForAnyValue:StringNotEquals", `["a"]`, nil, false},
		{"ForAnyValue:StringEqualsIfExists", `["a"]`, nil, true},
		{"StringNotEquals", `["a"]`, []string{"a", "b"}, false},
		{"StringNotEquals", `["a"]`, nil, true},
		{"NumericLessThan", `3`, []string{"2.5"}, true},
		{"NumericLessThan", `"3"`, []string{"3"}, false},
		{"NumericLessThanEquals", `3`, []string{"3"}, true},
		{"NumericGreaterThan", `3`, []string{"3"}, false},
		{"NumericGreaterThanEquals", `3`, []string{"3"}, true},
		{"NumericEquals", `[1, 3]`, []string{"3.0"}, true},
		{"NumericNotEquals", `3`, []string{"3"}, false},
		{"NumericLessThan", `3`, []string{"two"}, false},
		{"NumericLessThanIfExists", `3`, nil, true},
	} {
		p, err := policy.ParseIdentity(`{"Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"` + tc.operator + `":{"` + key + `":` + tc.values + `}}}}`)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Decide(policy.Request{Action: "a:B", Resource: "r", Keys: map[string][]string{key: tc.got}}) == policy.Allowed
		if got != tc.want {
			t.Errorf("%s of %q for %s: %t, want %t", tc.operator, tc.got, tc.values, got, tc.want)
		}
	}
}
