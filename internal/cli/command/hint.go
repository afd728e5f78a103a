package command

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// ErrNoContext says that the kubeconfig has no context of that name.
var ErrNoContext = errors.New("no such context")

// Hint says what to do next about an error that is known, or nothing. name is how the
// user calls the program. Errors of AWS are for HintAWS.
func Hint(name string, err error) string {
	var network net.Error
	var path *fs.PathError
	switch {
	case errors.Is(err, sandboxstate.ErrNotRunning):
		return "`" + name + " sandbox up` starts one; `" + name + " sandbox list` lists the running ones."
	case anyIn(err, clientcmd.IsEmptyConfig):
		return "There is no kubeconfig: neither --kubeconfig nor $KUBECONFIG is set, and ~/.kube/config does not exist.\n" +
			"Set one, or start a cluster on this machine with `" + name + " sandbox up` and add --sandbox."
	case errors.Is(err, ErrNoContext):
		return "`kubectl config get-contexts` lists the existing contexts."
	case errors.Is(err, fs.ErrNotExist):
		return "Check the path."
	case errors.Is(err, syscall.EISDIR):
		return "Name the files in it: -f FILE, repeatable."
	case errors.As(err, &path): // a syscall's error looks like one of the network
		return ""
	case IsNotInstalled(err):
		return "Lifeboat is not installed in this cluster: its API server does not serve lifeboat.dev/v1beta1.\n" +
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

// anyIn applies a test that looks at one error only to the whole chain.
func anyIn(err error, is func(error) bool) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if is(err) {
			return true
		}
	}
	return false
}

// IsNotInstalled reports whether the cluster lacks the CRDs.
func IsNotInstalled(err error) bool {
	return meta.IsNoMatchError(err) ||
		(apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource"))
}

// HintAWS is Hint for an error that came from AWS.
func HintAWS(err error) string {
	var (
		region  *aws.MissingRegionError
		api     smithy.APIError
		network net.Error
	)
	switch {
	case errors.As(err, &region):
		return "No AWS region is set: set AWS_REGION, or a region in the profile (AWS_PROFILE)."
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
