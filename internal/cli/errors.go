package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox"
)

// exitError ends the program with a code of its own. Without err everything
// has been said already.
type exitError struct {
	code int
	err  error
}

// Error is the cause.
func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e exitError) Unwrap() error { return e.err }

// usageErrorf makes an error that ends the program with ExitUsage.
func usageErrorf(format string, args ...any) error {
	return exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// awsError marks errors that came from AWS, so that its hints are not those of
// Kubernetes.
type awsError struct{ error }

// Unwrap returns the cause.
func (e awsError) Unwrap() error { return e.error }

// hint says what to do next about an error that is known, or nothing.
func (s *session) hint(err error) string {
	var fromAWS awsError
	if errors.As(err, &fromAWS) {
		return s.hintAWS(err)
	}
	var network net.Error
	switch {
	case errors.Is(err, sandbox.ErrNotRunning):
		return "`" + s.name + " sandbox up` brings one up; `" + s.name + " sandbox list` lists those there are."
	case anyIn(err, clientcmd.IsEmptyConfig):
		return "There is no kubeconfig: none is given with --kubeconfig or $KUBECONFIG, and there is no ~/.kube/config.\n" +
			"Give one; or bring up a cluster on this machine with `" + s.name + " sandbox up` and add --sandbox."
	case errors.Is(err, errNoContext):
		return "`kubectl config get-contexts` lists the contexts there are."
	case errors.Is(err, fs.ErrNotExist):
		return "Check the path."
	case isNotInstalled(err):
		return "Lifeboat is not installed in this cluster: it does not know the resources of lifeboat.dev/v1alpha1.\n" +
			"Install the chart charts/lifeboat (helm install lifeboat charts/lifeboat), check --context, or use --sandbox."
	case apierrors.IsUnauthorized(err):
		return "The cluster does not know these credentials: log in again, or check --kubeconfig and --context."
	case apierrors.IsForbidden(err):
		return hintForbidden(err.Error())
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "The cluster does not answer: check that it runs, that --kubeconfig and --context name the right one, and the network (VPN, proxy) between."
	}
	return ""
}

func hintForbidden(message string) string {
	role := ""
	switch {
	case strings.Contains(message, "ValidatingAdmissionPolicy"):
		return "" // it says itself what is wrong
	case strings.Contains(message, "nodegroups"):
		role = ", which the ClusterRole lifeboat-nodegroups has"
	case strings.Contains(message, "interruptions"):
		role = ", which the ClusterRole lifeboat-operator has"
	}
	return "These credentials may not do that: ask for the permission that the message names" + role + ", or check --context."
}

// anyIn applies a test that looks at one error only to the whole chain.
func anyIn(err error, is func(error) bool) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if is(err) {
			return true
		}
	}
	return false
}

// isNotInstalled reports whether the cluster lacks the CRDs.
func isNotInstalled(err error) bool {
	return meta.IsNoMatchError(err) ||
		(apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource"))
}

func (s *session) hintAWS(err error) string {
	if hint := s.hintWiring(err); hint != "" {
		return hint
	}
	var (
		notSpot *drill.NotInterruptibleError
		noQueue *sqstypes.QueueDoesNotExist
		region  *aws.MissingRegionError
		api     smithy.APIError
		network net.Error
	)
	switch {
	case errors.As(err, &notSpot):
		return "FIS can interrupt running spot instances only. To test Lifeboat alone, reclaiming nothing, add --via queue."
	case errors.As(err, &region):
		return "No AWS region is set: set AWS_REGION, or one in the profile (AWS_PROFILE)."
	case errors.As(err, &noQueue):
		return "Give the address of Lifeboat's queue with --queue-url: it is in the settings of lifeboatd. And check AWS_REGION."
	case errors.As(err, &api):
		return hintAWSCode(api.ErrorCode())
	case strings.Contains(err.Error(), "get credentials"), strings.Contains(err.Error(), "get identity"):
		return "There are no AWS credentials: set AWS_PROFILE, or log in with `aws sso login`; for the sandbox add --sandbox."
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "AWS does not answer: check the network, AWS_REGION and, if it is set, AWS_ENDPOINT_URL; for the sandbox add --sandbox."
	}
	return ""
}

func hintAWSCode(code string) string {
	switch code {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized":
		return "These AWS credentials may not do that: ask for the permission that the message names, or check AWS_PROFILE."
	case "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure":
		return "AWS does not take these credentials: log in again (`aws sso login`), or check AWS_PROFILE and AWS_REGION."
	case "ServiceQuotaExceededException":
		return "An AWS quota is used up: delete what is not needed (`aws fis list-experiment-templates`), or ask AWS for more."
	}
	return ""
}

// writeJSON writes one value to standard output, indented.
func (s *session) writeJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	s.out.Printf("%s\n", text)
	return nil
}
