package bench

import (
	"fmt"
	"strconv"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/sqs"
)

// instance is the id of the i-th node's instance. foreign is the id of an instance that is not a node.
func instance(i int) string { return fmt.Sprintf("i-0%016x", i) }
func foreign(i int) string  { return fmt.Sprintf("i-f%016x", i) }

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

// scheduled is an AWS Health event: a stop in twelve days.
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

// mixed is the i-th message of a load of one third each of spot warnings, state changes and
// scheduled changes.
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

// noisy is the i-th message of a load of which 95 in 100 concern no node.
func noisy(round, i, nodes int) string {
	if i%20 == 0 {
		return mixed(round, i/20, nodes)
	}
	return noise(round, i)
}

// noise is what rules that are too wide, or an account with several clusters, bring. Lifeboat
// keeps one message in three on the queue: its instance may be about to register as a node.
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

// staysQueued reports whether the i-th message of the noise stays on the queue.
func staysQueued(i int) bool { return i%6 == 2 || i%6 == 4 }

// fill puts messages on lifeboatd's queue, inside the emulator.
func (r *rig) fill(count int, body func(i int) string) {
	r.Helper()
	for i := range count {
		_, err := r.cloud.States.SQS.Send(r.queue, emulated.Outgoing{Body: body(i)}, account)
		r.must(err)
	}
}

// send sends one message over HTTP.
func (r *rig) send(url, body string) {
	r.Helper()
	_, err := r.aws.SendMessage(r.Context(), &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	r.must(err)
}

// queued counts the messages of lifeboatd's queue: those that can be received, and those that
// are hidden until their visibility timeout.
func (r *rig) queued() (visible, hidden int) {
	all, err := r.cloud.States.SQS.Attributes(r.queue)
	r.must(err)
	visible, err = strconv.Atoi(all["ApproximateNumberOfMessages"])
	r.must(err)
	hidden, err = strconv.Atoi(all["ApproximateNumberOfMessagesNotVisible"])
	r.must(err)
	return visible, hidden
}

// untilDeleted waits until lifeboatd has deleted all messages except so many.
func (r *rig) untilDeleted(except int) {
	r.Helper()
	r.until("the queue to be empty", 5*time.Minute, func() (bool, error) {
		visible, hidden := r.queued()
		return visible == 0 && hidden <= except, fmt.Errorf("it holds %d messages and %d hidden ones", visible, hidden)
	})
}
