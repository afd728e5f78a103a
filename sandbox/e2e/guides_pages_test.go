//go:build e2e

package e2e

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// guidePage is a page of docs/guides, and what its blocks find when they run.
type guidePage struct {
	name string
	// cluster is the cluster of `--cluster prod`; sandbox is the one that has a controller.
	cluster string
	nodes   []guideNode
	// words are pairs: what the page writes, and what the sandbox has.
	words []string
	// before are commands that run before a block, by its start.
	before map[string]string
	// fresh is true for a page that points the shell at the sandbox itself.
	fresh bool
	// elsewhere are the tests that run a block, by its start.
	elsewhere map[string]string
	// blocks and manifests are how many there are at least.
	blocks, manifests int
}

// guideNode is a node that a page names. record is the page's word for its instance.
type guideNode struct{ name, labels, record string }

// notServed are commands that do nothing in the test, with the reason.
var notServed = map[string]string{
	"aws cloudformation deploy":               "the emulator has no CloudFormation; internal/awssetup/emit tests what the template creates",
	"aws eks create-pod-identity-association": "the emulator's EKS only describes clusters",
	"aws eks describe-cluster":                "the emulator's clusters have no OIDC issuer",
	"aws iam create-policy":                   "the emulator has only policies of roles",
	"terraform init":                          "CI has no Terraform; internal/awssetup/emit tests the file",
	"terraform apply":                         "CI has no Terraform",
	"kops update":                             "kOps needs an AWS account",
}

// untilCtrlC matches a command that a person ends.
var untilCtrlC = regexp.MustCompile(`(?m)^(.*?) *# .*until Ctrl-C.*\n`)

// guidePrograms are the wrappers of programs.
var guidePrograms = map[string]string{
	"lifeboat": `case "$1 $2" in
"sandbox env") exec cat EXPORTS ;;
"sandbox up" | "sandbox down") exit 0 ;;
"interrupt "*) [[ " $* " = *" --dry-run "* ]] || set -- "$@" --yes ;;
"aws setup" | "aws destroy") set -- "$@" --yes ;;
"aws iam") [[ " $* " != *" --create "* ]] || set -- "$@" --yes ;;
esac
REAL "$@"
code=$?
case "$1 $2" in
doctor* | status*) [ $code = 2 ] || exit 0 ;;
plan* | "aws plan" | migrate*) [ $code != 3 ] || exit 0 ;;
esac
exit $code
`,
	"helm": `case $1 in
install | upgrade)
	shift
	REAL template "${@/--reuse-values/--values=my-values.yaml}" | kubectl apply --server-side --force-conflicts --dry-run=server -f -
	;;
*) exec REAL "$@" ;;
esac
`,
	"make":      "[ $1 = build ]\n",
	"aws":       "NOTSERVEDexec REAL \"$@\"\n",
	"cdk":       "mkdir -p cdk.out && cp template.yaml cdk.out/prod.template.json\n",
	"kops":      "NOTSERVEDexec REAL\n",
	"terraform": "NOTSERVED[ $1 = show ] && exec cat ROOT/internal/doctor/testdata/offline/terraform-plan.json\nexec REAL\n",
}

// notServedCases ends a wrapper for the commands of notServed.
func notServedCases(program, used string) string {
	var b strings.Builder
	for _, command := range slices.Sorted(maps.Keys(notServed)) {
		if args, ok := strings.CutPrefix(command, program+" "); ok {
			b.WriteString(`case "$*" in "` + args + `"*) echo "` + command + `" >>` + used + `; echo https://oidc.eks.us-east-1.amazonaws.com/id/EXAMPLE; exit 0 ;; esac` + "\n")
		}
	}
	return b.String()
}

// guidePrelude are functions for the commands of a guidePage.
const guidePrelude = `await() { # await PATTERN COMMAND: until its output has the pattern
	for _ in $(seq 300); do
		"${@:2}" 2>/dev/null | grep -q -- "$1" && return
		sleep 0.2
	done
	"${@:2}"
	return 1
}
interrupted() { timeout --signal INT 3 "$@" || [ $? = 124 ]; }
group() { # group NAME TAG=VALUE: an Auto Scaling group without instances
	aws ec2 create-launch-template --launch-template-name "$1" --launch-template-data '{"ImageId":"ami-0a1b2c3d4e5f60718","InstanceType":"m5.large"}' >/dev/null
	aws autoscaling create-auto-scaling-group --auto-scaling-group-name "$1" --min-size 0 --max-size 4 --desired-capacity 0 \
		--launch-template LaunchTemplateName="$1" --availability-zones us-east-1a \
		--tags "ResourceId=$1,ResourceType=auto-scaling-group,Key=${2%%=*},Value=${2#*=},PropagateAtLaunch=false"
}
approvals() { # approvals NODEPOOL: a policy whose planned changes need approval
	kubectl apply -f - <<-END
	apiVersion: $(kubectl get crd interruptionpolicies.lifeboat.dev -o jsonpath='lifeboat.dev/{.spec.versions[0].name}')
	kind: InterruptionPolicy
	metadata: {name: $1}
	spec:
	  nodes: {nodePools: [$1]}
	  rules: [{kinds: [ScheduledChange], action: Drain, approval: Required, ifUnanswered: Wait}]
	END
}
`

// guideFiles makes the files that users have: the release, their values and applications.
const guideFiles = `ln -s ROOT/charts charts
ln -s ROOT/charts/lifeboat lifeboat-0.1.0.tgz
cp charts/lifeboat/examples/values-eks-pod-identity.yaml my-values.yaml
echo x | tee token url routing-key >/dev/null
ln -s ROOT/sandbox/e2e/testdata/walkthrough-v1beta1.yaml guide.yaml
kubectl create deployment app --image app --replicas 2 --dry-run=client -o yaml >my-app.yaml
`

// approvalPages wait for a person.
var approvalPages = []guidePage{
	{
		name: "approve.md", cluster: "sandbox", blocks: 3, manifests: 1,
		nodes: []guideNode{{"ip-10-0-1-5.ec2.internal", "karpenter.sh/nodepool=db", "RECORD"}},
		before: map[string]string{"kubectl get interruptions": `
kubectl apply -f manifest-1.yaml
lifeboat interrupt ip-10-0-1-5.ec2.internal --kind scheduled --in 13d
await AwaitingApproval kubectl get interruptions RECORD
`},
	},
	{
		name: "on-call.md", cluster: "sandbox", blocks: 7,
		words: []string{"lifeboat console", "lifeboat console --port 0"}, // another test may have the port
		nodes: []guideNode{
			{"ip-10-0-1-5.ec2.internal", "team=a", ""}, {"NODE", "team=b", "NAME"}, {"WEB", "karpenter.sh/nodepool=web", "WEBRECORD"},
			{"DATABASE", "karpenter.sh/nodepool=databases", "DATABASERECORD"}, {"OTHER", "karpenter.sh/nodepool=other", "OTHERRECORD"},
		},
		before: map[string]string{"kubectl annotate": `
lifeboat interrupt NODE --kind scheduled --in 13d
await Scheduled kubectl get interruptions NAME
`, "lifeboat approve -l": `
for pool in web databases other; do approvals $pool; done
lifeboat interrupt WEB DATABASE OTHER --kind scheduled --in 13d
for record in WEBRECORD DATABASERECORD OTHERRECORD; do await AwaitingApproval kubectl get interruptions $record; done
`},
	},
}

// hooksPage is docs/guides/hooks.md with a hook that fails.
var hooksPage = guidePage{
	name: "hooks.md", cluster: "sandbox", blocks: 6, manifests: 1,
	words: []string{"kubectl create namespace node-hooks", "kubectl create namespace node-hooks --dry-run=server || true"},
	nodes: []guideNode{{"NODE", "karpenter.sh/nodepool=held", "NAME"}},
	before: map[string]string{"lifeboat approve": `
kubectl apply -f - <<-END
	apiVersion: $(sed -n 's/^apiVersion: //p' manifest-1.yaml)
	kind: InterruptionPolicy
	metadata: {name: held}
	spec:
	  nodes: {nodePools: [held]}
	  rules: [{kinds: [ScheduledChange], action: Drain}]
	  hooks: [{name: fails, when: BeforeDrain, timeout: 1s, retries: 0, onFailure: Hold, webhook: {url: "http://127.0.0.1:1/"}}]
END
kubectl run held --image app --overrides '{"spec": {"nodeName": "NODE"}}'
await held kubectl get pods
lifeboat interrupt NODE --kind scheduled --in 2m
await Failed kubectl get interruption NAME -o jsonpath='{.status.drain.hooks[*].state}'
`},
}

// doctorPage is docs/guides/doctor.md, with templates that users have.
var doctorPage = guidePage{
	name: "doctor.md", cluster: "sandbox", blocks: 4,
	words: []string{`"$QUEUE_ARN"`, "arn:aws:sqs:us-east-1:123456789012:lifeboat-sandbox"},
	// Version 1 of the AWS CLI ignores AWS_ENDPOINT_URL for SQS.
	elsewhere: map[string]string{"aws sqs get-queue-attributes": "TestAWSCLI"},
	before: map[string]string{"lifeboat doctor --offline": `
mkdir -p templates infra/prod
lifeboat aws emit --cluster prod | tee template.yaml >templates/prod.yaml
lifeboat aws emit --cluster prod --format terraform >infra/prod/lifeboat.tf.json
`},
}

// sender is the role that may send drills, and the user of the sandbox.
var sender = []string{"arn:aws:iam::210987654321:role/ops", "arn:aws:iam::123456789012:user/lifeboat"}

// readme is the first page, so that the first node is its own.
var readme = guidePage{
	name: "../../README.md", blocks: 1, fresh: true, words: []string{"bin/lifeboat", "lifeboat"},
	nodes: []guideNode{{name: "FIRSTNODE", labels: "team=readme"}, {name: "SECONDNODE", labels: "team=readme"}},
}

var guidePages = append(append([]guidePage{readme}, approvalPages...), hooksPage,
	guidePage{name: "eks.md", cluster: "sandbox", blocks: 1, manifests: 2, nodes: []guideNode{{name: "NODE", labels: "team=a"}}, words: sender},
	guidePage{name: "upgrade.md", cluster: "sandbox", blocks: 1, words: []string{"lifeboat-0.2.0.tgz", "lifeboat-0.1.0.tgz"}},
	guidePage{name: "eks-karpenter.md", cluster: "sandbox", blocks: 5, nodes: []guideNode{{name: "NODE", labels: "team=a"}}, words: sender},
	guidePage{name: "warm-pools.md", manifests: 1},
	guidePage{
		name: "karpenter.md", cluster: "sandbox", blocks: 3,
		nodes: []guideNode{{name: "NODE", labels: "team=a"}},
		before: map[string]string{"kubectl delete validating": `
helm template lifeboat charts/lifeboat --namespace lifeboat-system --values my-values.yaml --set karpenter.guard.enabled=true \
	--show-only templates/karpenter-admission.yaml | kubectl apply -f -
`},
	},
	guidePage{
		name: "node-groups.md", cluster: "sandbox", blocks: 2, manifests: 2,
		before: map[string]string{
			"lifeboat nodegroup adopt": "group nodes-eu-west-1a.prod.example.com kops.k8s.io/instancegroup=nodes-eu-west-1a\n",
			"lifeboat nodegroup list":  "group workers a=b\nlifeboat nodegroup adopt workers\n",
		},
		words: []string{"nodes-eu-west-1a", "nodes-eu-west-1a"}, // no region
	},
	guidePage{
		name: "aws.md", cluster: "prod", blocks: 16,
		before: map[string]string{"lifeboat aws plan  --cluster prod --groups": "group nodes-a a=b\ngroup nodes-b a=b\n"},
	},
	guidePage{
		name: "from-nth.md", cluster: "nth", blocks: 6, manifests: 8,
		words: []string{"nodes-eu-west-1a", "nodes-eu-west-1a"},
		before: map[string]string{
			"lifeboat migrate nth": `
echo 'enableSpotInterruptionDraining: true' >values.yaml
kubectl --namespace kube-system create deployment aws-node-termination-handler --image nth
kubectl --namespace kube-system set env deployment/aws-node-termination-handler ENABLE_SPOT_INTERRUPTION_DRAINING=true
`,
			"lifeboat nodegroup adopt": "kubectl delete nodegroup nodes-eu-west-1a\n",
			"helm upgrade": `
kubectl create --namespace kube-system -f - <<-END
	apiVersion: apps/v1
	kind: DaemonSet
	metadata: {name: aws-node-termination-handler}
	spec:
	  selector: {matchLabels: {a: nth}}
	  template:
	    metadata: {labels: {a: nth}}
	    spec: {nodeSelector: {none: none}, containers: [{name: nth, image: nth}]}
END
`,
			"kops update": "kubectl --namespace kube-system create deployment aws-node-termination-handler --image nth --dry-run=client -o yaml | kubectl apply -f -\n",
		},
	},
	guidePage{
		name: "rehearse.md", cluster: "sandbox", blocks: 8,
		words: []string{"us-east-1b", "us-east-1a"}, // where the instances are
		nodes: []guideNode{
			{name: "ip-10-0-128-10.ec2.internal", labels: "karpenter.sh/capacity-type=spot"}, {name: "ip-10-0-0-11.ec2.internal", labels: "team=a"},
			{name: "ip-10-0-64-10.ec2.internal", labels: "team=a"}, {name: "ip-10-0-0-10.ec2.internal", labels: "team=a"},
		},
		before: map[string]string{
			"lifeboat sandbox up --karpenter": "kubectl create configmap pool --dry-run=client -o yaml >my-nodepool.yaml\n",
		},
		elsewhere: map[string]string{"eval \"$(lifeboat sandbox env)\"\ncat": "TestGuideCommandsCreateWarmPoolGroup"},
	},
	guidePage{
		name: "self-managed.md", cluster: "sandbox", blocks: 5, nodes: []guideNode{{name: "NODE", labels: "team=a"}},
		words:  append([]string{"nodes-a", "nodes-c"}, sender...), // aws.md has nodes-a
		before: map[string]string{"lifeboat aws plan  --cluster prod --groups": "group nodes-c a=b\n"},
	},
	doctorPage,
	guidePage{
		name: "policy.md", cluster: "sandbox", blocks: 2, manifests: 8, nodes: []guideNode{{name: "NODE", labels: "karpenter.sh/nodepool=databases"}},
		before: map[string]string{"kubectl get interruptionpolicies": "approvals databases\n"},
	},
	guidePage{
		name: "terminations.md", cluster: "terminations", blocks: 2,
		nodes: []guideNode{{"NODE", "team=a", "i-0a1b2c3d4e5f60718"}},
		words: []string{"nodes-a,nodes-b", "nodes-d,nodes-e"}, // aws.md has the others
		before: map[string]string{
			"lifeboat aws iam": "group nodes-d a=b\ngroup nodes-e a=b\n",
			"kubectl get interruptions": `
lifeboat interrupt NODE --kind scheduled --in 13d
await Scheduled kubectl get interruptions i-0a1b2c3d4e5f60718
`,
		},
	},
	guidePage{
		name: "migrate-karpenter.md", blocks: 5,
		before: map[string]string{"lifeboat migrate karpenter -f nodepools": "cp guide.yaml nodepools.yaml; kubectl get ec2nodeclasses -o yaml >nodeclasses.yaml\n"},
	},
	guidePage{
		name: "why.md", cluster: "sandbox", blocks: 3, nodes: []guideNode{{"ip-10-0-1-5.ec2.internal", "team=a", "i-0a1b2c3d4e5f60718"}},
		before: map[string]string{"kubectl get interruption i-": `
lifeboat interrupt ip-10-0-1-5.ec2.internal --kind scheduled --in 13d
await Scheduled kubectl get interruptions i-0a1b2c3d4e5f60718
`},
	},
)
