package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/queuepolicy"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// What is too short, too long or too small.
const (
	// shortestForDays is the retention below which a controller that is away for
	// an evening loses notices of what is due in days.
	shortestForDays = 24 * time.Hour
	// shortestForMinutes: a spot warning that is older is worth nothing.
	shortestForMinutes = 2 * time.Minute
	// longestVisibility is what a reader that dies may cost a two-minute warning.
	longestVisibility = 30 * time.Second
	// largestEvent is the size of AWS Health's pages (AWS Health User Guide,
	// "EventBridge event schema": events above 256 KB are split).
	largestEvent = 256 << 10
	// fewestReceives is how often a message should be tried while the API server
	// is away.
	fewestReceives = 5
)

// checkQueueThere looks for the queue itself.
func checkQueueThere(e *exam) []finding.Finding {
	if !e.QueueMissing {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Broken, ID: idQueueMissing, Object: e.queueObject(),
		Problem: "there is no such queue in this account and region: no notice can arrive",
		Fix:     e.apply() + "; if the queue has another name, give --queue-url; and check --region",
	}}
}

// checkEncryption looks for encryption that EventBridge cannot use (SQS Developer
// Guide, "Configuring KMS permissions for AWS services").
func checkEncryption(e *exam) []finding.Finding {
	q := e.queue
	switch {
	case !q.Known:
		return nil
	case isAWSKey(q.KMSKey):
		return []finding.Finding{{
			Severity: finding.Broken, ID: idQueueEncryptionAWSKey, Object: e.queueObject(),
			Problem: "it is encrypted with alias/aws/sqs, a key that EventBridge may not use and that cannot be made to let it: every delivery fails",
			Fix:     e.fixQueue("use SSE-SQS (SqsManagedSseEnabled: true, no KmsMasterKeyId)", "SqsManagedSseEnabled=true"),
		}}
	case q.KMSKey != "":
		return e.customerKey()
	case !q.ManagedSSE:
		return []finding.Finding{{
			Severity: finding.Info, ID: idQueueUnencrypted, Object: e.queueObject(),
			Problem: "it is not encrypted; SSE-SQS costs nothing and needs no permission",
			Fix:     e.fixQueue("set SqsManagedSseEnabled to true", "SqsManagedSseEnabled=true"),
		}}
	}
	return nil
}

func isAWSKey(key string) bool {
	return key == "alias/aws/sqs" || strings.HasSuffix(key, ":alias/aws/sqs")
}

// customerKey is about a key whose policy has to let EventBridge use it.
func (e *exam) customerKey() []finding.Finding {
	f := finding.Finding{
		ID: idQueueEncryptionKey, Object: e.queueObject(),
		Fix: `the key's policy must have {"Effect":"Allow","Principal":{"Service":"` + eventBridge +
			`"},"Action":["kms:Decrypt","kms:GenerateDataKey"],"Resource":"*"}; or use SSE-SQS`,
	}
	if e.queue.KeyPolicy == "" {
		f.Severity = finding.Warning
		f.Problem = "it is encrypted with the key " + e.queue.KMSKey + ", whose policy was not looked at: unless it lets " + eventBridge + " use it, every delivery fails"
		return []finding.Finding{f}
	}
	policy, err := parsePolicy(e.queue.KeyPolicy)
	if err != nil {
		f.Severity, f.Problem = finding.Unknown, "the policy of its key "+e.queue.KMSKey+" cannot be read: "+err.Error()
		return []finding.Finding{f}
	}
	for _, action := range []string{"kms:Decrypt", "kms:GenerateDataKey"} {
		request := delivery("", snapshot.Part(e.queue.ARN, 4), e.queue.ARN)
		request.Action = action
		// The rule's ARN is not known to KMS in every case; conditions on it are
		// not judged.
		delete(request.Context, "aws:SourceArn")
		request.Unsure = append(request.Unsure, "aws:SourceArn")
		if verdict := policy.Evaluate(request); verdict != queuepolicy.Allow && verdict != queuepolicy.Unknown {
			f.Severity = finding.Broken
			f.Problem = "the policy of its key " + e.queue.KMSKey + " does not let " + eventBridge + " do " + action + ": every delivery fails"
			return []finding.Finding{f}
		}
	}
	return nil
}

// checkQueueSettings looks at the attributes of the queue.
func checkQueueSettings(e *exam) []finding.Finding {
	q := e.queue
	if !q.Known {
		return nil
	}
	var all []finding.Finding
	add := func(bad bool, id, problem, attribute string, value any) {
		if bad {
			all = append(all, finding.Finding{
				Severity: finding.Warning, ID: id, Object: e.queueObject(), Problem: problem,
				Fix: e.fixQueue(fmt.Sprintf("set %s to %v", attribute, value), fmt.Sprintf("%s=%v", attribute, value)),
			})
		}
	}
	shortest, why := e.shortestRetention()
	add(q.Retention > 0 && q.Retention < shortest, idQueueRetentionShort,
		fmt.Sprintf("it keeps messages for %s: %s", span(q.Retention), why), "MessageRetentionPeriod", 345600)
	add(q.Visibility > longestVisibility, idQueueVisibilityLong,
		fmt.Sprintf("a reader that dies hides a message from the others for %s, of the two minutes that a spot warning has (lifeboatd asks for a shorter time itself)", span(q.Visibility)),
		"VisibilityTimeout", 10)
	add(q.Delay > 0, idQueueDelay, fmt.Sprintf("every message is held back for %s, of the two minutes that a spot warning has", span(q.Delay)), "DelaySeconds", 0)
	add(q.MaximumSize > 0 && q.MaximumSize < largestEvent, idQueueMessageSize,
		fmt.Sprintf("it refuses messages above %d bytes; those of AWS Health have up to %d", q.MaximumSize, largestEvent), "MaximumMessageSize", largestEvent)
	if q.FIFO {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueFIFO, Object: e.queueObject(),
			Problem: "it is a FIFO queue: one message that is being handled holds back all others of its group",
			Fix:     e.fixQueue("use a standard queue", "") + ", such as " + e.apply() + " makes",
		})
	}
	return all
}

// shortestRetention is how long the queue has to keep what it is filled with.
func (e *exam) shortestRetention() (time.Duration, string) {
	var lasting []string
	for _, kind := range []string{notice.KindScheduledChange, notice.KindHealthIssue, notice.KindCapacityBlockExpiration, notice.KindAutoScalingTermination} {
		if slices.ContainsFunc(e.rules, func(r *rule) bool { return slices.Contains(r.meant, kind) }) {
			lasting = append(lasting, kind)
		}
	}
	if len(lasting) > 0 {
		return shortestForDays, "while the controller is away for longer than that, notices are lost that would still matter (" + list(lasting) + ")"
	}
	return shortestForMinutes, "that is less than the two minutes that a spot warning is good for"
}

// checkDeadLetters looks at where messages go that cannot be read.
func checkDeadLetters(e *exam) []finding.Finding {
	q := e.queue
	if !q.Known {
		return nil
	}
	if q.DeadLetterARN == "" {
		return []finding.Finding{{
			Severity: finding.Warning, ID: idDeadLetterMissing, Object: e.queueObject(),
			Problem: "it has no dead-letter queue: a message that cannot be read comes back until it expires, and is lost unseen",
			Fix:     e.fixQueue("add a RedrivePolicy with a maxReceiveCount of 30", "") + ", such as " + e.apply() + " makes",
		}}
	}
	var all []finding.Finding
	if q.MaxReceives > 0 && q.MaxReceives < fewestReceives {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idDeadLetterMaxReceives, Object: e.queueObject(),
			Problem: fmt.Sprintf("after %d tries a good notice is set aside, which a short outage of the API server uses up", q.MaxReceives),
			Fix:     e.fixQueue("set maxReceiveCount to 30", ""),
		})
	}
	dead, ok := e.FindQueue(q.DeadLetterARN)
	if ok && dead.Known && dead.Retention <= q.Retention {
		edit := "set MessageRetentionPeriod to 1209600"
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idDeadLetterRetention, Object: "queue " + dead.Name,
			Problem: fmt.Sprintf("it keeps messages for %s, counted from when they were first sent, and the queue itself for %s: what arrives late is gone at once", span(dead.Retention), span(q.Retention)),
			Fix:     e.fix(dead.From, e.ours(), edit, e.setAttributes(dead, "MessageRetentionPeriod=1209600")),
		})
	}
	return all
}

// span is a duration as people say it.
func span(d time.Duration) string {
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
