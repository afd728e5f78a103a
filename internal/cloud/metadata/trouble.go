package metadata

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Reason is why instance metadata cannot be read, as a metric label.
type Reason string

// The reasons.
const (
	// Off: the metadata service of the instance is disabled.
	Off Reason = "off"
	// HopLimit: token requests get no response.
	HopLimit Reason = "hopLimit"
	// Token: tokens are issued and then rejected.
	Token Reason = "token"
	// Throttled: too many requests on this instance.
	Throttled Reason = "throttled"
	// Unreachable: the metadata service cannot be reached.
	Unreachable Reason = "unreachable"
	// ServerError: the metadata service answers with an HTTP error.
	ServerError Reason = "serverError"
	// Unreadable: the content of a path cannot be decoded.
	Unreadable Reason = "unreadable"
	// Disabled: the SDK is configured not to use it.
	Disabled Reason = "disabled"
	// Unexpected: the response is not from the metadata service.
	Unexpected Reason = "strange"
	// WrongInstance: the metadata belongs to another instance than this node.
	WrongInstance Reason = "wrongInstance"
)

// ReadError is an error of reading instance metadata.
type ReadError struct {
	Reason Reason
	// Err is the cause.
	Err error
}

func (t *ReadError) Error() string { return t.Err.Error() }

// Unwrap returns the cause.
func (t *ReadError) Unwrap() error { return t.Err }

// Reasons returns the distinct reasons in err. Errors of another type have none.
func Reasons(err error) []Reason {
	var reasons []Reason
	for _, e := range each(err) {
		if !slices.Contains(reasons, e.Reason) {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Explain adds reason and advice to the text of err, once for each reason.
// instanceID may be empty.
func Explain(err error, instanceID string) error {
	var all []error
	for _, reason := range Reasons(err) {
		var texts []string
		for _, e := range each(err) {
			if e.Reason == reason {
				texts = append(texts, e.Error())
			}
		}
		all = append(all, &ReadError{Reason: reason, Err: fmt.Errorf("%s: reason=%s: %s", strings.Join(texts, "; "), reason, Advice(reason, instanceID))})
	}
	if len(all) == 0 {
		return err
	}
	return errors.Join(all...)
}

// each returns the read errors that err is, wraps or joins.
func each(err error) []*ReadError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*ReadError
		for _, e := range joined.Unwrap() {
			all = append(all, each(e)...)
		}
		return all
	}
	var one *ReadError
	if errors.As(err, &one) {
		return []*ReadError{one}
	}
	return nil
}

// diagnose derives the cause of a failed read from the last exchange. A token
// request is a PUT. Only its response has a limited number of network hops
// (HttpPutResponseHopLimit), and with 1 it never reaches a pod. So a PUT
// without a response on an open connection indicates the hop limit (EC2 User
// Guide, "Configure the Instance Metadata Service options"). 403 means that the
// service is disabled.
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

// diagnoseStatus derives the cause from the status of a response.
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
		return ServerError
	}
	return Unexpected
}

// Advice says what to do about a failure. instanceID may be empty.
func Advice(reason Reason, instanceID string) string {
	if instanceID == "" {
		instanceID = "INSTANCE_ID"
	}
	modify := "aws ec2 modify-instance-metadata-options --instance-id " + instanceID
	switch reason {
	case Off:
		return "enable the instance metadata service: " + modify + " --http-endpoint enabled --http-tokens required; also set it in the launch template or in spec.metadataOptions of the EC2NodeClass, for new nodes"
	case HopLimit:
		return "the hop limit drops the response to a token request before it reaches this pod: " + modify + " --http-put-response-hop-limit 2 --http-endpoint enabled, or run the agent with hostNetwork: true; a NetworkPolicy that drops the response has the same effect"
	case Token:
		return "check for a proxy between the pod and 169.254.169.254: tokens are issued and then rejected"
	case Throttled:
		return "nothing if it is temporary: the agent polls less often; otherwise find what else on the node reads metadata constantly"
	case Unreachable:
		return "make sure that the pod can reach 169.254.169.254: run the agent with hostNetwork: true, and look for a NetworkPolicy or an iptables rule that blocks it; also check that this node is an EC2 instance"
	case ServerError:
		return "nothing if it is temporary: the metadata service answers with an error, and the agent tries again; otherwise check for a proxy between the pod and 169.254.169.254, or replace the instance"
	case Unreadable:
		return "check what responds at 169.254.169.254; if it is the instance metadata service, report the content as a bug of Lifeboat"
	case Disabled:
		return "unset AWS_EC2_METADATA_DISABLED, and correct AWS_EC2_METADATA_SERVICE_ENDPOINT if it is set"
	case WrongInstance:
		return "remove proxies for 169.254.169.254 (such as kube2iam and kiam), unset AWS_EC2_METADATA_SERVICE_ENDPOINT, and set NODE_NAME from the field spec.nodeName"
	}
	return "check what responds at 169.254.169.254: it is not the instance metadata service, or not version 2 of it"
}
