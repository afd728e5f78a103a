package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/queuepolicy"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Limits for the queue's settings.
const (
	// minRetentionScheduled is the minimum retention for notices that are due in
	// days. With less, an outage of the controller of an evening loses them.
	minRetentionScheduled = 24 * time.Hour
	// minRetentionSpot is the minimum retention for spot interruptions, which are
	// useless after two minutes.
	minRetentionSpot = 2 * time.Minute
	// maxVisibility is the longest acceptable delay of a two-minute warning after a
	// crash of the reader.
	maxVisibility = 30 * time.Second
	// maxEventSize is the maximum size of AWS Health's events (AWS Health User Guide,
	// "EventBridge event schema": events above 256 KB are split).
	maxEventSize = 256 << 10
	// minReceives is the minimum number of attempts during an outage of the API
	// server.
	minReceives = 5
)

// checkQueueExists reports a missing queue.
func checkQueueExists(e *diagnosis) []finding.Finding {
	if !e.QueueMissing {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Broken, ID: idQueueMissing, Object: e.queueObject(),
		Problem: "the queue does not exist in this account and region: no notice can arrive",
		Fix:     e.applyCommand() + "; if the queue has another name, add --queue-url; check --region",
	}}
}

// checkEncryption reports encryption that EventBridge cannot use (SQS Developer
// Guide, "Configuring KMS permissions for AWS services").
func checkEncryption(e *diagnosis) []finding.Finding {
	q := e.queue
	switch {
	case !q.Known:
		return nil
	case isAWSKey(q.KMSKey):
		return []finding.Finding{{
			Severity: finding.Broken, ID: idQueueEncryptionAWSKey, Object: e.queueObject(),
			Problem: "it is encrypted with alias/aws/sqs. EventBridge may not use that key, and its policy cannot be changed: every delivery fails",
			Fix:     e.fixQueue("use SSE-SQS (SqsManagedSseEnabled: true, no KmsMasterKeyId)", "SqsManagedSseEnabled=true"),
			Change:  e.useManagedSSE(),
		}}
	case q.KMSKey != "":
		return e.customerKey()
	case !q.ManagedSSE:
		return []finding.Finding{{
			Severity: finding.Info, ID: idQueueUnencrypted, Object: e.queueObject(),
			Problem: "it is not encrypted; SSE-SQS is free and needs no permission",
			Fix:     e.fixQueue("set SqsManagedSseEnabled to true", "SqsManagedSseEnabled=true"),
			Change:  e.useManagedSSE(),
		}}
	}
	return nil
}

func isAWSKey(key string) bool {
	return key == "alias/aws/sqs" || strings.HasSuffix(key, ":alias/aws/sqs")
}

// customerKey checks that the policy of a customer managed key allows EventBridge to
// use it.
func (e *diagnosis) customerKey() []finding.Finding {
	f := finding.Finding{
		ID: idQueueEncryptionKey, Object: e.queueObject(),
		Fix: `add to the key's policy {"Effect":"Allow","Principal":{"Service":"` + eventBridge +
			`"},"Action":["kms:Decrypt","kms:GenerateDataKey"],"Resource":"*"}; or use SSE-SQS`,
		Change: e.useManagedSSE(),
	}
	if e.queue.From == "" && e.hasLifeboatName() {
		f.Fix = e.applyCommand() + ", which uses SSE-SQS; or " + strings.TrimSuffix(f.Fix, "; or use SSE-SQS")
	}
	if e.queue.KeyPolicy == "" {
		f.Severity = finding.Warning
		f.Problem = "it is encrypted with the key " + e.queue.KMSKey + ", whose policy was not checked: every delivery fails unless the policy lets " + eventBridge + " use the key"
		return []finding.Finding{f}
	}
	policy, err := parsePolicy(e.queue.KeyPolicy)
	if err != nil {
		f.Severity, f.Problem = finding.Unknown, "the policy of its key "+e.queue.KMSKey+" cannot be read: "+err.Error()
		return []finding.Finding{f}
	}
	for _, action := range []string{"kms:Decrypt", "kms:GenerateDataKey"} {
		request := deliveryRequest("", snapshot.Part(e.queue.ARN, 4), e.queue.ARN)
		request.Action = action
		// KMS does not know the rule's ARN in every case, so conditions on it are not
		// evaluated.
		delete(request.Context, "aws:SourceArn")
		request.UnknownKeys = append(request.UnknownKeys, "aws:SourceArn")
		if verdict := policy.Evaluate(request); verdict != queuepolicy.Allow && verdict != queuepolicy.Unknown {
			f.Severity = finding.Broken
			f.Problem = "the policy of its key " + e.queue.KMSKey + " does not allow " + action + " to " + eventBridge + ": every delivery fails"
			return []finding.Finding{f}
		}
	}
	return nil
}

// checkQueueSettings checks the attributes of the queue.
func checkQueueSettings(e *diagnosis) []finding.Finding {
	q := e.queue
	if !q.Known {
		return nil
	}
	var all []finding.Finding
	add := func(bad bool, id, problem, attribute string, value any, edit func(*snapshot.Queue)) {
		if bad {
			all = append(all, finding.Finding{
				Severity: finding.Warning, ID: id, Object: e.queueObject(), Problem: problem,
				Fix:    e.fixQueue(fmt.Sprintf("set %s to %v", attribute, value), fmt.Sprintf("%s=%v", attribute, value)),
				Change: onQueue(q.ARN, edit),
			})
		}
	}
	shortest, why := e.shortestRetention()
	add(q.Retention > 0 && q.Retention < shortest, idQueueRetentionShort,
		fmt.Sprintf("it keeps messages for only %s: %s", formatDuration(q.Retention), why), "MessageRetentionPeriod", 345600,
		func(q *snapshot.Queue) { q.Retention = 96 * time.Hour })
	add(q.Visibility > maxVisibility, idQueueVisibilityLong,
		fmt.Sprintf("after a crash of its reader, a message stays hidden for %s of the two minutes of a spot interruption (lifeboatd itself sets a shorter timeout)", formatDuration(q.Visibility)),
		"VisibilityTimeout", 10, func(q *snapshot.Queue) { q.Visibility = 10 * time.Second })
	add(q.Delay > 0, idQueueDelay, fmt.Sprintf("it delays every message for %s of the two minutes of a spot interruption", formatDuration(q.Delay)), "DelaySeconds", 0, func(q *snapshot.Queue) { q.Delay = 0 })
	add(q.MaximumSize > 0 && q.MaximumSize < maxEventSize, idQueueMessageSize,
		fmt.Sprintf("it refuses messages above %d bytes; events of AWS Health have up to %d", q.MaximumSize, maxEventSize), "MaximumMessageSize", maxEventSize, func(q *snapshot.Queue) { q.MaximumSize = maxEventSize })
	if q.FIFO {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueFIFO, Object: e.queueObject(),
			Problem: "it is a FIFO queue: one message in progress delays all others of its group",
			Fix:     e.fixQueueOrCreate("use a standard queue"),
			Change:  standardQueue(q),
		})
	}
	return all
}

// useManagedSSE encrypts the queue with SSE-SQS.
func (e *diagnosis) useManagedSSE() change {
	return onQueue(e.queue.ARN, func(q *snapshot.Queue) { q.KMSKey, q.KeyPolicy, q.ManagedSSE = "", "", true })
}

// shortestRetention returns the minimum retention for the notices that the queue
// receives, and the reason.
func (e *diagnosis) shortestRetention() (time.Duration, string) {
	var lasting []string
	for _, kind := range []string{notice.KindScheduledChange, notice.KindHealthIssue, notice.KindCapacityBlockExpiration, notice.KindAutoScalingTermination} {
		if slices.ContainsFunc(e.rules, func(r *rule) bool { return slices.Contains(r.intendedKinds, kind) }) {
			lasting = append(lasting, kind)
		}
	}
	if len(lasting) > 0 {
		return minRetentionScheduled, "during a longer outage of the controller, notices expire that are still valid (" + joinList(lasting) + ")"
	}
	return minRetentionSpot, "a spot interruption is valid for two minutes"
}

// checkDeadLetters checks the queue for unreadable messages.
func checkDeadLetters(e *diagnosis) []finding.Finding {
	q := e.queue
	if !q.Known {
		return nil
	}
	if q.DeadLetterARN == "" {
		return []finding.Finding{{
			Severity: finding.Warning, ID: idDeadLetterMissing, Object: e.queueObject(),
			Problem: "it has no dead-letter queue: an unreadable message returns until it expires, and then is lost",
			Fix:     e.fixQueueOrCreate("add a RedrivePolicy with a maxReceiveCount of 30"),
			Change:  addDeadLetterQueue(q),
		}}
	}
	var all []finding.Finding
	if q.MaxReceives > 0 && q.MaxReceives < minReceives {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idDeadLetterMaxReceives, Object: e.queueObject(),
			Problem: fmt.Sprintf("a good notice moves to the dead-letter queue after %d receives, which a short outage of the API server uses up", q.MaxReceives),
			Fix:     e.fixQueue("set maxReceiveCount to 30", ""),
			Change:  onQueue(q.ARN, func(q *snapshot.Queue) { q.MaxReceives = fixReceives }),
		})
	}
	dead, ok := e.FindQueue(q.DeadLetterARN)
	if ok && dead.Known && dead.Retention <= q.Retention {
		edit := "set MessageRetentionPeriod to 1209600"
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idDeadLetterRetention, Object: "queue " + dead.Title(),
			Problem: fmt.Sprintf("it keeps messages for %s after they were first sent, and the queue itself for %s: messages that arrive late expire immediately", formatDuration(dead.Retention), formatDuration(q.Retention)),
			Fix:     e.fix(dead.From, e.hasLifeboatName(), edit, e.setAttributes(dead, "MessageRetentionPeriod=1209600")),
			Change:  onQueue(dead.ARN, func(q *snapshot.Queue) { q.Retention = fixRetention }),
		})
	}
	return all
}

// formatDuration returns a duration in its largest whole unit, for example "4 days".
func formatDuration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if n := d / unit.long; n > 0 && d%unit.long == 0 {
			if n == 1 {
				return "1 " + unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return d.String()
}
