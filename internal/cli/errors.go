package cli

import (
	"errors"
	"strings"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
)

// exitError ends the program with a code of its own.
type exitError = command.ExitError

// usageErrorf makes an error that ends the program with ExitUsage.
func usageErrorf(format string, args ...any) error { return command.UsageErrorf(format, args...) }

// awsError marks errors from AWS, so that explainError does not take them for errors of Kubernetes.
type awsError struct{ error }

// Unwrap returns the cause.
func (e awsError) Unwrap() error { return e.error }

// Known errors of single commands.
var (
	nodeNotFound      = command.NewProblem("node-not-found", "The cluster has no node or instance of that name. The error lists similar names.", "")
	nodeNotEC2        = command.NewProblem("node-not-ec2", "The node is not an EC2 instance, so AWS cannot interrupt it.", "")
	nodeGroupNotFound = command.NewProblem("nodegroup-not-found", "The cluster has no NodeGroup of that name. The error lists the existing ones.", "")
	notInterruptible  = command.NewProblem("not-interruptible", "AWS FIS cannot interrupt the instance.",
		"FIS can interrupt running spot instances only. To test only Lifeboat and reclaim nothing, add --via queue.")
	queueRefuses = command.NewProblem("queue-refuses-sender", "The queue's policy does not let you send test messages.",
		"The queue's policy lets only Lifeboat's rules send. Add your role or user: `lifeboat aws setup --cluster NAME --sender ARN` (`aws sts get-caller-identity` shows it).")
	queueNotFound = command.NewProblem("queue-not-found", "SQS has no queue of that URL.",
		"Set --queue-url to the URL of Lifeboat's queue, which is in the settings of lifeboatd, and check AWS_REGION.")
)

// hint returns the next step for a known error, or nothing.
func (s *session) hint(err error) string { return command.Rename(s.explainError(err).Next, s.name) }

// explainError returns the Problem that an error is.
func (s *session) explainError(err error) command.Problem {
	var fromAWS awsError
	if errors.As(err, &fromAWS) {
		return explainAWS(err)
	}
	return command.Hint(err)
}

func explainAWS(err error) command.Problem {
	if p := explainSetup(err); p.ID != "" {
		return p
	}
	var (
		notSpot *drill.NotInterruptibleError
		noQueue *sqstypes.QueueDoesNotExist
	)
	switch {
	case errors.As(err, &notSpot):
		return notInterruptible
	case isQueueDeny(err):
		return queueRefuses
	case errors.As(err, &noQueue):
		return queueNotFound
	}
	return command.HintAWS(err)
}

// isQueueDeny reports whether the policy of a queue refused to send (IAM User Guide, "Troubleshoot
// access denied error messages").
func isQueueDeny(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && strings.Contains(api.ErrorMessage(), "sqs:SendMessage") &&
		strings.Contains(api.ErrorMessage(), "explicit deny in a resource-based policy")
}

// writeJSON writes one value to standard output, indented.
func (s *session) writeJSON(value any) error { return command.WriteJSON(s.out, value) }
