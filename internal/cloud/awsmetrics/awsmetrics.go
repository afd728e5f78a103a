// Package awsmetrics counts and times requests to AWS.
package awsmetrics

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithy "github.com/aws/smithy-go"
	smithymiddleware "github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

// The results of a request.
const (
	ok        = "ok"
	denied    = "denied"
	throttled = "throttled"
	refused   = "refused"
	failed    = "failed"
	cancelled = "cancelled"
)

var (
	serviceLabel   = metric.Open("service", "the AWS service, such as SQS or EC2: at most six")
	operationLabel = metric.Open("operation", "the operation of the service: only those that Lifeboat calls, about thirty")

	requestsTotal = metric.Definition{
		Name: "lifeboat_aws_requests_total", Type: metric.Counter, Unit: "requests",
		Help: "Requests to AWS, by service, operation and result. Each try of a retried call counts.",
		Labels: []metric.Label{
			serviceLabel, operationLabel, metric.OneOf("result", ok, denied, throttled, refused, failed, cancelled),
		},
		Lazy: true,
	}
	requestSeconds = metric.Definition{
		Name: "lifeboat_aws_request_seconds", Type: metric.Histogram, Unit: "seconds",
		Help:    "Time that a request to AWS took, by service and operation. A receive from the queue waits up to 20 s for messages.",
		Labels:  []metric.Label{serviceLabel, operationLabel},
		Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25},
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition { return []metric.Definition{requestsTotal, requestSeconds} }

type meters struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	clock    func() time.Time
}

// Use returns the configuration with clients that count their requests.
func Use(config aws.Config, registerer prometheus.Registerer) (aws.Config, error) {
	m := &meters{requests: requestsTotal.NewCounters(), seconds: requestSeconds.NewHistograms(), clock: time.Now}
	if err := metric.Register(registerer, "requests to AWS", m.requests, m.seconds); err != nil {
		return config, err
	}
	config.APIOptions = append(config.APIOptions[:len(config.APIOptions):len(config.APIOptions)], m.add)
	return config, nil
}

// add adds the measurement after the SDK's retries, so that it sees every try.
func (m *meters) add(stack *smithymiddleware.Stack) error {
	measure := smithymiddleware.FinalizeMiddlewareFunc("LifeboatMetrics", m.measure)
	if _, found := stack.Finalize.Get((*retry.Attempt)(nil).ID()); found {
		return stack.Finalize.Insert(measure, (*retry.Attempt)(nil).ID(), smithymiddleware.After)
	}
	return stack.Finalize.Add(measure, smithymiddleware.Before)
}

func (m *meters) measure(ctx context.Context, in smithymiddleware.FinalizeInput, next smithymiddleware.FinalizeHandler) (
	smithymiddleware.FinalizeOutput, smithymiddleware.Metadata, error,
) {
	begun := m.clock()
	out, metadata, err := next.HandleFinalize(ctx, in)
	service, operation := middleware.GetServiceID(ctx), middleware.GetOperationName(ctx)
	m.seconds.WithLabelValues(service, operation).Observe(m.clock().Sub(begun).Seconds())
	m.requests.WithLabelValues(service, operation, resultOf(err)).Inc()
	return out, metadata, err
}

// resultOf classifies an error of a request with the SDK's own lists of codes.
func resultOf(err error) string {
	var (
		api      smithy.APIError
		response *awshttp.ResponseError
	)
	switch {
	case err == nil:
		return ok
	case errors.Is(err, context.Canceled):
		return cancelled
	case !errors.As(err, &api):
		return failed
	case isThrottle(api.ErrorCode()):
		return throttled
	case isDenied(api.ErrorCode()):
		return denied
	case errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError:
		return failed
	}
	return refused
}

func isThrottle(code string) bool {
	_, found := retry.DefaultThrottleErrorCodes[code]
	return found
}

func isDenied(code string) bool {
	switch code {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized", "AuthFailure":
		return true
	}
	return false
}
