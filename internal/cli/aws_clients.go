package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
)

// cloud holds the AWS clients of a command.
type cloud struct {
	place     drill.Place
	instances drill.DescribeInstances
	fis       drill.ExperimentsAPI
	queues    drill.QueueAPI
	// emulated is true for the AWS of --sandbox, where no confirmation is needed. An endpoint
	// on this machine can also be a tunnel to AWS.
	emulated bool
	// queueURL is the sandbox's queue; empty on AWS.
	queueURL string
}

// awsConfig returns the configuration for the sandbox's AWS, or for the one
// that the environment names. For the sandbox it also returns the connection.
// It ignores the user's own AWS configuration for the sandbox, so that a broken
// profile cannot break it.
func (s *session) awsConfig(ctx context.Context) (aws.Config, connection, error) {
	if s.flags.Sandbox == "" {
		cfg, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return aws.Config{}, connection{}, awsError{fmt.Errorf("reading the AWS configuration: %w", err)}
		}
		return awshttp.Use(cfg), connection{}, nil
	}
	found, err := s.findSandbox(s.flags.Sandbox)
	if err != nil {
		return aws.Config{}, connection{}, err
	}
	return awshttp.Use(aws.Config{
		Region:       found.region,
		BaseEndpoint: aws.String(found.endpoint),
		Credentials:  awshttp.StaticCredentials(found.accessKeyID, found.secretAccessKey),
	}), found, nil
}

// connectAWS makes AWS clients and looks up their account. zone gives the
// region if the environment has none.
func (s *session) connectAWS(ctx context.Context, zone string) (cloud, error) {
	cfg, sandbox, err := s.awsConfig(ctx)
	if err != nil {
		return cloud{}, err
	}
	cfg.Region = cmp.Or(cfg.Region, drill.RegionOf(zone))
	if cfg.Region == "" {
		return cloud{}, awsError{&aws.MissingRegionError{}}
	}
	place, err := drill.Locate(ctx, sts.NewFromConfig(cfg), cfg.Region)
	if err != nil {
		return cloud{}, awsError{err}
	}
	return cloud{
		place:     place,
		instances: ec2.NewFromConfig(cfg).DescribeInstances,
		fis:       fis.NewFromConfig(cfg),
		queues:    sqs.NewFromConfig(cfg),
		emulated:  s.flags.Sandbox != "",
		queueURL:  sandbox.queueURL,
	}, nil
}
