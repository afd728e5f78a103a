//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// breakage is a fault that keeps the spot warning from the queue.
type breakage struct {
	name string
	do   func(*testing.T, *rig, *eventbridge.Client)
	// within is how long the warning may take to arrive by another source.
	within time.Duration
	// source is the source that then delivers the warning.
	source string
	// says is text that the Interruption and the doctor's finding must contain.
	says []string
}

func breakages() []breakage {
	misspell := func(t *testing.T, r *rig, events *eventbridge.Client) {
		pattern := `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`
		name := r.spotRule()
		if _, err := events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern}); err != nil {
			t.Fatal(err)
		}
	}
	quick, slow := 10*time.Second, 30*time.Second
	return []breakage{
		{"the rule is misspelt", misspell, quick, notice.SourceIMDS, []string{"EC2 Spot Interruption Warning", "EC2 Spot Instance Interruption Warning"}},
		{"the rule is misspelt and the agent is gone", func(t *testing.T, r *rig, events *eventbridge.Client) {
			misspell(t, r, events)
			if err := r.StopAgents(); err != nil {
				t.Fatal(err)
			}
		}, slow, notice.SourceEC2, []string{"EC2 Spot Instance Interruption Warning"}},
		{"the rule is disabled", func(t *testing.T, r *rig, events *eventbridge.Client) {
			name := r.spotRule()
			if _, err := events.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: &name}); err != nil {
				t.Fatal(err)
			}
		}, quick, notice.SourceIMDS, []string{"disabled"}},
		{"the queue's policy is for another rule", func(t *testing.T, r *rig, _ *eventbridge.Client) {
			url, w := r.State().QueueURL, r.Wiring()
			policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},`+
				`"Action":"sqs:SendMessage","Resource":%q,"Condition":{"ArnEquals":{"aws:SourceArn":%q}}}]}`, w.QueueARN(), w.RuleARN("another"))
			if _, err := r.sqs.SetQueueAttributes(t.Context(), &awssqs.SetQueueAttributesInput{
				QueueUrl: &url, Attributes: map[string]string{"Policy": policy},
			}); err != nil {
				t.Fatal(err)
			}
		}, quick, notice.SourceIMDS, []string{"policy"}},
		{"the queue is deleted", func(t *testing.T, r *rig, _ *eventbridge.Client) {
			url := r.State().QueueURL
			if _, err := r.sqs.DeleteQueue(t.Context(), &awssqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
				t.Fatal(err)
			}
		}, quick, notice.SourceIMDS, []string{"queue", "not"}},
	}
}

func (r *rig) spotRule() string { return awssetup.RuleName(r.Wiring().Cluster, "spot-interruption") }

// TestSpotWarningIsRecordedWithBrokenWiring checks that the drain completes in time, and that the
// Interruption and the doctor name the fault.
func TestSpotWarningIsRecordedWithBrokenWiring(t *testing.T) {
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			r := newRigWith(t, sandbox.Options{Agents: true})
			records := r.watchPods()
			interrupted, pods := r.stage()
			r.agentsUp()
			events := eventbridge.NewFromConfig(r.AWSConfig())
			b.do(t, r, events)

			if err := r.EC2().Interrupt([]string{interrupted.ID}, ec2.InterruptOptions{}); err != nil {
				t.Fatal(err)
			}
			r.until("the reclaim to be recorded by "+b.source, b.within, func(ctx context.Context) (bool, error) {
				in, err := r.record(ctx, interrupted.ID)
				return in != nil && in.Spec.Notices[0].Source == b.source, err
			})
			record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, time.Minute)
			r.checkDrain(records, interrupted, pods, record)
			r.checkWiringDegraded(interrupted.ID, b.says)
			r.doctorFinds(events, b.says)
		})
	}
}

// agentsUp waits until every agent has read the metadata of its instance.
func (r *rig) agentsUp() {
	r.t.Helper()
	r.until("the agents to be up", 30*time.Second, func(context.Context) (bool, error) {
		for _, in := range r.EC2().Instances() {
			if r.AWS().States.IMDS.Reads(in.ID) == 0 {
				return false, fmt.Errorf("not read: that of %s", in.ID)
			}
		}
		return true, nil
	})
}

func (r *rig) checkWiringDegraded(id string, words []string) {
	r.t.Helper()
	var text string
	r.until("the record to say what is wrong", 40*time.Second, func(ctx context.Context) (bool, error) {
		in, err := r.record(ctx, id)
		if err != nil || in == nil {
			return false, err
		}
		c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionWiringDegraded)
		if c == nil {
			return false, nil
		}
		text = c.Message
		return true, nil
	})
	for _, word := range words {
		if !strings.Contains(text, word) {
			r.t.Errorf("the condition says %q, want %q in it", text, word)
		}
	}
}

func (r *rig) doctorFinds(events *eventbridge.Client, words []string) {
	r.t.Helper()
	target := doctor.Target{Desired: r.Wiring(), QueueURL: r.State().QueueURL}
	found, err := doctor.ReadAccount(r.t.Context(), doctor.NewClients(r.sqs, events), target)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, f := range doctor.Run(found, target.Desired, doctor.Cluster{}) {
		text := f.Object + ": " + f.Problem + " " + f.Fix
		all = append(all, string(f.Severity)+" "+text)
		fits := f.Severity == finding.Broken && f.Fix != ""
		for _, word := range words {
			fits = fits && strings.Contains(text, word)
		}
		if fits {
			return
		}
	}
	r.t.Errorf("the doctor has no broken finding with %q and a fix:\n%s", words, strings.Join(all, "\n"))
}
