package sqs

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// reach is whether the latest receive of any receiver reached the queue.
type reach struct {
	mu   sync.Mutex
	up   bool
	lost time.Time // when it became unreachable; zero while it never was
}

func (r *reach) isUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up
}

// found records a successful receive. It reports whether the queue was unreachable
// before, and for how long.
func (r *reach) found(now time.Time) (away time.Duration, news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up {
		return 0, false
	}
	if !r.lost.IsZero() {
		away = now.Sub(r.lost)
	}
	r.up, r.lost = true, time.Time{}
	return away, true
}

// missed records a failed receive.
func (r *reach) missed(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up || r.lost.IsZero() {
		r.up, r.lost = false, now
	}
}

func (s *Source) reached(ctx context.Context) {
	away, news := s.reach.found(s.o.Clock())
	if !news {
		return
	}
	s.o.Metrics.Up(Name, true)
	log.FromContext(ctx).Info("reached the queue", "away", away.Round(time.Millisecond).String())
}

func (s *Source) unreached(ctx context.Context, operation string, err error) {
	s.reach.missed(s.o.Clock())
	s.o.Metrics.Up(Name, false)
	reason, advice := explain("sqs:ReceiveMessage", err)
	s.o.Metrics.Failed(Name, operation, reason)
	s.logThrottled(ctx, operation+" "+reason, "cannot reach queue, retrying", "error", err.Error(), "advice", advice)
}

// Reasons why a call to SQS fails, in metrics.
const (
	reasonNoQueue     = "noQueue"
	reasonDenied      = "accessDenied"
	reasonKey         = "keyDenied"
	reasonCredentials = "credentials"
	reasonThrottled   = "throttled"
	reasonUnavailable = "unavailable"
	reasonUnreachable = "unreachable"
	reasonRefused     = "refused"
)

// reasons classifies the error codes of SQS (Amazon SQS API Reference, "Common
// errors" and the errors of each action; KMS codes as SQS passes them on).
var reasons = map[string]string{
	"AWS.SimpleQueueService.NonExistentQueue": reasonNoQueue,
	"QueueDoesNotExist":                       reasonNoQueue,
	"InvalidAddress":                          reasonNoQueue,
	"AccessDenied":                            reasonDenied,
	"AccessDeniedException":                   reasonDenied,
	"KMS.AccessDeniedException":               reasonKey,
	"KmsAccessDenied":                         reasonKey,
	"InvalidClientTokenId":                    reasonCredentials,
	"UnrecognizedClientException":             reasonCredentials,
	"InvalidAccessKeyId":                      reasonCredentials,
	"SignatureDoesNotMatch":                   reasonCredentials,
	"InvalidSignatureException":               reasonCredentials,
	"MissingAuthenticationToken":              reasonCredentials,
	"ExpiredToken":                            reasonCredentials,
	"ExpiredTokenException":                   reasonCredentials,
	"OverLimit":                               reasonThrottled,
	"RequestThrottled":                        reasonThrottled,
	"ThrottlingException":                     reasonThrottled,
	"KMS.ThrottlingException":                 reasonThrottled,
	"ServiceUnavailable":                      reasonUnavailable,
	"InternalFailure":                         reasonUnavailable,
}

// explain classifies an error of a call to SQS and returns what to do about it.
func explain(permission string, err error) (reason, advice string) {
	reason = reasonOf(err)
	switch reason {
	case reasonNoQueue:
		advice = "create the queue, or correct --queue-url and the region that the credentials are for"
	case reasonDenied:
		advice = "grant " + permission + " on the queue to the role that Lifeboat runs as"
	case reasonKey:
		advice = "grant kms:Decrypt on the queue's key to the role that Lifeboat runs as"
	case reasonCredentials:
		advice = "see that the pod gets AWS credentials: an EKS Pod Identity association, or a role for its service account"
	case reasonUnreachable:
		advice = "see that the pod can reach SQS: DNS, security groups, a VPC endpoint, and AWS_ENDPOINT_URL_SQS if it is set"
	case reasonThrottled, reasonUnavailable:
		advice = "nothing, if it passes"
	default:
		advice = "see the error; the queue has to be one of this account and region"
	}
	return reason, advice
}

func reasonOf(err error) string {
	var api smithy.APIError
	var response *awshttp.ResponseError
	switch {
	case errors.As(err, &api) && reasons[api.ErrorCode()] != "":
		return reasons[api.ErrorCode()]
	case errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError:
		return reasonUnavailable
	case errors.As(err, &api):
		return reasonRefused
	case strings.Contains(err.Error(), "get credentials"): // the SDK has no type for it
		return reasonCredentials
	}
	return reasonUnreachable
}
