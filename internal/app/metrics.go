package app

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awsmetrics"
	"github.com/lifeboat-dev/lifeboat/internal/controller/inflight"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

// countRequests returns the configuration with clients that count their requests to AWS, and
// registers the build.
func countRequests(cloud aws.Config) (aws.Config, error) {
	if err := metric.RegisterBuild(metrics.Registry, "controller"); err != nil {
		return cloud, err
	}
	return awsmetrics.Use(cloud, metrics.Registry)
}

// countInFlight registers the gauges of what is under way.
func countInFlight(mgr ctrl.Manager) error {
	return inflight.Register(metrics.Registry, inflight.Options{Reader: mgr.GetClient(), Elected: mgr.Elected(), Clock: time.Now})
}
