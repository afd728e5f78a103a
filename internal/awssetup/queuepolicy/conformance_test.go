package queuepolicy_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/queuepolicy"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/conformance"
)

// The emulator's evaluator must pass the same cases.
func TestConformance(t *testing.T) {
	words := map[queuepolicy.Verdict]string{
		queuepolicy.NoOpinion: conformance.Silent, queuepolicy.Allow: conformance.Allow, queuepolicy.Deny: conformance.Deny,
	}
	for _, c := range conformance.QueuePolicies(t) {
		t.Run(c.Name, func(t *testing.T) {
			got := conformance.Invalid
			if p, err := queuepolicy.Parse(string(c.Policy)); err == nil {
				got = words[p.Evaluate(queuepolicy.Request{
					Service: c.Request.Service, ARN: c.Request.ARN, Account: c.Request.Account,
					Action: c.Request.Action, Resource: c.Request.Resource, Context: c.Request.Keys,
				})]
			}
			if got != c.Want {
				t.Errorf("%s: got %q, want %q, policy %s", c.From, got, c.Want, c.Policy)
			}
		})
	}
}
