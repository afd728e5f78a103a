package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	emulated "github.com/lifeboat-dev/lifeboat/internal/awsemu/sqs"
)

// instance is the id of the i-th instance that is a node here, and foreign of
// one that is none.
func instance(i int) string { return fmt.Sprintf("i-0%016x", i) }
func foreign(i int) string  { return fmt.Sprintf("i-f%016x", i) }
func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", i>>16, i>>8&255, i&255)
}

// The messages, as EventBridge sends them.

func spot(id, instance string) string {
	return fmt.Sprintf(`{"version":"0","id":%q,"detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":%q,"time":%q,"region":%q,`+
		`"resources":["arn:aws:ec2:eu-west-1b:instance/%[5]s"],"detail":{"instance-id":%[5]q,"instance-action":"terminate"}}`,
		id, account, stamp(time.Now()), region, instance)
}

func stateChange(id, instance, state string) string {
	return fmt.Sprintf(`{"version":"0","id":%q,"detail-type":"EC2 Instance State-change Notification","source":"aws.ec2","account":%q,"time":%q,"region":%q,`+
		`"resources":["arn:aws:ec2:eu-west-1:210987654321:instance/%[5]s"],"detail":{"instance-id":%[5]q,"state":%q}}`,
		id, account, stamp(time.Now()), region, instance, state)
}

// scheduled is a stop in twelve days, or news of a database.
func scheduled(id, service, entity string) string {
	code := "AWS_" + service + "_INSTANCE_STOP_SCHEDULED"
	start := time.Now().Add(12 * 24 * time.Hour)
	return fmt.Sprintf(`{"version":"0","id":%q,"detail-type":"AWS Health Event","source":"aws.health","account":%q,"time":%q,"region":%q,"resources":[],`+
		`"detail":{"eventArn":"arn:aws:health:eu-west-1::event/%[5]s/%[6]s/%[1]s","service":%[5]q,"eventTypeCode":%[6]q,"eventTypeCategory":"scheduledChange",`+
		`"eventScopeCode":"ACCOUNT_SPECIFIC","communicationId":%[1]q,"startTime":%[7]q,"endTime":%[8]q,"lastUpdatedTime":%[9]q,"statusCode":"upcoming",`+
		`"eventRegion":"eu-west-1","eventDescription":[{"language":"en_US","latestDescription":"Your instance will be stopped."}],`+
		`"affectedEntities":[{"entityValue":%[10]q,"status":"PENDING"}],"affectedAccount":%[2]q,"page":"1","totalPages":"1","backupEvent":"false"}}`,
		id, account, stamp(time.Now()), region, service, code, health(start), health(start.Add(2*time.Hour)), health(time.Now()), entity)
}

func stamp(t time.Time) string  { return t.UTC().Format(time.RFC3339) }
func health(t time.Time) string { return t.UTC().Format("Mon, 2 Jan 2006 15:04:05 GMT") }

// mixed is the i-th message of a load of which a third each are spot warnings,
// state changes and scheduled changes; one in three of its nodes has a spot
// warning.
func mixed(round, i, nodes int) string {
	id := fmt.Sprintf("%d-%d", round, i)
	switch i % 3 {
	case 0:
		return spot(id, instance(i%nodes))
	case 1:
		return stateChange(id, instance(i%nodes), "stopping")
	}
	return scheduled(id, "EC2", instance(i%nodes))
}

// noisy is the i-th message of a load of which 95 in 100 concern nobody here.
func noisy(round, i, nodes int) string {
	if i%20 == 0 {
		return mixed(round, i/20, nodes)
	}
	return noise(round, i)
}

// noise is what rules that are too wide, or an account with several clusters,
// bring. Of one in three, those of instances that are no nodes, it cannot be known
// at once that they concern nobody: the node may be about to register.
func noise(round, i int) string {
	id := fmt.Sprintf("%d-noise-%d", round, i)
	switch i % 6 {
	case 0:
		return stateChange(id, foreign(i), "pending")
	case 1:
		return stateChange(id, instance(i), "running")
	case 2:
		return stateChange(id, foreign(i), "stopping")
	case 3:
		return scheduled(id, "RDS", "database-"+strconv.Itoa(i))
	case 4:
		return spot(id, foreign(i))
	}
	return `{"version":"0","id":"` + id + `","detail-type":"EBS Volume Notification","source":"aws.ec2","account":"` + account +
		`","time":"` + stamp(time.Now()) + `","region":"` + region + `","resources":[],"detail":{"event":"createVolume","result":"available"}}`
}

// waits reports whether the i-th of the noise has to.
func waits(i int) bool { return i%6 == 2 || i%6 == 4 }

// fill puts messages on the queue of lifeboatd, without the wire in between.
func (r *rig) fill(count int, body func(i int) string) {
	r.Helper()
	for i := range count {
		_, err := r.cloud.States.SQS.Send(r.queue, emulated.Outgoing{Body: body(i)}, account)
		r.must(err)
	}
}

// waiting counts the messages of lifeboatd's queue: those that can be received,
// and those that are hidden.
func (r *rig) waiting() (visible, hidden int) {
	all, err := r.cloud.States.SQS.Attributes(r.queue)
	r.must(err)
	visible, err = strconv.Atoi(all["ApproximateNumberOfMessages"])
	r.must(err)
	hidden, err = strconv.Atoi(all["ApproximateNumberOfMessagesNotVisible"])
	r.must(err)
	return visible, hidden
}

// emptied waits until the queue holds at most so many messages, hidden: every
// other was deleted, which is after what it says was recorded.
func (r *rig) emptied(but int) {
	r.Helper()
	r.until("the queue to be empty", 5*time.Minute, func() (bool, error) {
		visible, hidden := r.waiting()
		return visible == 0 && hidden <= but, fmt.Errorf("it holds %d messages and %d that are hidden", visible, hidden)
	})
}

// forget deletes all Interruptions.
func (r *rig) forget() {
	r.Helper()
	r.must(r.admin.DeleteAllOf(r.Context(), &v1alpha1.Interruption{}))
}

// each does something n times, so many at once.
func (r *rig) each(n, abreast int, do func(ctx context.Context, i int) error) {
	r.Helper()
	var next, failed atomic.Int64
	var group sync.WaitGroup
	for range abreast {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && failed.Load() == 0; i = next.Add(1) - 1 {
				if err := do(r.Context(), int(i)); err != nil {
					failed.Add(1)
					r.Error(err)
				}
			}
		})
	}
	group.Wait()
	if failed.Load() > 0 {
		r.FailNow()
	}
}

// abreast is how many writes of the floor are under way at the same time: as
// many as intake's, see internal/intake/sqs.
const abreast = 64

// floor creates n Interruptions as intake would write them, and does nothing
// else.
func (r *rig) floor(n int) tally {
	r.Helper()
	now := time.Now()
	began := r.begin()
	r.each(n, abreast, func(ctx context.Context, i int) error {
		return r.peer.Create(ctx, record(i, now))
	})
	t := r.since(began, n)
	r.forget()
	return t
}

// tally is a number of things that were done, the time they took, and the
// processor time.
type tally struct {
	things int
	took   time.Duration
	cost
}

// start is when something was begun, and what had been spent by then.
type start struct {
	at time.Time
	cost
}

func (r *rig) begin() start {
	r.Helper()
	return start{time.Now(), r.cost()}
}

// since tells of what was done since.
func (r *rig) since(began start, things int) tally {
	r.Helper()
	took, c := time.Since(began.at), r.cost()
	return tally{things, took, cost{c.cluster - began.cluster, c.lifeboat - began.lifeboat, c.here - began.here}}
}

func (t *tally) add(o tally) {
	t.things += o.things
	t.took += o.took
	t.cluster += o.cluster
	t.lifeboat += o.lifeboat
	t.here += o.here
}

// rate is how many there were a second.
func (t *tally) rate() float64 { return float64(t.things) / t.took.Seconds() }

// each is what one cost, in microseconds.
func (t *tally) each(d time.Duration) float64 { return float64(d.Microseconds()) / float64(t.things) }

// record is an Interruption of the size of those that intake writes.
func record(i int, now time.Time) client.Object {
	return &v1alpha1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instance(i)},
		Spec: v1alpha1.InterruptionSpec{
			InstanceID: instance(i), NodeName: nodeName(i), NodeUID: "5a0d5a8e-7d3f-4f0a-9d53-6f2a4c0b7e11",
			Notices: []v1alpha1.Notice{{
				ID: fmt.Sprintf("floor-%d", i), Kind: "SpotInterruption", Source: "sqs", Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now),
				Deadline:       &v1alpha1.Deadline{Time: metav1.NewTime(now.Add(2 * time.Minute)), Type: v1alpha1.DeadlineHard},
				InstanceAction: "terminate", Description: "EC2 takes the spot instance back at " + stamp(now.Add(2*time.Minute)) + " (terminate)",
			}},
		},
	}
}
