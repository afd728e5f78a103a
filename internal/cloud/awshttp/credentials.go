package awshttp

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// StaticCredentials returns credentials that are known and do not expire, for example those of the
// sandbox.
func StaticCredentials(accessKeyID, secretAccessKey string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey, Source: "static"}, nil
	})
}
