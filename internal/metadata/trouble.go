package metadata

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// Reason is why instance metadata cannot be read, in metrics.
type Reason string

// The reasons.
const (
	// Off: the metadata service of the instance is switched off.
	Off Reason = "off"
	// HopLimit: requests for tokens are not answered.
	HopLimit Reason = "hopLimit"
	// Token: tokens are given out and then refused.
	Token Reason = "token"
	// Throttled: too many ask, on this instance.
	Throttled Reason = "throttled"
	// Unreachable: there is no way to the metadata service.
	Unreachable Reason = "unreachable"
	// Disabled: the SDK was told not to use it.
	Disabled Reason = "disabled"
	// Strange: something answers that is not the metadata service.
	Strange Reason = "strange"
	// WrongInstance: it is the metadata of another instance than this node's.
	WrongInstance Reason = "wrongInstance"
)

// Trouble is an error of reading instance metadata.
type Trouble struct {
	Reason Reason
	// Err is the cause.
	Err error
}

func (t *Trouble) Error() string { return t.Err.Error() }

// Unwrap returns the cause.
func (t *Trouble) Unwrap() error { return t.Err }

// diagnose tells by the last exchange why a read failed. A request for a token
// is a PUT; the answer to it, and to it alone, lives for as many network hops as
// the instance's HttpPutResponseHopLimit says, and is lost on the way to a pod
// where that is 1. So a PUT that gets no answer on an open connection is the
// sign of it (EC2 User Guide, "Configure the Instance Metadata Service
// options"). 403 means that the service is switched off.
func diagnose(last exchange, err error) Reason {
	var wait net.Error
	isTimeout := errors.Is(last.err, context.DeadlineExceeded) || (errors.As(last.err, &wait) && wait.Timeout())
	var dial *net.OpError
	isDial := errors.As(last.err, &dial) && dial.Op == "dial"
	switch {
	case last.method == "":
		return Disabled // no request was made at all
	case isTimeout && !isDial && last.method == http.MethodPut:
		return HopLimit
	case last.err != nil, errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	}
	return diagnoseStatus(last.status)
}

// diagnoseStatus tells by the status of an answer.
func diagnoseStatus(status int) Reason {
	switch status {
	case http.StatusForbidden:
		return Off
	case http.StatusUnauthorized:
		return Token
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return Throttled
	}
	if status >= http.StatusInternalServerError {
		return Unreachable
	}
	return Strange
}

// Advice says what to do about it. The instance's id may be empty, where it is
// not known.
func Advice(reason Reason, instanceID string) string {
	if instanceID == "" {
		instanceID = "INSTANCE_ID"
	}
	modify := "aws ec2 modify-instance-metadata-options --instance-id " + instanceID
	switch reason {
	case Off:
		return "switch the instance metadata service on: " + modify + " --http-endpoint enabled --http-tokens required; and in the launch template, or spec.metadataOptions of the EC2NodeClass, so that new nodes have it"
	case HopLimit:
		return "the answer to a token request does not live as far as this pod: " + modify + " --http-put-response-hop-limit 2 --http-endpoint enabled, or run the agent with hostNetwork: true; a NetworkPolicy that drops the answer looks the same"
	case Token:
		return "see what stands between the pod and 169.254.169.254: tokens are given out and then refused"
	case Throttled:
		return "nothing, if it passes: the agent asks less often; see what else on the node asks for metadata all the time"
	case Unreachable:
		return "see that the pod can reach 169.254.169.254: run the agent with hostNetwork: true, and look for a NetworkPolicy or an iptables rule that blocks it; is this node an EC2 instance?"
	case Disabled:
		return "unset AWS_EC2_METADATA_DISABLED, and correct AWS_EC2_METADATA_SERVICE_ENDPOINT if it is set"
	case WrongInstance:
		return "let no proxy answer for 169.254.169.254 (kube2iam and kiam do), unset AWS_EC2_METADATA_SERVICE_ENDPOINT, and set NODE_NAME from the field spec.nodeName"
	}
	return "see what answers at 169.254.169.254: it is not the instance metadata service, or not version 2 of it"
}
