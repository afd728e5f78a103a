// Command karpenter is upstream's Karpenter for AWS, built from a pinned module and
// run as a separate process. `karpenter crds` prints its CRDs and exits.
//
// Karpenter is unmodified: this file replaces upstream's cmd/controller and makes the
// same calls, so that this module's go.mod and go.sum pin the version.
package main

import (
	"fmt"
	"os"

	awsapis "github.com/aws/karpenter-provider-aws/pkg/apis"
	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider/registrationhooks"
	"github.com/aws/karpenter-provider-aws/pkg/controllers"
	"github.com/aws/karpenter-provider-aws/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	corecontrollers "sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	coreoperator "sigs.k8s.io/karpenter/pkg/operator"
	karpoptions "sigs.k8s.io/karpenter/pkg/operator/options"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "crds" {
		printCRDs()
		return
	}
	run()
}

// printCRDs writes the CRDs as one YAML stream.
func printCRDs() {
	for _, crd := range [][]byte{awsapis.EC2NodeClassCRD, awsapis.NodePoolCRD, awsapis.NodeClaimCRD, awsapis.NodeOverlayCRD} {
		fmt.Printf("---\n%s\n", crd)
	}
}

func run() {
	ctx, op := operator.NewOperator(coreoperator.NewOperator())
	plain := metrics.Decorate(cloudprovider.New(
		op.InstanceTypesProvider, op.InstanceProvider, op.EventRecorder, op.GetClient(), op.AMIProvider,
		op.SecurityGroupProvider, op.CapacityReservationProvider, op.PlacementGroupProvider, op.InstanceTypeStore, op.CABundle,
	))
	cloud := overlay.Decorate(plain, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), cloud)
	if karpoptions.FromContext(ctx).FeatureGates.ReservedCapacity {
		v1.CapacityReservationsEnabled = true
	}
	core := corecontrollers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, cloud, plain, cluster, op.InstanceTypeStore,
		corecontrollers.WithRegistrationHook(registrationhooks.NewPlacementGroupRegistrationHook(op.InstanceProvider)),
	)
	aws := controllers.NewControllers(
		ctx, op.Manager, op.Config, op.Clock, op.EC2API, op.GetClient(), op.EventRecorder,
		op.UnavailableOfferingsCache, op.SSMCache, op.ValidationCache, op.RecreationCache, cloud,
		op.SubnetProvider, op.SecurityGroupProvider, op.InstanceProfileProvider, op.InstanceProvider,
		op.PricingProvider, op.AMIProvider, op.LaunchTemplateProvider, op.VersionProvider, op.InstanceTypesProvider,
		op.CapacityReservationProvider, op.PlacementGroupProvider, op.AMIResolver, op.ZonalShiftProvider,
		op.InstanceStatusProvider, op.CABundle,
	)
	op.WithControllers(ctx, core...).WithControllers(ctx, aws...).Start(ctx)
}
