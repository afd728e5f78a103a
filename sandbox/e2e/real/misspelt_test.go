//go:build e2e

package real

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// TestMisspeltRule gives the spot rule a detail-type that AWS never sends. The queue then receives
// only the state change to shutting-down. Lifeboat polls no AWS API in this test; its sources are
// the queue and the node agents.
func TestMisspeltRule(t *testing.T) {
	s := needWorld(t)
	s.setDetailType("EC2 Spot Interruption Warning")
	t.Cleanup(func() {
		s.setDetailType("EC2 Spot Instance Interruption Warning")
		if err := s.RestartLifeboat(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := s.RestartLifeboat(t.Context(), "--sources=sqs,imds"); err != nil {
		t.Fatal(err)
	}

	if err := s.StartAgents(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.StopAgents(); err != nil {
			t.Error(err)
		}
	})
	t.Run("group", func(t *testing.T) { // its parallel tests must end before the rule is repaired
		t.Run("with an agent on the node, hooks complete", receivedByAgent)
		t.Run("twin: with the queue alone, hooks do not start", receivedTooLate)
	})
}

func receivedByAgent(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	w := web{Name: "received", Replicas: 2, PreStop: hook}
	interrupted := s.interrupted(w.pool())
	pods := s.place(w, interrupted)
	s.until("its agent to read the metadata of "+interrupted.ID, 30*time.Second, func(context.Context) (bool, error) {
		return s.AWS().States.IMDS.Reads(interrupted.ID) > 0, errors.New("no read yet")
	})
	// The deadline comes from instance metadata, so it can be shorter than two minutes.
	warned := s.reclaim(interrupted, 30*time.Second)
	if got := s.waitRecord(interrupted.ID, 15*time.Second).Spec.Notices[0]; got.Source != notice.SourceIMDS {
		t.Errorf("received from %s", got.Source)
	}
	off := s.waitPowerOff(interrupted, time.Minute)
	for _, l := range s.readJournals(pods) {
		s.check(l.whole(hook, off))
		t.Logf("FIGURES %s: %s asked %s, hook whole %s, power off %s", t.Name(), l.Pod,
			since(warned, l.HookBegin), since(warned, l.HookEnd), since(warned, off))
	}
}

func receivedTooLate(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	w := web{Name: "missed", Replicas: 2, PreStop: hook}
	interrupted := s.interrupted(w.pool(), machines.TagNoAgent, "true")
	pods := s.place(w, interrupted)
	warned := s.reclaim(interrupted, shortNotice)
	off := s.waitPowerOff(interrupted, time.Minute)
	if got := s.waitRecord(interrupted.ID, 20*time.Second).Spec.Notices[0]; got.Source != notice.SourceQueue {
		t.Errorf("received from %s", got.Source)
	}
	for _, l := range s.readJournals(pods) {
		s.check(l.unasked())
		t.Logf("FIGURES %s: %s asked %s, power off %s", t.Name(), l.Pod, since(warned, l.HookBegin), since(warned, off))
	}
}

// waitRecord waits for the Interruption of an instance and returns it.
func (s *stage) waitRecord(id string, within time.Duration) *v1beta1.Interruption {
	s.t.Helper()
	var found *v1beta1.Interruption
	s.until("a record of "+id, within, func(ctx context.Context) (bool, error) {
		in, err := s.record(ctx, id)
		found = in
		return in != nil && len(in.Spec.Notices) > 0, fmt.Errorf("no Interruption: %w", err)
	})
	return found
}

// setDetailType changes the detail-type that the spot rule matches.
func (s *stage) setDetailType(detailType string) {
	s.t.Helper()
	pattern := fmt.Sprintf(`{"source":["aws.ec2"],"detail-type":[%q]}`, detailType)
	name := awssetup.RuleName(s.Wiring().Cluster, "spot-interruption")
	events := eventbridge.NewFromConfig(s.AWSConfig())
	_, err := events.PutRule(context.Background(), &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern})
	if err != nil {
		s.t.Fatal(err)
	}
}
