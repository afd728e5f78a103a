// Command karpenter-older is an earlier minor version of upstream's Karpenter for AWS
// than modules/karpenter, for tests with more than one version. `karpenter-older
// crds` prints its CRDs and exits.
//
// Karpenter is unmodified: this file replaces upstream's cmd/controller and makes the
// same calls. The AWS SDK of that version does not support AWS_ENDPOINT_URL, so this
// program redirects the AWS requests.
package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	awsapis "github.com/aws/karpenter-provider-aws/pkg/apis"
	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/aws/karpenter-provider-aws/pkg/controllers"
	"github.com/aws/karpenter-provider-aws/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	corecontrollers "sigs.k8s.io/karpenter/pkg/controllers"
	coreoperator "sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "crds" {
		printCRDs()
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "running Karpenter:", err)
		os.Exit(1)
	}
}

// printCRDs writes the CRDs as one YAML stream.
func printCRDs() {
	for _, crd := range [][]byte{awsapis.EC2NodeClassCRD, apis.NodePoolCRD, apis.NodeClaimCRD} {
		fmt.Printf("---\n%s\n", crd)
	}
}

func run() error {
	if text := os.Getenv("AWS_ENDPOINT_URL"); text != "" {
		endpoint, err := url.Parse(text)
		if err != nil {
			return fmt.Errorf("reading AWS_ENDPOINT_URL: %w", err)
		}
		http.DefaultTransport = redirect{to: endpoint, next: http.DefaultTransport}
	}
	ctx, op := operator.NewOperator(coreoperator.NewOperator())
	aws := cloudprovider.New(
		op.InstanceTypesProvider, op.InstanceProvider, op.EventRecorder, op.GetClient(), op.AMIProvider, op.SecurityGroupProvider,
	)
	if err := op.AddHealthzCheck("cloud-provider", aws.LivenessProbe); err != nil {
		return err
	}
	cloud := metrics.Decorate(aws)
	op.WithControllers(ctx, corecontrollers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, cloud,
	)...).WithControllers(ctx, controllers.NewControllers(
		ctx, op.Manager, op.Session, op.Clock, op.GetClient(), op.EventRecorder, op.UnavailableOfferingsCache, op.SSMCache, cloud,
		op.SubnetProvider, op.SecurityGroupProvider, op.InstanceProfileProvider, op.InstanceProvider,
		op.PricingProvider, op.AMIProvider, op.LaunchTemplateProvider, op.InstanceTypesProvider,
	)...).Start(ctx, cloud)
	return nil
}

// redirect sends AWS requests to another endpoint.
type redirect struct {
	to   *url.URL
	next http.RoundTripper
}

func (r redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Hostname(), ".amazonaws.com") {
		req = req.Clone(req.Context())
		req.URL.Scheme, req.URL.Host, req.Host = r.to.Scheme, r.to.Host, r.to.Host
	}
	return r.next.RoundTrip(req)
}
