//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

const (
	spotWarning = "EC2 Spot Instance Interruption Warning"
	stateChange = "EC2 Instance State-change Notification"
	unknown     = "i-0fffffffffffffff0"
)

// noise returns the other messages that a queue may hold, by their outcome in the metric of received
// messages.
func noise(account, region, alive string, now time.Time) map[string][]string {
	terminate := func(id string) map[string]string {
		return map[string]string{"instance-id": id, "instance-action": "terminate"}
	}
	return map[string][]string{
		"foreign": {
			envelope("other-account", spotWarning, "999999999999", region, now, terminate(alive)),
			envelope("other-region", spotWarning, account, "ap-south-1", now, terminate(alive)),
		},
		"stale": {envelope("stale", spotWarning, account, region, now.Add(-time.Hour), terminate(alive))},
		"ofNoConcern": {
			envelope("running", stateChange, account, region, now, map[string]string{"instance-id": alive, "state": "running"}),
			envelope("misspelt", "EC2 Spot Interruption Warning", account, region, now, terminate(alive)),
		},
		"unreadable": {
			"{", "not JSON at all", `{"version":"0"}`,
			envelope("no-instance", spotWarning, account, region, now, map[string]string{"instance-action": "terminate"}),
			envelope("bad-instance", spotWarning, account, region, now, terminate("i-../../etc")),
		},
		"notYetKnown": {envelope("unknown", spotWarning, account, region, now, terminate(unknown))},
	}
}

func TestNoiseMessagesAreCountedAndIgnored(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	records := r.watchPods()
	interrupted, pods := r.stage()
	alive := r.launch(1)[0]
	st, now := r.State(), time.Now()

	all := noise(st.Account, st.Region, alive.ID, now)
	for _, bodies := range all {
		for _, body := range bodies {
			r.send(body)
		}
	}
	// The relevant notice comes last, three times, after the state changes that follow from it.
	r.send(envelope("late", stateChange, st.Account, st.Region, now.Add(time.Second),
		map[string]string{"instance-id": interrupted.ID, "state": "pending"}))
	for range 3 {
		r.send(envelope("the-one", spotWarning, st.Account, st.Region, now,
			map[string]string{"instance-id": interrupted.ID, "instance-action": "terminate"}))
	}

	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, time.Minute)
	r.checkDrain(records, interrupted, pods, record)
	if n := len(record.Spec.Notices); n != 1 {
		t.Errorf("%d notices in the record, want 1: it was delivered three times", n)
	}
	for _, id := range []string{alive.ID, unknown} {
		if in, err := r.record(t.Context(), id); err != nil || in != nil {
			t.Errorf("instance %s has a record %v (error %v)", id, in, err)
		}
	}
	for outcome, bodies := range all {
		r.until(fmt.Sprintf("%d messages counted as %s", len(bodies), outcome), 30*time.Second, func(context.Context) (bool, error) {
			got := r.metric("lifeboat_received_messages_total", fmt.Sprintf("outcome=%q", outcome))
			return got >= float64(len(bodies)), fmt.Errorf("%v counted", got)
		})
	}
	r.unreadableReachTheDeadLetterQueue(len(all["unreadable"]))
	r.logSaysWhatToDo()
}

// unreadableReachTheDeadLetterQueue checks that unreadable messages are kept.
func (r *rig) unreadableReachTheDeadLetterQueue(n int) {
	r.t.Helper()
	url := r.State().DeadLetterURL
	r.until(fmt.Sprintf("%d messages in the dead-letter queue", n), 4*time.Minute, func(ctx context.Context) (bool, error) {
		out, err := r.sqs.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
			QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameApproximateNumberOfMessages},
		})
		if err != nil {
			return false, err
		}
		got := out.Attributes[string(sqstypes.QueueAttributeNameApproximateNumberOfMessages)]
		return got == fmt.Sprint(n), fmt.Errorf("%s messages", got)
	})
}

func (r *rig) logSaysWhatToDo() {
	r.t.Helper()
	text, err := os.ReadFile(r.LifeboatLog())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, want := range []string{"999999999999", "ap-south-1", "unreadable"} {
		if !strings.Contains(string(text), want) {
			r.t.Errorf("the log does not mention %s", want)
		}
	}
}
