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

// exitError ends the program with an exit code. If err is nil, the message has
// been printed already.
type exitError struct {
	code int
	err  error
}

// Error returns the message of the cause.
func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e exitError) Unwrap() error { return e.err }

// usageErrorf returns an error that ends the program with ExitUsage.
func usageErrorf(format string, args ...any) error {
	return exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

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
	var network net.Error
	switch {
	case errors.Is(err, sandbox.ErrNotRunning):
		return "`" + s.name + " sandbox up` starts one; `" + s.name + " sandbox list` lists the running ones."
	case anyIn(err, clientcmd.IsEmptyConfig):
		return "There is no kubeconfig: neither --kubeconfig nor $KUBECONFIG is set, and ~/.kube/config does not exist.\n" +
			"Set one, or start a cluster on this machine with `" + s.name + " sandbox up` and add --sandbox."
	case errors.Is(err, errNoContext):
		return "`kubectl config get-contexts` lists the existing contexts."
	case errors.Is(err, fs.ErrNotExist):
		return "Check the path."
	case isNotInstalled(err):
		return "Lifeboat is not installed in this cluster: its API server does not serve lifeboat.dev/v1alpha1.\n" +
			"Install the chart charts/lifeboat (helm install lifeboat charts/lifeboat), check --context, or use --sandbox."
	case apierrors.IsUnauthorized(err):
		return "The cluster rejected these credentials: log in again, or check --kubeconfig and --context."
	case apierrors.IsForbidden(err):
		return hintForbidden(err.Error())
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "The cluster does not answer: check that it runs, that --kubeconfig and --context select the right cluster, and the network (VPN, proxy)."
	}
	return ""
}

func hintForbidden(message string) string {
	role := ""
	switch {
	case strings.Contains(message, "ValidatingAdmissionPolicy"):
		return "" // the policy's message names the next step
	case strings.Contains(message, "nodegroups"):
		role = ", which the ClusterRole lifeboat-nodegroups has"
	case strings.Contains(message, "interruptions"):
		role = ", which the ClusterRole lifeboat-operator has"
	}
	return "These credentials lack a permission: ask for the one that the message names" + role + ", or check --context."
}

// anyIn applies a test for a single error to the whole chain.
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
		return "FIS can interrupt running spot instances only. To test only Lifeboat and reclaim nothing, add --via queue."
	case errors.As(err, &region):
		return "No AWS region is set: set AWS_REGION, or a region in the profile (AWS_PROFILE)."
	case errors.As(err, &noQueue):
		return "Set --queue-url to the URL of Lifeboat's queue, which is in the settings of lifeboatd, and check AWS_REGION."
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
		return "These AWS credentials lack a permission: ask for the one that the message names, or check AWS_PROFILE."
	case "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure":
		return "AWS rejected these credentials: log in again (`aws sso login`), or check AWS_PROFILE and AWS_REGION."
	case "ServiceQuotaExceededException":
		return "An AWS quota is used up: delete unused resources (`aws fis list-experiment-templates`), or request a higher quota from AWS."
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
