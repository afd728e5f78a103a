package policy_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator/sqs/policy"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/conformance"
)

func TestConformance(t *testing.T) {
	words := map[policy.Decision]string{policy.Silent: conformance.Silent, policy.Allowed: conformance.Allow, policy.Denied: conformance.Deny}
	for _, c := range conformance.QueuePolicies(t) {
		t.Run(c.Name, func(t *testing.T) {
			got := conformance.Invalid
			if p, err := policy.Parse(string(c.Policy)); err == nil {
				got = words[p.Decide(policy.Request{
					Service: c.Request.Service, ARN: c.Request.ARN, Account: c.Request.Account,
					Action: c.Request.Action, Resource: c.Request.Resource, Keys: c.Request.Keys,
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
	for _, operator := range []string{"IpAddress", "NumericLessThan", "NotBool", "StringLikes"} {
		_, err := policy.Parse(`{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"` + operator + `":{"aws:SourceIp":"10.0.0.0/8"}}}}`)
		if err == nil {
			t.Errorf("Parse accepted %s", operator)
		}
	}
}
