package awshttp

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// StaticCredentials returns credentials that are known and do not expire, for example those of the
// sandbox.
func StaticCredentials(accessKeyID, secretAccessKey string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey, Source: "static"}, nil
	})
}

// renewEarly is how long before they expire temporary credentials are renewed. So a long poll
// ends in time, and a call from a node whose clock is slow has valid credentials.
const renewEarly = 5 * time.Minute

// RenewEarly makes the SDK renew temporary credentials before they expire. By default it does so
// for those of an endpoint (EKS Pod Identity), but not for those of STS (IRSA).
func RenewEarly(o *aws.CredentialsCacheOptions) {
	o.ExpiryWindow = renewEarly
}
