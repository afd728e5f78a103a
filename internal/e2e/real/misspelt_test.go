package real

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

// TestMisspeltRule: the rule asks for what AWS does not send, so that all the
// queue brings is that the instance is shutting down. Here Lifeboat listens to
// the queue alone, and to its agents where there are any.
func TestMisspeltRule(t *testing.T) {
	s := needWorld(t)
	pattern := `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`
	name := wiring.RuleName(s.Wiring().Cluster, "spot-interruption")
	events := eventbridge.NewFromConfig(s.AWSConfig())
	if _, err := events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern}); err != nil {
		t.Fatal(err)
	}
	if err := s.RestartLifeboat(t.Context(), "--sources=sqs"); err != nil {
		t.Fatal(err)
	}

	t.Run("twin: with the queue alone hooks do not run", func(t *testing.T) {
		s := needWorld(t)
		w := web{Name: "unheard", Replicas: 2, PreStop: hook}
		doomed := s.doomed(w.pool())
		pods := s.place(w, doomed)
		s.reclaim(doomed, shortNotice)
		s.dark(doomed, time.Minute)
		if got := s.heard(doomed.ID, 20*time.Second).Spec.Notices[0]; got.Source != notice.SourceSQS {
			t.Errorf("heard of by %s", got.Source)
		}
		for _, l := range s.lives(pods) {
			s.holds(l.unasked())
		}
	})

	t.Run("with an agent on the node they run whole", func(t *testing.T) {
		s := needWorld(t)
		if err := s.StartAgents(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.StopAgents(); err != nil {
				t.Error(err)
			}
		})
		w := web{Name: "heard", Replicas: 2, PreStop: hook}
		doomed := s.doomed(w.pool())
		pods := s.place(w, doomed)
		s.reads(doomed.ID)
		told := s.reclaim(doomed, notice)
		if got := s.heard(doomed.ID, 15*time.Second).Spec.Notices[0]; got.Source != notice.SourceIMDS {
			t.Errorf("heard of by %s", got.Source)
		}
		off := s.dark(doomed, notice+30*time.Second)
		for _, l := range s.lives(pods) {
			s.holds(l.whole(hook, off))
			t.Logf("FIGURES %s: %s asked at +%.1f s", t.Name(), l.Pod, l.HookBegin.Sub(told).Seconds())
		}
	})
}

// reads waits until an agent has read the metadata of an instance.
func (s *stage) reads(id string) {
	s.t.Helper()
	s.until("an agent to read the metadata of "+id, 30*time.Second, func(ctx context.Context) (bool, error) {
		return s.AWS().States.IMDS.Reads(id) > 0, fmt.Errorf("none has")
	})
}
