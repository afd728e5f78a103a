package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func ids(all []finding.Finding) []string {
	out := []string{}
	for _, f := range all {
		out = append(out, string(f.Severity)+" "+f.ID)
	}
	return out
}

// seen returns a group with Lifeboat's hooks, after a change.
func seen(change func(*seenGroup)) seenGroup {
	object := &v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{AutoScalingGroup: "nodes-a"}}
	g := seenGroup{object: object, wanted: nodegroup.Want(object, "prod"), there: nodegroup.Observed{
		Exists: true, Name: "nodes-a", Max: 3, HooksKnown: true, PoolKnown: true,
		Hooks: []nodegroup.Hook{
			{Name: "lifeboat-launch", Timeout: 10 * time.Minute, Global: 16 * time.Hour, Abandons: true},
			{Name: "lifeboat-terminate", Terminating: true, Timeout: 5 * time.Minute, Global: 8 * time.Hour},
		},
	}}
	change(&g)
	return g
}

func TestGroupFindings(t *testing.T) {
	t.Parallel()
	stranger := func(change func(*seenGroup)) func(*seenGroup) {
		return func(g *seenGroup) { g.object = nil; change(g) }
	}
	bare := func(g *seenGroup) { g.there.Hooks = nil }
	for _, tc := range []struct {
		name   string
		change func(*seenGroup)
		want   []string
	}{
		{"as it should be", func(*seenGroup) {}, []string{}},
		{"no hooks", bare, []string{"broken launch-hook-missing", "broken terminate-hook-missing"}},
		{"a pool without a hook", func(g *seenGroup) { bare(g); g.there.Pool = &nodegroup.Pool{State: "Stopped"} },
			[]string{"broken launch-hook-missing", "broken terminate-hook-missing", "broken pool-without-hook"}},
		{"a boot that took longer than the hook waits", func(g *seenGroup) {
			g.object.Status.Boots = &v1beta1.BootTimes{Count: 3, LongestSeconds: 900}
		}, []string{"warning launch-hook-too-short"}},
		{"a launch that goes on, a termination that abandons", func(g *seenGroup) {
			g.there.Hooks[0].Abandons, g.there.Hooks[1].Abandons = false, true
		}, []string{"warning launch-hook-continues", "warning terminate-hook-abandons"}},
		{"launches that fail", func(g *seenGroup) {
			g.object.Status.ConsecutiveFailures = 4
			g.object.Status.Failures = []v1beta1.GroupFailure{{Message: "i-1 was abandoned"}}
		}, []string{"broken launches-fail"}},
		{"instances that passed before the hook was there", func(g *seenGroup) {
			g.object.Status.Unhooked = []string{"i-0aaaaaaa", "i-0bbbbbbb"}
			g.there.Instances = []nodegroup.Instance{{ID: "i-0aaaaaaa", State: "Warmed:Stopped", At: lifecycle.Read("Warmed:Stopped")}}
		}, []string{"warning instances-before-hook"}},
		{"hooks that may not be read", func(g *seenGroup) { g.there.Hooks, g.there.HooksKnown = nil, false }, []string{"unknown hooks-unknown"}},
		{"a stranger, as it should be", stranger(func(*seenGroup) {}), []string{}},
		{"a stranger without hooks", stranger(bare), []string{"warning terminate-hook-missing"}},
		{"a stranger with a terminate hook of its own", stranger(func(g *seenGroup) { g.there.Hooks = []nodegroup.Hook{{Name: "drain", Terminating: true}} }), []string{}},
		{"a stranger with a pool and no hook", stranger(func(g *seenGroup) { bare(g); g.there.Pool = &nodegroup.Pool{State: "Stopped"} }),
			[]string{"warning terminate-hook-missing", "broken pool-without-hook"}},
		{"a stranger with a pool and kOps' hook", stranger(func(g *seenGroup) {
			g.there.Hooks[0].Name, g.there.Pool = "kops-warmpool", &nodegroup.Pool{State: "Stopped"}
		}), []string{}},
		{"EKS's own", stranger(func(g *seenGroup) { bare(g); g.there.Operator = "eks.amazonaws.com" }), []string{}},
		{"of EKS, by its tag", stranger(func(g *seenGroup) { bare(g); g.there.Tags = map[string]string{"eks:nodegroup-name": "ng"} }), []string{}},
		{"a stranger that launches nothing", stranger(func(g *seenGroup) { g.there.Suspended = []nodegroup.Suspension{{Process: "Launch"}} }), []string{"broken process-suspended"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			all := groupFindings(seen(tc.change), "lifeboat aws setup")
			if diff := cmp.Diff(tc.want, ids(all)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			for _, f := range all {
				if f.Problem == "" || f.Fix == "" || f.Object == "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestDoctorKnowsWhichHooksAreAnswered(t *testing.T) {
	t.Parallel()
	own := karpenterDeployment()
	own.Namespace, own.Name = lifeboatNamespace, lifeboatController
	own.Spec.Template.Spec.Containers[0].Args = []string{"controller", "--lifecycle-hooks=lifeboat-*, kops-*"}
	c := cluster{WithWatch: fakeCluster(t, interceptor.Funcs{}, own)}
	reads := &doctorRun{kube: &c}
	if err := reads.readController(t.Context(), &doctor.Installation{}); err != nil {
		t.Fatal(err)
	}
	patterns := reads.hookPatterns
	for _, tc := range []struct {
		patterns []string
		hook     string
		want     bool
	}{
		{nil, "lifeboat-launch", true}, {nil, "kops-warmpool", false},
		{patterns, "lifeboat-launch", true}, {patterns, "kops-warmpool", true}, {patterns, "drain", false},
	} {
		d := &doctorRun{hookPatterns: tc.patterns}
		if got := d.answered(tc.hook); got != tc.want {
			t.Errorf("%q with patterns %q: %t", tc.hook, tc.patterns, got)
		}
	}
}

func TestMemberFindings(t *testing.T) {
	t.Parallel()
	tainted := node("c", "aws:///us-east-1a/i-0ccccccc")
	tainted.Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule}}
	nodes := []corev1.Node{*node("a", "aws:///us-east-1a/i-0aaaaaaa"), *node("b", "aws:///us-east-1a/i-0bbbbbbb"), *tainted, *node("d", "")}
	for _, tc := range []struct {
		name, id, state string
		want            []string
	}{
		{"in service", "i-0aaaaaaa", "InService", []string{}},
		{"joined from the pool", "i-0aaaaaaa", "Warmed:Running", []string{"warning node-of-warm-instance"}},
		{"joined while it was warming", "i-0aaaaaaa", "Warmed:Pending:Wait", []string{"warning node-of-warm-instance"}},
		{"leaves the pool for good", "i-0aaaaaaa", "Warmed:Terminating:Wait", []string{}},
		{"joining without a taint", "i-0bbbbbbb", "Pending:Wait", []string{"warning startup-taint-missing"}},
		{"joining with one", "i-0ccccccc", "Pending:Wait", []string{}},
		{"no node", "i-0eeeeeee", "Warmed:Stopped", []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := seen(func(g *seenGroup) {
				g.there.Instances = []nodegroup.Instance{{ID: tc.id, State: tc.state, At: lifecycle.Read(tc.state)}}
			})
			if diff := cmp.Diff(tc.want, ids(memberFindings(g, nodes))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetadataFindings(t *testing.T) {
	t.Parallel()
	plain := []seenGroup{seen(func(g *seenGroup) { g.there.Hooks = nil })}
	hooked := []seenGroup{seen(func(*seenGroup) {})}
	for _, tc := range []struct {
		name   string
		access metadataAccess
		groups []seenGroup
		want   []string
	}{
		{"kept from pods", metadataAccess{node: "a", tokens: true, hops: 1}, hooked, []string{}},
		{"no token", metadataAccess{node: "a", hops: 1}, plain, []string{"warning metadata-open-to-pods"}},
		{"two hops, no launch hook", metadataAccess{node: "a", tokens: true, hops: 2}, plain, []string{"info metadata-open-to-pods"}},
		{"two hops, and a launch hook", metadataAccess{node: "a", tokens: true, hops: 2}, hooked, []string{"warning metadata-open-to-pods"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, ids(metadataFindings([]metadataAccess{tc.access}, tc.groups))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDoctorReadsMetadataOptions(t *testing.T) {
	t.Parallel()
	e := newBrokenAccount(t)
	e.group(autoscaling.Group{Name: "nodes-a", Max: 3, Hooks: []autoscaling.Hook{
		{Name: "lifeboat-launch", Transition: autoscaling.Launching, Heartbeat: 10 * time.Minute},
		{Name: "lifeboat-terminate", Transition: autoscaling.Leaving, DefaultResult: autoscaling.Continue, Heartbeat: 5 * time.Minute},
	}})
	var objects []client.Object
	for name, options := range map[string]ec2.MetadataOptions{
		"closed": {Tokens: "required", HopLimit: 1}, "far": {Tokens: "required", HopLimit: 2}, "free": {HopLimit: 1}, "off": {Endpoint: "disabled"},
	} {
		made, err := e.server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Metadata: options})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.server.States.AutoScaling.Attach("nodes-a", made[0].ID, autoscaling.InService); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, node(name, "aws:///us-east-1a/"+made[0].ID))
	}
	e.cluster = fakeCluster(t, interceptor.Funcs{}, objects...)
	r := e.doctor()
	for _, want := range []string{"nodes far  metadata-open-to-pods\n    metadata tokens reach beyond the host", "nodes free  metadata-open-to-pods\n    the metadata service requires no token"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s%s", want, r.out, r.err)
		}
	}
	if r.code != ExitOK || strings.Contains(r.out, "closed") || strings.Contains(r.out, "nodes off") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestRefusedAnswerFindings(t *testing.T) {
	t.Parallel()
	refused := func(ago time.Duration, drill bool) v1beta1.Notice {
		n := spotNotice("x", ago)
		n.Kind, n.Drill, n.Description = notice.KindLifecycleActionFailure, drill, "nodeup was refused"
		return n
	}
	for _, tc := range []struct {
		name    string
		notices []v1beta1.Notice
		want    []string
	}{
		{"none", []v1beta1.Notice{spotNotice("x", time.Minute)}, []string{}},
		{"one of late", []v1beta1.Notice{spotNotice("x", time.Minute), refused(time.Hour, false)}, []string{"warning answers-refused"}},
		{"two about one instance", []v1beta1.Notice{refused(2*time.Hour, false), refused(time.Hour, false)}, []string{"warning answers-refused"}},
		{"long ago", []v1beta1.Notice{refused(25*time.Hour, false)}, []string{}},
		{"a drill", []v1beta1.Notice{refused(time.Hour, true)}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			all := refusedFindings(noticesOf([]v1beta1.Interruption{*interruption(tc.notices...)}), clock)
			if diff := cmp.Diff(tc.want, ids(all)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if len(all) > 0 && (!strings.Contains(all[0].Problem, "nodeup was refused") || !strings.Contains(all[0].Object, instanceA)) {
				t.Errorf("%+v", all[0])
			}
		})
	}
}

// Without a trail no notice tells of a refused answer, and CloudTrail's event history has it.
func TestDoctorReadsEventHistory(t *testing.T) {
	e := newBrokenAccount(t)
	e.group(autoscaling.Group{Name: "nodes-a", Max: 3, Tags: map[string]string{"kubernetes.io/cluster/prod": "owned"}})
	e.group(autoscaling.Group{Name: "of-another", Max: 3})
	refuse := func(group string) string {
		id := e.member(group, autoscaling.InService)
		e.server.States.EC2.SetSystemTags(id, map[string]string{"aws:autoscaling:groupName": group})
		_, err := awsas.NewFromConfig(emulatortest.Config(e.server)).CompleteLifecycleAction(t.Context(), &awsas.CompleteLifecycleActionInput{
			AutoScalingGroupName: &group, LifecycleHookName: aws.String("up"), LifecycleActionResult: aws.String("CONTINUE"), InstanceId: &id,
		})
		if err == nil {
			t.Fatal("no action is active, and the call was not refused")
		}
		return id
	}
	ours, theirs := refuse("nodes-a"), refuse("of-another")
	e.server.States.CloudTrail.SetDelay(0)
	const id, lookups = "answers-refused", "LookupEvents"
	if r := e.doctor(); strings.Contains(r.out, id) || e.server.Gate.Calls("cloudtrail", lookups) != 0 {
		t.Errorf("of a group without a hook:\n%s", r.out)
	}
	if err := e.server.States.AutoScaling.PutHook(autoscaling.Hook{Name: "up", Group: "nodes-a", Transition: autoscaling.Launching, Heartbeat: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if r := e.doctor(); !strings.Contains(r.out, id) || !strings.Contains(r.out, ours) || strings.Contains(r.out, theirs) || !strings.Contains(r.out, "the caller is arn:aws:iam::") {
		t.Errorf("refused for %s, and for %s of another cluster:\n%s%s", ours, theirs, r.out, r.err)
	}
	e.server.Gate.Deny("cloudtrail", lookups)
	if r := e.doctor(); strings.Contains(r.out, id) || !strings.Contains(r.out+r.err, "grant cloudtrail:LookupEvents") {
		t.Errorf("without the permission:\n%s%s", r.out, r.err)
	}
}

func TestDoctorChecksGroups(t *testing.T) {
	e := newBrokenAccount(t)
	e.group(autoscaling.Group{Name: "nodes-a", Max: 3, WarmPool: &autoscaling.WarmPool{}})
	e.group(autoscaling.Group{Name: "by-tag", Max: 3, Tags: map[string]string{"kubernetes.io/cluster/prod": "owned"}})
	e.group(autoscaling.Group{Name: "by-node", Max: 3})
	e.group(autoscaling.Group{Name: "of-another", Max: 3, Tags: map[string]string{"kubernetes.io/cluster/test": "owned"}})
	id := e.member("by-node", autoscaling.InService)
	adopted := &v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{AutoScalingGroup: "nodes-a"}}
	adopted.Name = "nodes"
	e.cluster = fakeCluster(t, interceptor.Funcs{}, []client.Object{adopted, node("n", "aws:///us-east-1a/"+id)}...)
	r := e.doctor()
	if r.code != 1 {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	golden(t, "doctor-groups.golden", r.out)

	// The hooks exist, but the rule matches other groups only.
	e.want(e.aws("setup", "--yes", "--groups", "nodes-a,by-tag"), ExitOK)
	e.want(e.aws("setup", "--yes", "--groups", "by-node"), ExitOK)
	r = e.doctor()
	if r.code != ExitOK || !strings.Contains(r.out, "group nodes-a and by-tag  group-unheard") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	e.want(e.aws("setup", "--yes", "--groups", "all"), ExitOK)
	if r = e.doctor(); r.code != ExitOK || strings.Contains(r.out, "group-unheard") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}

	e.server.Gate.Deny("autoscaling", "*")
	if r = e.doctor(); r.code != exitIncomplete || !strings.Contains(r.out, "groups-not-looked-at") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestGuideListsGroupFindings(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{partNotChecked, groupsNotSeen, answersRefused, warmNode, startupTaintLess, metadataOpen} {
		if !strings.Contains(string(guide), "</a>`"+id+"` |") {
			t.Errorf("docs/guides/doctor.md says nothing of %s", id)
		}
	}
}
