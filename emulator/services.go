package emulator

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/cloudtrail"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/eks"
	"github.com/lifeboat-dev/lifeboat/emulator/elb"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/fis"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
	"github.com/lifeboat-dev/lifeboat/emulator/iam"
	"github.com/lifeboat-dev/lifeboat/emulator/imds"
	"github.com/lifeboat-dev/lifeboat/emulator/pricing"
	"github.com/lifeboat-dev/lifeboat/emulator/replica"
	"github.com/lifeboat-dev/lifeboat/emulator/sns"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/ssm"
	"github.com/lifeboat-dev/lifeboat/emulator/sts"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// States holds the state of every emulated service.
type States struct {
	STS    *sts.State
	SQS    *sqs.State
	SNS    *sns.State
	Events *events.State
	EC2    *ec2.State
	FIS    *fis.State
	IMDS   *imds.State
	IAM    *iam.State
	SSM    *ssm.State
	EKS    *eks.State
	ELB    *elb.State

	AutoScaling *autoscaling.State
	CloudTrail  *cloudtrail.State
	Health      *health.State
	Pricing     *pricing.State
}

// duplicates is the share of messages that come twice with Options.Unkind. It is much higher than
// on AWS, so that short tests meet some.
const duplicates = 0.1

// The delays with Options.Unkind. AWS gives no limits, and recommends to repeat calls after a couple of
// seconds (Amazon EC2 Developer Guide, "Eventual consistency in the Amazon EC2 API").
const (
	longestLag  = 3 * time.Second        // age of a description
	targetAfter = time.Second            // from the launch until metadata has a target state
	actionAfter = 500 * time.Millisecond // until a new lifecycle action is known
	// The EC2 User Guide asks to read the metadata every five seconds. It gives no limit for the delay
	// of a notice, and tells to repeat requests that get 503.
	longestNoticeLag = 5 * time.Second
	metadataFailures = 0.02 // share of requests
)

// newStates creates the states of a scope. It passes one service's functions to another that needs
// them.
func newStates(scope wire.Scope, o Options) *States {
	s := &States{
		STS: sts.New(scope),
		SQS: sqs.New(scope),
		IAM: iam.New(scope),
		SSM: ssm.New(scope, ec2.ImageID),
		EKS: eks.New(scope),

		Pricing: pricing.New(scope, products),
	}
	s.SNS = sns.New(scope, s.SQS.Deliver)
	s.Events = events.New(scope, s.deliverEvent)
	s.EC2 = ec2.New(ec2.Options{Scope: scope, Emit: s.Events.Emit, Timing: o.Timing, ProfileRole: s.IAM.ProfileRole})
	s.ELB = elb.New(scope, s.running)
	s.FIS = fis.New(fis.Options{Scope: scope, EC2: s.EC2, Emit: s.Events.Emit, Allowed: s.IAM.Allowed})
	s.AutoScaling = autoscaling.New(autoscaling.Options{
		Scope: scope, EC2: s.EC2, Emit: s.Events.Emit, Deliver: s.SQS.Deliver, Timing: o.AutoScaling,
	})
	s.IMDS = imds.New(imds.Options{Scope: scope, EC2: s.EC2, TargetState: s.AutoScaling.TargetState})
	s.CloudTrail = cloudtrail.New(scope, s.STS.Identify, s.Events.Emit)
	if seed := o.Unkind; seed != 0 {
		s.Events.SetDelivery(rand.New(rand.NewPCG(seed, 1)), duplicates)
		s.SQS.SetDelivery(sqs.Delivery{Random: rand.New(rand.NewPCG(seed, 2)), Duplicates: duplicates})
		s.EC2.SetLag(replica.Lag{Most: longestLag, Random: rand.New(rand.NewPCG(seed, 3))})
		s.AutoScaling.SetConsistency(autoscaling.Consistency{
			Lag: longestLag, Random: rand.New(rand.NewPCG(seed, 4)), TargetAfter: targetAfter, ActionAfter: actionAfter,
		})
		s.IMDS.SetUnkind(imds.Unkind{Random: rand.New(rand.NewPCG(seed, 5)), NoticeLag: longestNoticeLag, Failures: metadataFailures})
	}
	s.Health = health.New(health.Options{Scope: scope, EC2: s.EC2, Emit: s.Events.Emit})
	return s
}

// deliverEvent delivers an event to the queue or the topic with an ARN.
func (s *States) deliverEvent(arn, body string, from sqs.Sender) error {
	if strings.Split(arn, ":")[2] == "sns" { // events checks that it is an ARN
		return s.SNS.Deliver(arn, body, from)
	}
	return s.SQS.Deliver(arn, body, from)
}

// running reports whether an instance exists, and whether it runs.
func (s *States) running(instanceID string) (exists, running bool) {
	found, err := s.EC2.Describe([]string{instanceID}, nil)
	return err == nil, err == nil && found[0].State == ec2.Running
}

// services is the list of emulated services: one line each.
func (s *States) services() []wire.Service {
	return []wire.Service{
		sts.Service(s.STS),
		sqs.Service(s.SQS, s.STS.Identify),
		sns.Service(s.SNS),
		events.Service(s.Events),
		ec2.Service(s.EC2),
		fis.Service(s.FIS),
		autoscaling.Service(s.AutoScaling),
		iam.Service(s.IAM),
		ssm.Service(s.SSM),
		eks.Service(s.EKS),
		elb.Service(s.ELB),
		pricing.Service(s.Pricing),
		cloudtrail.Service(s.CloudTrail),
	}
}

// products are EC2's instance types with their prices.
func products() []pricing.Product {
	var out []pricing.Product
	for _, t := range ec2.Types() {
		if price, ok := ec2.OnDemandPrice(t.Name); ok {
			out = append(out, pricing.Product{Type: t.Name, VCPU: t.VCPU, MemoryMiB: t.MemoryMiB, Hourly: price})
		}
	}
	return out
}
