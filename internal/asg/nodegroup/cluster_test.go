package nodegroup_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// A NodeGroup can name any group of the account. Only tags say whose nodes it launches.
func TestGroupOfAnotherClusterIsNotChanged(t *testing.T) {
	t.Parallel()
	type tags = map[string]string
	const own, foreign = "kubernetes.io/cluster/prod", "kubernetes.io/cluster/dev"
	for name, tc := range map[string]struct {
		tags    tags
		cluster string
		other   string // the cluster in the finding; empty: the group is changed
	}{
		"no tag":                          {nil, "prod", ""},
		"its own tag":                     {tags{own: "owned"}, "prod", ""},
		"another cluster's tag":           {tags{foreign: "owned"}, "prod", "dev"},
		"shared by another":               {tags{foreign: "shared"}, "prod", "dev"},
		"shared with another":             {tags{foreign: "shared", own: "shared"}, "prod", ""},
		"EKS' tag":                        {tags{"eks:cluster-name": "dev"}, "prod", "dev"},
		"EKS' tag of its own":             {tags{"eks:cluster-name": "prod"}, "prod", ""},
		"eksctl's tag":                    {tags{"alpha.eksctl.io/cluster-name": "dev"}, "prod", "dev"},
		"kOps' tag":                       {tags{"KubernetesCluster": "dev.example.com"}, "prod", "dev.example.com"},
		"Lifeboat's tag":                  {tags{"lifeboat.dev/cluster": "dev"}, "prod", "dev"},
		"Cluster API's tag":               {tags{"sigs.k8s.io/cluster-api-provider-aws/cluster/dev": "owned"}, "prod", "dev"},
		"the cluster autoscaler's tag":    {tags{"k8s.io/cluster-autoscaler/dev": "owned"}, "prod", "dev"},
		"its switch":                      {tags{"k8s.io/cluster-autoscaler/enabled": "true"}, "prod", ""},
		"its template":                    {tags{"k8s.io/cluster-autoscaler/node-template/label/a": "b"}, "prod", ""},
		"the cluster's name is not known": {tags{foreign: "owned"}, "", ""},
	} {
		for _, m := range []v1beta1.Management{v1beta1.ManageAll, v1beta1.ManageHooks, v1beta1.ManageNothing} {
			t.Run(name+" "+string(m), func(t *testing.T) {
				t.Parallel()
				w := nodegroup.Want(&v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{AutoScalingGroup: "nodes", Management: m}}, tc.cluster)
				o := nodegroup.Observed{Exists: true, Name: "nodes", Tags: tc.tags, HooksKnown: true, PoolKnown: true, Settings: &nodegroup.Settings{}}
				plan := nodegroup.Diff(w, o, nodegroup.History{})
				i := slices.IndexFunc(plan.Findings, func(f finding.Finding) bool { return f.ID == nodegroup.OtherCluster })
				refused, managed := tc.other != "", m != v1beta1.ManageNothing
				if want := refused && managed; want != (i >= 0) || want && !strings.Contains(plan.Findings[i].Problem, "belongs to cluster "+tc.other+" ") {
					t.Errorf("findings %v, want %s: %t", plan.Findings, nodegroup.OtherCluster, want)
				}
				if changed := len(plan.Steps) > 0; changed != (managed && !refused) {
					t.Errorf("steps %v", plan.Steps)
				}
				steps, waits := nodegroup.Teardown(o, tc.cluster)
				if refused != (waits != "") || refused != (len(steps) == 0) {
					t.Errorf("deletion: %v, waits %q", steps, waits)
				}
			})
		}
	}
}
