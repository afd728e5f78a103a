//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/migrate"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// TestOldWalkthrough does what guides for Karpenter v1beta1 tell: apply a NodePool, an EC2NodeClass
// and a Deployment, look up the instance of the new node, interrupt it with AWS's
// ec2-spot-interrupter, and read logs and Events. The manifests are migrated first.
func TestOldWalkthrough(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options sandbox.Options
		section string // of the page of logs and Events
		again   bool   // interrupt the second node as well, as lifeboat interrupt does
	}{
		"Karpenter alone": {
			sandbox.Options{NoLifeboat: true, KarpenterQueue: "karpenter", KarpenterOwnQueue: true}, "Karpenter handles the interruption", false,
		},
		"Lifeboat with Karpenter": {sandbox.Options{}, "Lifeboat handles the interruption", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.options.Karpenter = true
			r := newRigWith(t, tc.options)
			for _, o := range migrated(t, "testdata/walkthrough-v1beta1.yaml", "sandbox") {
				r.apply(o)
			}
			r.untilRunning("inflate", 2)
			id := r.walkthroughInstance("")
			if _, err := emulatortest.NewSpotInterrupter(r.AWSConfig()).Start(t.Context(), 0, id); err != nil {
				t.Fatal(err)
			}
			r.untilReplaced(id)
			r.findLines(tc.section)
			if !tc.again {
				return
			}
			next := r.walkthroughInstance(id)
			if _, err := r.experiment().Run(t.Context(), fis.NewFromConfig(r.AWSConfig()), []drill.Target{{InstanceID: next}}); err != nil {
				t.Fatal(err)
			}
			r.untilReplaced(next)
		})
	}
}

// experiment is what `lifeboat interrupt` runs.
func (r *rig) experiment() drill.Experiment {
	st, say := r.State(), func(text string) { r.t.Log(text) }
	return drill.Experiment{
		Place: drill.Place{Account: st.Account, Region: st.Region, Partition: "aws"}, RoleARN: "arn:aws:iam::" + st.Account + ":role/drill",
		Poll: 200 * time.Millisecond, Progress: func(string) {}, Warn: say,
	}
}

// untilReplaced waits until an instance is going, and its pods run elsewhere.
func (r *rig) untilReplaced(id string) {
	r.t.Helper()
	r.until("instance "+id+" to be terminated without pods", 2*time.Minute, func(context.Context) (bool, error) {
		in, ok := r.EC2().Instance(id)
		gone := !ok || in.State == ec2.ShuttingDown || in.State == ec2.Terminated
		return gone && len(r.podsOn(in)) == 0, fmt.Errorf("state %s", in.State)
	})
	r.untilRunning("inflate", 2)
}

// migrated converts a file, and fills in the name of the cluster, as envsubst does.
func migrated(t *testing.T, file, cluster string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	result, err := migrate.Convert([]migrate.File{{Name: file, Data: text}})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range result.Findings {
		found[f.ID] = true
	}
	for _, want := range []string{"ami-family", "duplicate-key", "node-selector", "placeholder"} {
		if !found[want] {
			t.Errorf("no finding %s among %v", want, found)
		}
	}
	var all []client.Object
	for _, text := range strings.Split(os.Expand(string(result.Output), func(name string) string {
		return map[string]string{"CLUSTER_NAME": cluster}[name]
	}), "\n---") {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() == "Deployment" {
			o.SetNamespace("default")
		}
		all = append(all, o)
	}
	if len(all) != 3 {
		t.Fatalf("%d objects, want 3:\n%s", len(all), result.Output)
	}
	return all
}

// walkthroughInstance looks for the node by its label, and for its instance by the node's name. The
// node of the instance before may still exist.
func (r *rig) walkthroughInstance(before string) string {
	r.t.Helper()
	var nodes corev1.NodeList
	if err := r.client.List(r.t.Context(), &nodes, client.HasLabels{"eks-immersion-team"}); err != nil {
		r.t.Fatal(err)
	}
	nodes.Items = slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return before != "" && nodeindex.InstanceID(&n) == before })
	if len(nodes.Items) != 1 {
		r.t.Fatalf("%d nodes with the label, want 1", len(nodes.Items))
	}
	out, err := awsec2.NewFromConfig(r.AWSConfig()).DescribeInstances(r.t.Context(), &awsec2.DescribeInstancesInput{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, reservation := range out.Reservations {
		for _, in := range reservation.Instances {
			if aws.ToString(in.PrivateDnsName) != nodes.Items[0].Name {
				continue
			}
			r.checkMigrated(nodes.Items[0].ObjectMeta, aws.ToString(in.InstanceId))
			return aws.ToString(in.InstanceId)
		}
	}
	r.t.Fatalf("no instance has the private DNS name %s", nodes.Items[0].Name)
	return ""
}

// checkMigrated checks the properties of the node that the converted manifests ask for.
func (r *rig) checkMigrated(node metav1.ObjectMeta, id string) {
	r.t.Helper()
	in, _ := r.EC2().Instance(id)
	category := node.Labels["karpenter.k8s.aws/instance-category"]
	if !in.Spot() || in.Tags["intent"] != "apps" || !strings.Contains("cmr", category) || category == "" || in.ImageID != ec2.ImageID(ec2.X86) {
		r.t.Errorf("the node is %s of category %q with image %s and tags %v", in.Lifecycle(), category, in.ImageID, in.Tags)
	}
}
