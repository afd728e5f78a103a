package replacement

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestOrderDecision(t *testing.T) {
	t.Parallel()
	wanted := metav1.NewMicroTime(noon.Add(-time.Minute))
	tests := map[string]struct {
		change func(*Facts)
		reason string
		say    string // part of the message
	}{
		"a node of Karpenter's with pods and no room elsewhere": {func(*Facts) {}, ReasonOrdered, "created NodeClaim web-lb-0a1b2c3d4e5f60718 from NodePool web for 2 pods (any but m5.large)"},
		"no pod has to leave":                 {func(f *Facts) { f.Movable = 0 }, ReasonNoPods, ""},
		"the instance is gone":                {func(f *Facts) { f.InstanceGone = true }, ReasonInstanceGone, ""},
		"Karpenter is not installed":          {func(f *Facts) { f.Installed = false }, ReasonNoKarpenter, "Karpenter is not installed"},
		"a node of an Auto Scaling group":     {func(f *Facts) { f.Karpenters = false }, ReasonNoNodeClaim, ""},
		"a node whose NodeClaim is not there": {func(f *Facts) { f.Interrupted = nil }, ReasonNoNodeClaim, ""},
		"a node that is not there":            {func(f *Facts) { f.Node = nil }, ReasonNoNodeClaim, ""},
		"a NodeClaim that is being deleted":   {func(f *Facts) { f.Interrupted.Deleting = true }, ReasonDeleting, "already deleting NodeClaim web-x7k2p"},
		"a NodeClaim that stands alone":       {func(f *Facts) { delete(f.Interrupted.Labels, LabelNodePool) }, ReasonStandalone, ""},
		"a NodePool that is gone":             {func(f *Facts) { f.Pool = nil }, ReasonNoPool, ""},
		"a NodePool that is being deleted":    {func(f *Facts) { f.Pool.Deleting = true }, ReasonPoolDeleting, ""},
		"a static NodePool":                   {func(f *Facts) { f.Pool = mustPool(set(int64(3), "spec", "replicas")) }, ReasonStatic, "fixed number"},
		"a NodePool that is not Ready":        {func(f *Facts) { f.Pool.Ready = false }, ReasonPoolNotReady, "kubectl describe nodepool web"},
		"a NodeClass that is not Ready":       {func(f *Facts) { f.Class.Ready = false }, ReasonClassUnready, "EC2NodeClass default"},
		"a NodeClass that is gone":            {func(f *Facts) { f.Class = nil }, ReasonClassUnready, ""},
		"a NodeClass of another provider":     {func(f *Facts) { f.Class, f.Pool.ClassGroup = nil, "karpenter.kwok.sh" }, ReasonOrdered, ""},
		"room on another node":                {func(f *Facts) { f.Others = []Other{other("b", "2")} }, ReasonRoom, "the pods fit on b"},
		"room on two together":                {func(f *Facts) { f.Others = []Other{other("b", "1"), other("c", "1")} }, ReasonRoom, "on b, c"},
		"too little room":                     {func(f *Facts) { f.Others = []Other{other("b", "1")} }, ReasonOrdered, ""},
		"limits that it would exceed":         {func(f *Facts) { f.Pool = mustPool(set("1", "spec", "limits", "cpu")) }, ReasonLimits, "would have 1600m of cpu, and its limit is 1"},
		"limits that it would exceed with others": {func(f *Facts) {
			f.Pool = mustPool(set("5", "spec", "limits", "cpu"))
			f.Claims = []*Claim{otherClaim("4")}
		}, ReasonLimits, "5600m"},
		"limits that it would not exceed": {func(f *Facts) {
			f.Pool = mustPool(set("6", "spec", "limits", "cpu"))
			f.Claims = []*Claim{otherClaim("4")}
		}, ReasonOrdered, ""},
		"a limit of nodes": {func(f *Facts) {
			f.Pool = mustPool(set("2", "spec", "limits", "nodes"), set("2", "status", "resources", "nodes"))
		}, ReasonLimits, "3 of nodes"},
		"three others without an instance":       {func(f *Facts) { f.Unlaunched = 3 }, ReasonQueued, "when an earlier one has its instance"},
		"two others without an instance":         {func(f *Facts) { f.Unlaunched = 2 }, ReasonOrdered, ""},
		"a turn that does not come in time":      {func(f *Facts) { f.Unlaunched, f.Was = 3, &Status{StartTime: &wanted} }, ReasonCrowded, "took all slots for 30s"},
		"a turn for which there is time":         {func(f *Facts) { f.Unlaunched, f.Was, f.Deadline = 3, &Status{StartTime: &wanted}, nil }, ReasonQueued, ""},
		"a NodeClaim of its own, not noted":      {func(f *Facts) { f.Existing = our() }, ReasonOrdered, ""},
		"one that has its instance, not noted":   {func(f *Facts) { f.Existing = our(launched) }, ReasonLaunched, ""},
		"one of its own that is going":           {func(f *Facts) { f.Existing = our(deleting) }, ReasonVanished, ""},
		"another owner's NodeClaim of that name": {func(f *Facts) { f.Existing = our(func(c *Claim) { c.Labels = nil }) }, ReasonNameTaken, "not Lifeboat's"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := facts(test.change)
			d := Decide(f)
			if d.Status.Reason != test.reason || !strings.Contains(d.Status.Message, test.say) {
				t.Errorf("%s: %s", d.Status.Reason, d.Status.Message)
			}
			if orders := test.reason == ReasonOrdered && f.Existing == nil; (d.Order != nil) != orders {
				t.Errorf("orders %v", d.Order)
			}
			if d.Status.StartTime == nil || d.Status.Phase == "" {
				t.Errorf("status %+v", d.Status)
			}
		})
	}
}

func otherClaim(cpu string) *Claim {
	return &Claim{
		Name: "web-lb-other", Labels: map[string]string{LabelNodePool: "web", v1beta1.LabelReplacesInstance: "i-other"},
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}
}

func TestNodeClaimFromTemplate(t *testing.T) {
	t.Parallel()
	got := Decide(facts()).Order
	want := map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{
			"name": "web-lb-0a1b2c3d4e5f60718",
			"labels": map[string]any{
				LabelNodePool: "web", "team": "shop", "example.com/tier": "silver", "lifeboat.dev/replaces-instance": instance,
			},
			"annotations": map[string]any{
				annotationHash: "4711", annotationHashVersion: "v3", "note": "n",
				"karpenter.sh/do-not-disrupt": "true", "lifeboat.dev/interruption": instance,
			},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "web", "uid": "pool-uid", "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"expireAfter": "720h", "terminationGracePeriod": "10m",
			"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
			"taints":       []any{map[string]any{"key": "shop", "effect": "NoSchedule"}},
			"requirements": []any{
				map[string]any{"key": labelCapacityType, "operator": "In", "values": []any{"spot", "on-demand"}},
				map[string]any{"key": "example.com/tier", "operator": "In", "values": []any{"gold", "silver"}},
				map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "NotIn", "values": []any{spotType}},
			},
			"resources": map[string]any{"requests": map[string]any{"cpu": "1600m", "memory": "768Mi", "pods": "3"}},
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("NodeClaim (-want +got):\n%s", diff)
	}
}

func requirementsOf(t *testing.T, d Decision) []string {
	t.Helper()
	if d.Order == nil {
		t.Fatalf("nothing is ordered: %+v", d.Status)
	}
	list, _, err := unstructured.NestedSlice(d.Order.Object, "spec", "requirements")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range list[2:] { // the template's come first
		m := r.(map[string]any)
		line := m["key"].(string) + " " + m["operator"].(string)
		values, _ := m["values"].([]any)
		for _, v := range values {
			line += " " + v.(string)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestNodeClaimRequirements(t *testing.T) {
	t.Parallel()
	const (
		notType = corev1.LabelInstanceTypeStable + " NotIn " + spotType
		notZone = corev1.LabelTopologyZone + " NotIn " + zoneA
		inZone  = corev1.LabelTopologyZone + " In " + zoneA
	)
	only := func(key string, values ...any) func(*Facts) {
		return func(f *Facts) {
			f.Pool = mustPool(set([]any{
				map[string]any{"key": labelCapacityType, "operator": "In", "values": []any{"spot"}},
				map[string]any{"key": key, "operator": "In", "values": values},
			}, "spec", "template", "spec", "requirements"))
		}
	}
	pods := func(change ...func(*corev1.Pod)) func(*Facts) {
		return func(f *Facts) { f.Pods = []*corev1.Pod{pod("web-1", "1", change...), pod("web-2", "1")} }
	}
	try := func(n int32) func(*Facts) {
		return func(f *Facts) { f.Was = &Status{Phase: v1beta1.ReplacementRetrying, Tries: n - 1} }
	}
	tests := map[string]struct {
		change []func(*Facts)
		want   []string
	}{
		"spot: any type but its own":                                  {nil, []string{notType}},
		"a template with that type only: any zone but its own":        {[]func(*Facts){only(corev1.LabelInstanceTypeStable, spotType)}, []string{notZone}},
		"a template with another type too":                            {[]func(*Facts){only(corev1.LabelInstanceTypeStable, spotType, "c5.large")}, []string{notType}},
		"a volume holds it in its zone":                               {[]func(*Facts){pods(withVolume)}, []string{inZone, notType}},
		"that type only, and a volume: nothing is excluded":           {[]func(*Facts){only(corev1.LabelInstanceTypeStable, spotType), pods(withVolume)}, []string{inZone}},
		"the pod wants that type":                                     {[]func(*Facts){pods(selecting(corev1.LabelInstanceTypeStable, spotType))}, []string{corev1.LabelInstanceTypeStable + " In " + spotType, notZone}},
		"the pod wants an architecture":                               {[]func(*Facts){pods(selecting(corev1.LabelArchStable, "amd64"))}, []string{corev1.LabelArchStable + " In amd64", notType}},
		"the pod wants a label that the template gives":               {[]func(*Facts){pods(selecting("team", "shop"))}, []string{notType}},
		"the pod wants a value of the NodePool's own":                 {[]func(*Facts){pods(selecting("example.com/tier", "silver"))}, []string{"example.com/tier In silver", notType}},
		"the pod wants its host":                                      {[]func(*Facts){pods(selecting(corev1.LabelHostname, "a"))}, []string{notType}},
		"of several terms, the one that the node meets":               {[]func(*Facts){pods(inTerms("eu-west-1a", zoneA))}, []string{inZone, notType}},
		"second try: any zone but its own":                            {[]func(*Facts){try(2)}, []string{notZone}},
		"third try: whatever there is":                                {[]func(*Facts){try(3)}, nil},
		"a planned stop excludes nothing":                             {[]func(*Facts){func(f *Facts) { f.Kind = notice.KindScheduledChange }}, nil},
		"at least so many types: not one less":                        {[]func(*Facts){atLeastTypes(2)}, []string{notZone}},
		"nothing is known of the interrupted node, so nothing is out": {[]func(*Facts){func(f *Facts) { f.Node.Labels = nil; f.Interrupted.Labels = map[string]string{LabelNodePool: "web"} }}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, requirementsOf(t, Decide(facts(test.change...)))); diff != "" {
				t.Errorf("requirements (-want +got):\n%s", diff)
			}
		})
	}
}

func atLeastTypes(n int64) func(*Facts) {
	return func(f *Facts) {
		f.Pool = mustPool(set([]any{
			map[string]any{"key": labelCapacityType, "operator": "In", "values": []any{"spot"}},
			map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": []any{spotType, "c5.large"}, "minValues": n},
		}, "spec", "template", "spec", "requirements"))
	}
}

func inTerms(zones ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		var terms []corev1.NodeSelectorTerm
		for _, z := range zones {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{z}},
			}})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
}

func TestNamesAreStableAndShort(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pool, instance string
		nth            int
		want           string
	}{
		{"web", instance, 1, "web-lb-0a1b2c3d4e5f60718"},
		{"web", instance, 2, "web-lb-0a1b2c3d4e5f60718-2"},
		{strings.Repeat("a-very-long-pool.", 12), instance, 1, ""},
	} {
		got := Name(test.pool, test.instance, test.nth)
		if test.want != "" && got != test.want || len(got) > longestName || got != Name(test.pool, test.instance, test.nth) {
			t.Errorf("%s of %s: %q", test.instance, test.pool, got)
		}
	}
	if odd := Name("web", "I_am.odd", 1); !plainID.MatchString(strings.TrimPrefix(odd, "web-lb-")) {
		t.Errorf("an odd id: %q", odd)
	}
	if Name("web", "i-1", 1) == Name("web", "i-2", 1) {
		t.Error("two instances share a name")
	}
}

func TestUnreadableNodePoolIsRetried(t *testing.T) {
	t.Parallel()
	e := facts().QuickFacts
	long := metav1.NewMicroTime(noon.Add(-time.Minute))
	if s := e.ReadFailed(errOdd, true); s.Phase != v1beta1.ReplacementQueued || s.Reason != ReasonUnreadable {
		t.Errorf("at first: %+v", s)
	}
	if s := e.ReadFailed(errOdd, false); s.Phase != v1beta1.NoReplacement {
		t.Errorf("not allowed: %+v", s)
	}
	e.Was = &Status{StartTime: &long}
	if s := e.ReadFailed(errOdd, true); s.Phase != v1beta1.NoReplacement || !strings.Contains(s.Message, errOdd.Error()) {
		t.Errorf("after a minute: %+v", s)
	}
}
