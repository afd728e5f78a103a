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

// The known errors of a cluster and of this machine.
var (
	sandboxNotRunning = NewProblem("sandbox-not-running", "No sandbox of that name runs.",
		"`lifeboat sandbox up` starts one; `lifeboat sandbox list` lists the running ones.")
	noKubeconfig = NewProblem("no-kubeconfig", "The program does not know which cluster to use.",
		"There is no kubeconfig: neither --kubeconfig nor $KUBECONFIG is set, and ~/.kube/config does not exist.\n"+
			"Set one, or start a cluster on this machine with `lifeboat sandbox up` and `eval \"$(lifeboat sandbox env)\"`.")
	noContext    = NewProblem("no-such-context", "The kubeconfig has no context of that name.", "`kubectl config get-contexts` lists the existing contexts.")
	fileNotFound = NewProblem("file-not-found", "A file does not exist.", "Check the path.")
	isDirectory  = NewProblem("is-a-directory", "The command reads files, and the path is a directory.", "Name the files in it: -f FILE, repeatable.")
	notInstalled = NewProblem("not-installed", "The API server does not have Lifeboat's CRDs.",
		"Lifeboat is not installed in this cluster: its API server does not serve lifeboat.dev/v1beta1.\n"+
			"Install the chart (helm install lifeboat CHART --namespace lifeboat-system --create-namespace --values my-values.yaml; see docs/guides/install.md), check --context, or select a sandbox with --sandbox NAME.")
	clusterLogin = NewProblem("cluster-login-rejected", "The API server does not accept the credentials of the kubeconfig.",
		"The cluster rejected these credentials: log in again, or check --kubeconfig and --context.")
	clusterForbidden = NewProblem("cluster-permission-missing", "The role of the user lacks a permission in Kubernetes.",
		"These credentials lack a permission: ask for the one that the message names, or check --context.")
	clusterRefused     = NewProblem("admission-refused", "An admission policy of Lifeboat refused the change. Its message names the next step.", "")
	clusterUnreachable = NewProblem("cluster-unreachable", "The API server does not answer, or not in time.",
		"The cluster does not answer: check that it runs, that --kubeconfig and --context select the right cluster, and the network (VPN, proxy).")
)

// Hint returns the Problem that an error is, with what to do next. Errors of AWS are for HintAWS.
func Hint(err error) Problem {
	var network net.Error
	var path *fs.PathError
	var known knownError
	switch {
	case errors.As(err, &known):
		return known.problem
	case errors.Is(err, sandboxstate.ErrNotRunning):
		return sandboxNotRunning
	case anyIn(err, clientcmd.IsEmptyConfig):
		return noKubeconfig
	case errors.Is(err, ErrNoContext):
		return noContext
	case errors.Is(err, fs.ErrNotExist):
		return fileNotFound
	case errors.Is(err, syscall.EISDIR):
		return isDirectory
	case errors.As(err, &path): // a syscall's error looks like one of the network
		return Problem{}
	case IsNotInstalled(err):
		return notInstalled
	case apierrors.IsUnauthorized(err):
		return clusterLogin
	case apierrors.IsForbidden(err):
		return hintForbidden(err.Error())
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return clusterUnreachable
	}
	return Problem{}
}

func hintForbidden(message string) Problem {
	var role string
	switch {
	case strings.Contains(message, "ValidatingAdmissionPolicy"):
		return clusterRefused
	case strings.Contains(message, "nodegroups"):
		role = "lifeboat-nodegroups"
	case strings.Contains(message, "interruptions"):
		role = "lifeboat-operator"
	default:
		return clusterForbidden
	}
	return clusterForbidden.With("These credentials lack a permission: ask for the one that the message names, which the ClusterRole " + role + " has, or check --context.")
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

// The known errors of AWS.
var (
	awsNoRegion      = NewProblem("aws-no-region", "The program does not know the region.", "No AWS region is set: set AWS_REGION, or a region in the profile (AWS_PROFILE).")
	awsNoCredentials = NewProblem("aws-no-credentials", "The program found no credentials for AWS.",
		"There are no AWS credentials: set AWS_PROFILE, or log in with `aws sso login`; for a sandbox add --sandbox NAME.")
	awsUnreachable = NewProblem("aws-unreachable", "AWS does not answer, or not in time.",
		"AWS does not answer: check the network, AWS_REGION and, if it is set, AWS_ENDPOINT_URL; for a sandbox add --sandbox NAME.")
	awsLogin = NewProblem("aws-login-rejected", "AWS does not accept the credentials.",
		"AWS rejected these credentials: log in again (`aws sso login`), or check AWS_PROFILE and AWS_REGION.")
	awsQuota = NewProblem("aws-quota", "An AWS quota is used up.",
		"An AWS quota is used up: delete unused resources (`aws fis list-experiment-templates`), or request a higher quota from AWS.")
	// AWSForbidden is a missing permission.
	AWSForbidden = NewProblem("aws-permission-missing", "The role or user lacks a permission in AWS.",
		"These AWS credentials lack a permission: ask for the one that the message names, or check AWS_PROFILE.")
)

// HintAWS is Hint for an error that came from AWS.
func HintAWS(err error) Problem {
	var (
		region  *aws.MissingRegionError
		api     smithy.APIError
		network net.Error
	)
	switch {
	case errors.As(err, &region):
		return awsNoRegion
	case errors.As(err, &api):
		return hintAWSCode(api.ErrorCode())
	case strings.Contains(err.Error(), "get credentials"), strings.Contains(err.Error(), "get identity"):
		return awsNoCredentials
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return awsUnreachable
	}
	return Problem{}
}

func hintAWSCode(code string) Problem {
	switch code {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized":
		return AWSForbidden
	case "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure":
		return awsLogin
	case "ServiceQuotaExceededException":
		return awsQuota
	}
	return Problem{}
}
