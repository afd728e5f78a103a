package doctor_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// TestMergedRulesAreSound checks that the doctor accepts merged rules, and that it finds what is
// wrong with one.
func TestMergedRulesAreSound(t *testing.T) {
	a := newAccount(t)
	separate := a.want
	merged, err := separate.Merged()
	a.must(err)
	_, err = awssetup.Apply(t.Context(), awssetup.Clients{SQS: a.queues, Events: a.events}, merged)
	a.must(err)
	if all := a.diagnose(doctor.Cluster{}); len(all) > 0 {
		t.Errorf("findings:\n%s", text(all))
	}
	a.putRule(eventbridge.PutRuleInput{
		Name:         aws.String(merged.Rules[0].Name),
		EventPattern: aws.String(`{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`),
	})
	found := map[string]bool{}
	for _, f := range a.diagnose(doctor.Cluster{}) {
		for _, kind := range f.Kinds {
			found[f.ID+" "+kind] = true
		}
	}
	if !found["kind-uncovered RebalanceRecommendation"] || found["kind-uncovered SpotInterruption"] {
		t.Errorf("findings %v", found)
	}
}
