//go:build e2e

package real

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// TestMisspeltRule: the rule asks for what AWS does not send, so that all the
// queue brings is that the instance is shutting down. Here Lifeboat listens to
// the queue alone, and to its agents where there are any.
func TestMisspeltRule(t *testing.T) {
	s := needWorld(t)
	s.spell("EC2 Spot Interruption Warning")
	t.Cleanup(func() {
		s.spell("EC2 Spot Instance Interruption Warning")
		if err := s.RestartLifeboat(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := s.RestartLifeboat(t.Context(), "--sources=sqs"); err != nil {
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
	t.Run("group", func(t *testing.T) { // its parallel tests end before all is mended
		t.Run("with an agent on the node hooks run whole", heardByAgent)
		t.Run("twin: with the queue alone they do not begin", heardTooLate)
	})
}

func heardByAgent(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	w := web{Name: "heard", Replicas: 2, PreStop: hook}
	interrupted := s.interrupted(w.pool())
	pods := s.place(w, interrupted)
	s.until("its agent to read the metadata of "+interrupted.ID, 30*time.Second, func(context.Context) (bool, error) {
		return s.AWS().States.IMDS.Reads(interrupted.ID) > 0, errors.New("it has not")
	})
	// The metadata tells the deadline, so it need not be two minutes away.
	told := s.reclaim(interrupted, 30*time.Second)
	if got := s.heard(interrupted.ID, 15*time.Second).Spec.Notices[0]; got.Source != notice.SourceIMDS {
		t.Errorf("received from %s", got.Source)
	}
	off := s.dark(interrupted, time.Minute)
	for _, l := range s.lives(pods) {
		s.holds(l.whole(hook, off))
		t.Logf("FIGURES %s: %s asked %s, hook whole %s, power off %s", t.Name(), l.Pod,
			since(told, l.HookBegin), since(told, l.HookEnd), since(told, off))
	}
}

func heardTooLate(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	w := web{Name: "unheard", Replicas: 2, PreStop: hook}
	interrupted := s.interrupted(w.pool(), machines.TagNoAgent, "true")
	pods := s.place(w, interrupted)
	told := s.reclaim(interrupted, shortNotice)
	off := s.dark(interrupted, time.Minute)
	if got := s.heard(interrupted.ID, 20*time.Second).Spec.Notices[0]; got.Source != notice.SourceQueue {
		t.Errorf("received from %s", got.Source)
	}
	for _, l := range s.lives(pods) {
		s.holds(l.unasked())
		t.Logf("FIGURES %s: %s asked %s, power off %s", t.Name(), l.Pod, since(told, l.HookBegin), since(told, off))
	}
}

// heard waits until there is a record of an instance, and returns it.
func (s *stage) heard(id string, within time.Duration) *v1alpha1.Interruption {
	s.t.Helper()
	var found *v1alpha1.Interruption
	s.until("a record of "+id, within, func(ctx context.Context) (bool, error) {
		in, err := s.record(ctx, id)
		found = in
		return in != nil && len(in.Spec.Notices) > 0, fmt.Errorf("there is none, %w", err)
	})
	return found
}

// spell has the rule for spot warnings ask for a detail-type.
func (s *stage) spell(detailType string) {
	s.t.Helper()
	pattern := fmt.Sprintf(`{"source":["aws.ec2"],"detail-type":[%q]}`, detailType)
	name := awssetup.RuleName(s.Wiring().Cluster, "spot-interruption")
	events := eventbridge.NewFromConfig(s.AWSConfig())
	_, err := events.PutRule(context.Background(), &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern})
	if err != nil {
		s.t.Fatal(err)
	}
}
