package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const blockExpires = `{"id":"b","detail-type":"Capacity Block Reservation Expiration Warning","source":"aws.ec2","account":"210987654321",` +
	`"time":"2026-05-11T08:14:02Z","region":"eu-west-1","detail":{"capacity-reservation-id":"cr-1","end-date":"2026-05-11T08:54:02Z"}}`

// A Capacity Block's warning names no instance, and EC2 does not list new instances at once. The message
// stays in the queue while EC2 cannot list them, and until it was asked twice.
func TestGroupNoticesAreSplitByInstance(t *testing.T) {
	type listing = func(age time.Duration) (map[string][]string, error)
	two := []string{instance, "i-0bb2c3d4e5f607182"}
	all := map[string][]string{"cr-1": two}
	closed := strings.Replace(healthOf("h-0a1b2c3d4e5f60718"), "upcoming", "closed", 1)
	for name, tc := range map[string]struct {
		body                string
		list                listing // the instances that EC2 lists a time after the first receive
		recorded            []string
		receives, isDeleted int
		isLogged            bool
	}{
		"each instance gets its notice": {blockExpires, func(time.Duration) (map[string][]string, error) { return all, nil }, two, 2, 1, false},
		"EC2 lists one of two at first": {blockExpires, func(age time.Duration) (map[string][]string, error) {
			if age < 10*time.Second {
				return map[string][]string{"cr-1": two[:1]}, nil
			}
			return all, nil
		}, two, 2, 1, false},
		"EC2 lists none for 40 s": {blockExpires, func(age time.Duration) (map[string][]string, error) {
			if age < 40*time.Second {
				return nil, nil
			}
			return all, nil
		}, two, 3, 1, false},
		"a block without instances is dropped":      {blockExpires, func(time.Duration) (map[string][]string, error) { return nil, nil }, nil, 5, 1, true},
		"a closed event of a host without any, too": {closed, func(time.Duration) (map[string][]string, error) { return nil, nil }, nil, 1, 1, true},
		"what cannot be asked for stays":            {blockExpires, func(time.Duration) (map[string][]string, error) { return nil, errors.New("denied") }, nil, 5, 0, false},
		"without the source it is passed over":      {blockExpires, nil, nil, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				began, recorder, queue := time.Now(), &lateRecorder{done: map[string]bool{}}, &visibleAPI{fakeQueue: newFakeQueue(), body: tc.body}
				w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
				o := sqs.Options{Receivers: 1}
				if tc.list != nil {
					o.Instances = func(_ context.Context, filter string, values []string) (map[string][]string, error) {
						if tc.body == blockExpires && (filter != "capacity-reservation-id" || !slices.Equal(values, []string{"cr-1"})) {
							return nil, fmt.Errorf("asked for %s %v", filter, values)
						}
						return tc.list(time.Since(began))
					}
				}
				stop := w.run(queue, recorder, o)
				time.Sleep(4 * time.Minute) // on synctest's clock
				synctest.Wait()
				stop()
				if got := recorder.all(); !slices.Equal(got, tc.recorded) || queue.deleted() != tc.isDeleted || queue.received() != tc.receives {
					t.Errorf("recorded %v, received %d times, deleted %d; want %v, %d and %d", got, queue.received(), queue.deleted(), tc.recorded, tc.receives, tc.isDeleted)
				}
				if got := w.log.with("dropped notice of a group") > 0; got != tc.isLogged {
					t.Errorf("logged that it is dropped: %v", got)
				}
			})
		})
	}
}

// Only a message whose notices all name their instance is retried while it is hidden. Any other
// waits for the next receive.
func TestGroupNoticeWithUnknownInstanceIsRedelivered(t *testing.T) {
	const late = "i-0bb2c3d4e5f607182"
	for name, tc := range map[string]struct {
		body string
		late string
		down error
		want []string
	}{
		"of a Capacity Block":                        {blockExpires, late, nil, []string{instance, late}},
		"of an instance and of a host":               {healthOf(other, "h-0a1b2c3d4e5f60718"), late, nil, []string{instance, late, other}},
		"of an instance, where the report is not up": {healthOf(late, "vol-0a1b2c3d4e5f60718"), late, errors.New("down"), []string{late, "vol-0a1b2c3d4e5f60718"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				recorder := &lateRecorder{late: tc.late, down: tc.down, done: map[string]bool{}}
				queue := &visibleAPI{fakeQueue: newFakeQueue(), body: tc.body}
				w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
				stop := w.run(queue, recorder, sqs.Options{Receivers: 1, Instances: func(_ context.Context, _ string, values []string) (map[string][]string, error) {
					return map[string][]string{values[0]: {instance, late}}, nil
				}})
				time.Sleep(27 * time.Second) // on synctest's clock; longer than a batch is held
				synctest.Wait()
				if queue.deleted() != 0 {
					t.Error("deleted while one of its instances was not known yet")
				}
				recorder.know()
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if tc.down != nil && queue.deleted() != 0 {
					t.Error("deleted while its report was not taken")
				}
				recorder.up()
				time.Sleep(time.Minute)
				synctest.Wait()
				stop()
				if got := recorder.all(); !slices.Equal(got, tc.want) || queue.deleted() == 0 {
					t.Errorf("recorded %v, deleted %d times; want %v", got, queue.deleted(), tc.want)
				}
			})
		})
	}
}

// The dead-letter queue takes a message after thirty receives, so it must be received less and
// less often while EC2 cannot list its instances. Its other notices are recorded meanwhile.
func TestGroupNoticeSurvivesEC2Outage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const outage, most = 35 * time.Minute, 30
		began := time.Now()
		recorder := &lateRecorder{done: map[string]bool{}}
		queue := &visibleAPI{fakeQueue: newFakeQueue(), body: healthOf(other, "h-0a1b2c3d4e5f60718")}
		w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
		stop := w.run(queue, recorder, sqs.Options{Receivers: 1, Instances: func(_ context.Context, _ string, values []string) (map[string][]string, error) {
			if time.Since(began) < outage {
				return nil, errors.New("RequestLimitExceeded")
			}
			return map[string][]string{values[0]: {instance}}, nil
		}})
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if got := recorder.all(); queue.received() < 3 || !slices.Equal(got, []string{other}) {
			t.Errorf("received %d times in the first 40 seconds, recorded %v", queue.received(), got)
		}
		time.Sleep(outage + 3*time.Minute - time.Since(began))
		synctest.Wait()
		stop()
		if got := recorder.all(); queue.received() >= most || queue.deleted() == 0 || !slices.Equal(got, []string{instance, other}) {
			t.Errorf("received %d times in %s, deleted %d times, recorded %v", queue.received(), outage, queue.deleted(), got)
		}
	})
}

// A caller with permissions for one group can name any instance in a call that AWS refuses.
func TestRefusedCompletionCountsOnlyInOwnGroup(t *testing.T) {
	refused := func(group, more string) string {
		return `{"id":"t","detail-type":"AWS API Call via CloudTrail","source":"aws.autoscaling","account":"210987654321","time":"2026-05-11T08:14:02Z",` +
			`"region":"eu-west-1","detail":{"eventName":"CompleteLifecycleAction","errorCode":"ValidationException","errorMessage":"No active Lifecycle Action found",` +
			`"requestParameters":{"autoScalingGroupName":"` + group + `","lifecycleHookName":"drain","instanceId":"` + instance + `"}` + more + `}}`
	}
	for name, tc := range map[string]struct {
		body     string
		receives int
		want     []string
	}{
		"of its own group":                      {refused("workers", ""), 1, []string{instance}},
		"of its own, where EC2 lists it late":   {refused("late", ""), 2, []string{instance}},
		"of a group of others, after two looks": {refused("theirs", ""), 2, nil},
		"of no group":                           {refused("", ""), 1, nil},
		"of a drill":                            {refused("lifeboat-drill", `,"lifeboat-drill":{"id":"d"}`), 1, []string{instance}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				began, recorder, queue := time.Now(), &lateRecorder{done: map[string]bool{}}, &visibleAPI{fakeQueue: newFakeQueue(), body: tc.body}
				w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
				stop := w.run(queue, recorder, sqs.Options{Receivers: 1, Instances: func(_ context.Context, filter string, values []string) (map[string][]string, error) {
					if filter != "tag:aws:autoscaling:groupName" {
						return nil, fmt.Errorf("asked for %s %v", filter, values)
					}
					found := map[string][]string{"workers": {other, instance}, "theirs": {other}}
					if time.Since(began) > time.Second {
						found["late"] = found["workers"]
					}
					return found, nil
				}})
				time.Sleep(3 * time.Minute) // on synctest's clock
				synctest.Wait()
				stop()
				if got := recorder.all(); !slices.Equal(got, tc.want) || queue.deleted() != 1 || queue.received() != tc.receives {
					t.Errorf("recorded %v, received %d times, deleted %d; want %v, %d and 1", got, queue.received(), queue.deleted(), tc.want, tc.receives)
				}
			})
		})
	}
}

// One message can name many hosts, which cost one request to EC2.
func TestHostsOfOneMessageShareOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var hosts []string
		for i := range 500 {
			hosts = append(hosts, fmt.Sprintf("h-%017x", i))
		}
		requests := 0
		recorder, api := &lateRecorder{done: map[string]bool{}}, newFakeQueue(healthOf(hosts...), healthOf(append(hosts, "h-1")...))
		w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
		stop := w.run(api, recorder, sqs.Options{Receivers: 1, Instances: func(_ context.Context, _ string, values []string) (map[string][]string, error) {
			requests++
			return map[string][]string{values[7]: {instance}}, nil
		}})
		time.Sleep(time.Second) // on synctest's clock
		synctest.Wait()
		stop()
		if got := recorder.all(); requests != 1 || len(api.deletes) != 0 || !slices.Equal(got, []string{instance}) {
			t.Errorf("%d requests for 500 hosts, deleted %d, recorded %v; want one request and notice: 501 hosts are unreadable", requests, len(api.deletes), got)
		}
	})
}

// healthOf is an AWS Health message about entities.
func healthOf(entities ...string) string {
	return `{"id":"h","detail-type":"AWS Health Event","source":"aws.health","account":"210987654321","time":"2026-05-04T09:00:00Z","region":"eu-west-1",` +
		`"detail":{"eventArn":"arn","service":"EC2","eventTypeCode":"AWS_EC2_DEDICATED_HOST_RETIREMENT_SCHEDULED","eventTypeCategory":"scheduledChange",` +
		`"communicationId":"c","startTime":"Mon, 18 May 2026 14:00:00 GMT","statusCode":"upcoming","affectedEntities":[{"entityValue":"` +
		strings.Join(entities, `"},{"entityValue":"`) + `"}]}}`
}

// lateRecorder is a recorder that at first does not know an instance and does not accept
// reports.
type lateRecorder struct {
	late string
	down error

	mu   sync.Mutex
	done map[string]bool
}

func (r *lateRecorder) know() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = ""
}

func (r *lateRecorder) up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = nil
}

func (r *lateRecorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.done))
}

func (r *lateRecorder) Record(_ context.Context, n notice.Notice) (intake.Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.InstanceID == r.late {
		return intake.NotYetKnown, nil
	}
	r.done[n.InstanceID] = true
	return intake.Recorded, nil
}

func (r *lateRecorder) Report(_ context.Context, report intake.Report) (intake.Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down != nil {
		return "", r.down
	}
	for _, volume := range report.Volumes {
		r.done[volume] = true
	}
	return intake.Recorded, nil
}

func (r *lateRecorder) Answer(context.Context, intake.Probe) error { return nil }

// visibleAPI is a queue with one message, which every receive returns while it is visible, until
// it is deleted.
type visibleAPI struct {
	*fakeQueue
	body string

	mu       sync.Mutex
	until    time.Time // hidden until then
	receives int
}

func (v *visibleAPI) deleted() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.deletes)
}

func (v *visibleAPI) received() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.receives
}

func (v *visibleAPI) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, _ ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	for end := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second); ; time.Sleep(time.Second) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		v.mu.Lock()
		if now := time.Now(); len(v.deletes) == 0 && !now.Before(v.until) {
			v.receives++
			v.until = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
			m := types.Message{Body: &v.body, ReceiptHandle: aws.String("handle"), Attributes: map[string]string{
				string(types.MessageSystemAttributeNameApproximateReceiveCount): strconv.Itoa(v.receives)}}
			v.mu.Unlock()
			return &awssqs.ReceiveMessageOutput{Messages: []types.Message{m}}, nil
		}
		v.mu.Unlock()
		if !time.Now().Before(end) {
			return &awssqs.ReceiveMessageOutput{}, nil
		}
	}
}

func (v *visibleAPI) DeleteMessageBatch(ctx context.Context, in *awssqs.DeleteMessageBatchInput, _ ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fakeQueue.DeleteMessageBatch(ctx, in)
}

func (v *visibleAPI) ChangeMessageVisibilityBatch(_ context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, _ ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.until = time.Now().Add(time.Duration(in.Entries[0].VisibilityTimeout) * time.Second)
	return &awssqs.ChangeMessageVisibilityBatchOutput{}, nil
}
