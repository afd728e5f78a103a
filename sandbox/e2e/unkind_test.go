//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// The credentials of lifeboatd expire several times while it drains a node. Calls with expired ones
// fail, so it must renew them. The time of a credential has whole seconds, so some expire on the way:
// such a call fails, and the SDK or the caller repeats it.
func TestCredentialsExpireDuringDrain(t *testing.T) {
	t.Parallel()
	const life = 3 * time.Second
	r := newUnkindRig(t, sandbox.Options{LimitRole: true, SessionLife: life})
	records := r.watchPods()
	interrupted, pods := r.stage()
	var mu sync.Mutex
	sessions := map[string]bool{}
	r.AWS().Gate.Watch(func(call *wire.Request, _ *wire.Error) {
		mu.Lock()
		defer mu.Unlock()
		if !r.AWS().States.STS.Identify(call.AccessKey).Expires.IsZero() {
			sessions[call.AccessKey] = true
		}
	})
	r.reclaim(interrupted)
	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, 80*time.Second)
	r.checkDrain(records, interrupted, pods, record)
	r.until("the queue to be read with three credentials", time.Minute, func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return len(sessions) >= 3, fmt.Errorf("%d were used", len(sessions))
	})
	if up := r.metric("lifeboat_source_up", `source="sqs"`); up != 1 {
		t.Errorf("source_up is %v", up)
	}
}

// AWS's clock and that of lifeboatd differ by 90 s. If AWS's is ahead, the time in the warning plus two
// minutes is after the end of the instance. A pod that a budget holds until its last call must leave
// before the real end. If AWS's is behind, a warning looks old, and the pods leave early.
func TestAWSClockDiffers(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"ahead": 90 * time.Second, "behind": -90 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The poll of EC2 would correct the deadline: the emulator's answers to it do not have the offset.
			r := newUnkindRig(t, sandbox.Options{LifeboatdArgs: []string{"--sources=sqs"}})
			r.AWS().SetClockOffset(offset)
			records := r.watchPods()
			interrupted := r.launch(1)[0]
			r.apply(statefulSet("held", 1, 2*time.Second), budget("held", 1)) // no surge moves it
			r.waitPods(interrupted, 1)
			r.launch(1)
			r.reclaim(interrupted)
			end := time.Now().Add(ec2.WarningLead)
			record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, 2*time.Minute)
			// The time of an event has whole seconds, and its delivery takes a moment.
			if d := record.Status.Deadline.Time.Time; d.After(end.Add(5 * time.Second)) {
				t.Errorf("the deadline is %s after the end of the instance", d.Sub(end))
			}
			r.until("the pod to be gone", 30*time.Second, func(context.Context) (bool, error) {
				left := records.on(interrupted.PrivateDNSName)
				if len(left) != 1 || left[0].gone.IsZero() {
					return false, errors.New("it is there")
				}
				if left[0].asked.IsZero() || left[0].asked.After(end) {
					t.Errorf("the pod was asked to stop at %s, and its instance ended at %s", left[0].asked, end)
				}
				return true, nil
			})
		})
	}
}
