package doctor

import (
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkAbsentDeadLetters reports dead-letter queues that do not exist: SQS accepts the
// ARN of a queue that was deleted later, and then loses what it should move there.
func checkAbsentDeadLetters(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	for _, arn := range e.Absent {
		var users []string
		if e.queue.DeadLetterARN == arn {
			users = append(users, e.queueObject())
		}
		n := 0
		for _, r := range e.rules {
			for _, t := range r.To(e.queue.ARN) {
				if t.DeadLetterARN == arn {
					n++
				}
			}
		}
		if n > 0 {
			users = append(users, fmt.Sprintf("%d targets of its rules", n))
		}
		if len(users) == 0 {
			continue
		}
		name := snapshot.Name(arn)
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idDeadLetterAbsent, Object: "queue " + name,
			Problem: fmt.Sprintf("it does not exist, and it is the dead-letter queue of %s: what cannot be read or delivered is lost, and you do not see it", joinList(users)),
			Fix:     e.fix("", e.hasLifeboatName(), "", "aws sqs create-queue --queue-name "+name+" --attributes MessageRetentionPeriod=1209600"),
			Change:  createQueue(snapshot.Queue{ARN: arn, Name: name, Known: true, ManagedSSE: true, Retention: fixRetention}),
		})
	}
	return all
}

// createQueue creates a queue that is absent.
func createQueue(q snapshot.Queue) change {
	return func(s *snapshot.Snapshot) {
		s.Absent = slices.DeleteFunc(s.Absent, func(arn string) bool { return arn == q.ARN })
		s.Queues = append(s.Queues, q)
	}
}
