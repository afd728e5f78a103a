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

// awsError marks errors from AWS, so that hint does not give hints about
// Kubernetes.
type awsError struct{ error }

// Unwrap returns the cause.
func (e awsError) Unwrap() error { return e.error }

// hint returns the next step for a known error, or nothing.
func (s *session) hint(err error) string {
	var fromAWS awsError
	if errors.As(err, &fromAWS) {
		return s.hintAWS(err)
	}
	return command.Hint(s.name, err)
}

func (s *session) hintAWS(err error) string {
	if hint := s.hintSetup(err); hint != "" {
		return hint
	}
	var (
		notSpot *drill.NotInterruptibleError
		noQueue *sqstypes.QueueDoesNotExist
	)
	switch {
	case errors.As(err, &notSpot):
		return "FIS can interrupt running spot instances only. To test only Lifeboat and reclaim nothing, add --via queue."
	case isQueueDeny(err):
		return "The queue's policy lets only Lifeboat's rules send. Add your role or user: `" + s.name + " aws setup --cluster NAME --sender ARN` (`aws sts get-caller-identity` shows it)."
	case errors.As(err, &noQueue):
		return "Set --queue-url to the URL of Lifeboat's queue, which is in the settings of lifeboatd, and check AWS_REGION."
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
