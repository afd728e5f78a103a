package nodegroup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

// A change of another tag must not stop the propagation of a tag to instances:
// IAM policies for termination may depend on it.
func TestTagsKeepPropagatingToInstances(t *testing.T) {
	t.Parallel()
	const cluster = "kubernetes.io/cluster/prod"
	type tags = map[string]string
	for name, tc := range map[string]struct {
		was  tags     // of a group that is there; nil: Lifeboat makes it
		not  []string // those that its instances do not get
		want tags     // what its instances get when a tag team is declared
		own  string   // the group's own tag of the cluster
	}{
		"of Lifeboat's making":               {nil, nil, tags{cluster: "owned", "team": "db"}, "owned"},
		"of kOps' making":                    {tags{cluster: "owned", "k": "v"}, nil, tags{cluster: "owned", "k": "v", "team": "db"}, "owned"},
		"one of several clusters":            {tags{cluster: "shared"}, nil, tags{cluster: "shared", "team": "db"}, "shared"},
		"one whose instances do not have it": {tags{cluster: "owned"}, []string{cluster}, tags{"team": "db"}, "owned"},
		"one that has none":                  {tags{}, nil, tags{"team": "db"}, "owned"},
		"one of an object of another name":   {tags{nodegroup.TagObject: "old"}, nil, tags{nodegroup.TagObject: "nodes", "team": "db"}, "owned"},
		"one that kept a tag for itself":     {tags{"team": "web"}, []string{"team"}, tags{"team": "db"}, "owned"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			if tc.was != nil {
				if err := a.States.AutoScaling.CreateGroup(autoscaling.Group{
					Name: "nodes", Max: 3, Template: ec2.TemplateRef{Name: "workers"}, Tags: tc.was, NotPropagated: tc.not,
				}); err != nil {
					t.Fatal(err)
				}
			}
			g := a.declare("nodes")
			a.mustSettle(t, g)
			g.Spec.Tags = tags{"team": "db"}
			a.mustSettle(t, g)
			o := a.observe(t, "nodes")
			got := tags{}
			for _, key := range o.Propagated {
				got[key] = o.Tags[key]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("instances get (-want +got):\n%s", diff)
			}
			if o.Tags[cluster] != tc.own || o.Tags[nodegroup.TagObject] != "nodes" {
				t.Errorf("the group has %v", o.Tags)
			}
		})
	}
}

// Other tools depend on a cluster's tag: its value stays even if the spec
// declares another.
func TestClusterTagIsNotRewritten(t *testing.T) {
	t.Parallel()
	const cluster = "kubernetes.io/cluster/prod"
	g := group(func(s *v1beta1.NodeGroupSpec) { s.Tags = map[string]string{cluster: "owned"} })
	o := seen(func(o *nodegroup.Observed) { o.Tags[cluster] = "shared" })
	if got := steps(nodegroup.Diff(nodegroup.Want(g, "prod"), o, nodegroup.History{})); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
