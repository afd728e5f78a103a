package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

func TestParseGroupScenarios(t *testing.T) {
	sc, err := Parse("x.txtar", []byte(archive(`
group web
group pool desired=2 min=1 max=4 type=c5.large zones=us-east-1a,us-east-1b spot rebalance warm=1 pool=running reuse hooks=launch launch-time=40s terminate-time=30s boot=3s prepare=4s agent=silent labels=a=b taints=k=v:NoSchedule
wait node a launched
wait instance a is InService within 30s
scale pool to 3
by 30s group pool in-service=3 warm>=1
always group pool warm-nodes=0 early-nodes=0
expect instance a was Pending:Wait
expect instance a answered=2
expect every hook of pool answered
refresh web
balance pool
detach a
terminate a
terminate a by=autoscaler
`)))
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, s := range sc.Steps {
		got = append(got, s.Do)
	}
	want := []any{
		GroupStatement{
			Name: "web", Type: "m5.large", Max: 10, Desired: 1, Hooks: HooksBoth, Agent: AgentAnswers,
			LaunchTime: 5 * time.Minute, LeaveTime: 5 * time.Minute,
		},
		GroupStatement{
			Name: "pool", Min: 1, Max: 4, Desired: 2, Type: "c5.large", Zones: []string{"us-east-1a", "us-east-1b"}, Spot: true, Rebalance: true,
			Labels: "a=b", Taints: "k=v:NoSchedule", Pool: PoolRunning, Warm: 1, Reuse: true, Hooks: HooksLaunch,
			LaunchTime: 40 * time.Second, LeaveTime: 30 * time.Second, Boot: 3 * time.Second, Prepare: 4 * time.Second, Agent: AgentSilent,
		},
		NamedStatement{Name: "a", Within: time.Minute},
		CheckStatement{Mode: CheckWait, Within: 30 * time.Second, Cond: instanceIs{Node: "a", State: "InService"}},
		ScaleStatement{Group: "pool", To: 3},
		CheckStatement{Mode: CheckBy, When: When{Offset: 30 * time.Second}, Cond: groupCounts{"pool", []groupCount{{groupInService, "=", 3}, {groupWarm, ">=", 1}}}},
		AlwaysStatement{groupCounts{"pool", []groupCount{{warmNodes, "=", 0}, {earlyNodes, "=", 0}}}},
		CheckStatement{Cond: instanceIs{Node: "a", State: "Pending:Wait", Was: true}},
		CheckStatement{Cond: answerCount{"a", "=", 2}},
		CheckStatement{Cond: hooksEnded{"pool"}},
		RefreshStatement{Group: "web"},
		BalanceStatement{Group: "pool"},
		DetachStatement{Node: "a"},
		TerminateStatement{Node: "a", By: ByEC2},
		TerminateStatement{Node: "a", By: ByAutoscaler},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestGroupErrorsSayWhatToWrite(t *testing.T) {
	for line, want := range map[string]string{
		"group":                             "a group needs a name; write: group NAME",
		"group Web":                         `group name "Web" is not lower-case letters, digits and -`,
		"group w\ngroup w":                  "there is a group w already",
		"group w desired=4 max=3":           "a group of min=0 max=3 cannot have desired=4",
		"group w reuse":                     "only a group with a warm pool can reuse instances",
		"group w agent=none prepare=3s":     "the agent does the preparation",
		"group w warm=many":                 `"many" is no number: write one from 0 to 1000`,
		"scale w to 3":                      `there is no group "w" yet: begin with group w`,
		"group w\nscale w 3":                "scale takes a group and a number; write: scale GROUP to 2",
		"refresh":                           "refresh takes one group",
		"balance a b":                       "balance takes one group",
		"detach a":                          `there is no node "a" yet`,
		"node a\nterminate a by=group":      "there is no group: begin with one, or leave by=group out",
		"expect group w in-service=2":       `there is no group "w" yet`,
		"group w\nexpect group w cats=2":    `unknown value "cats": write in-service,`,
		"group w\nexpect group w in-use":    `"in-use" is no count: write one such as in-service=2`,
		"node a\nexpect instance a is Dead": `unknown lifecycle state "Dead": write Pending,`,
		"node a\nexpect instance a Standby": "instance goes with a node and its state",
		"group w\nexpect every hook of w":   "every hook goes with a group, as in every hook of web answered",
		"wait node c launched":              "or make a group",
	} {
		if _, err := Parse("x", []byte(archive(line+"\n"))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to contain %q", line, err, want)
		}
	}
}

// grouped is a world with two instances of a group, a and b.
func grouped() *World {
	w := NewWorld()
	for _, name := range []string{"a", "b"} {
		w.Machine("i-"+name, false)
		w.Provisioned(at(-30), "the group web", "i-"+name, "node-"+name, "")
		w.Name(name)
	}
	return w
}

// pass moves an instance through states, a second apart, and returns the moments.
func pass(w *World, from float64, instance string, states ...string) []Moment {
	var out []Moment
	for i, state := range states {
		out = append(out, w.Lifecycle(Lifecycle{Time: at(from + float64(i)), Instance: instance, Group: "web", State: state})...)
	}
	return out
}

func checkG(t *testing.T, w *World, text string, want bool) {
	t.Helper()
	checkWith(t, w, &parser{nodes: map[string]bool{"a": true, "b": true}, groups: map[string]bool{"web": true}}, text, want)
}

func TestInstancesAreCountedByState(t *testing.T) {
	w := grouped()
	moments := pass(w, 0, "i-a", "Pending", "Pending:Wait", "Pending:Proceed", "InService")
	moments = append(moments, pass(w, 4, "i-b", "Warmed:Pending", "Warmed:Pending:Wait", "Warmed:Pending:Proceed", "Warmed:Stopped")...)
	want := []string{
		"a|on its way into service (Pending)", "a|held by a hook (Pending:Wait)", "a|in service (InService)",
		"b|on its way into the warm pool (Warmed:Pending)", "b|held by a hook (Warmed:Pending:Wait)", "b|in the warm pool (Warmed:Stopped)",
	}
	if diff := cmp.Diff(want, texts(moments)); diff != "" {
		t.Errorf("moments (-want +got):\n%s", diff)
	}
	checkG(t, w, "group web in-service=1 warm=1 joining=0 leaving=0 warm-nodes=0", true)
	checkG(t, w, "instance b is Warmed:Stopped", true)
	checkG(t, w, "instance b was Warmed:Pending:Wait", true)
	checkG(t, w, "instance b was InService", false)
	moments = pass(w, 9, "i-b", "Pending")
	if diff := cmp.Diff([]string{"b|taken out of the warm pool, on its way into service (Pending)"}, texts(moments)); diff != "" {
		t.Errorf("moments (-want +got):\n%s", diff)
	}
	checkG(t, w, "group web joining=1 warm=0", true)
	pass(w, 10, "i-a", "Terminating", "Terminating:Retained")
	checkG(t, w, "group web retained=1 leaving=0", true)
	if !w.nodes["a"].interrupted || w.nodes["b"].interrupted {
		t.Error("the one that the group ends is not judged, or the other is")
	}
}

func TestWarmInstanceNodeIsDetected(t *testing.T) {
	startup := corev1.Taint{Key: v1beta1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule}
	w := grouped()
	pass(w, 0, "i-b", "Warmed:Pending")
	w.Node(at(1), upNode("node-b", startup), false)
	checkG(t, w, "group web warm-nodes=1 early-nodes=0", true)
	w.Node(at(2), upNode("node-b"), true)
	checkG(t, w, "group web warm-nodes=0", true)

	pass(w, 3, "i-b", "Warmed:Stopped", "Pending")
	w.Node(at(5), upNode("node-b", startup), false)
	checkG(t, w, "group web early-nodes=0 warm-nodes=0", true)
	checkG(t, w, "node b ready", false) // nothing can run on it yet
	w.Node(at(6), upNode("node-b"), false)
	checkG(t, w, "group web early-nodes=1", true)
	pass(w, 7, "i-b", "InService")
	checkG(t, w, "group web early-nodes=0", true)
	checkG(t, w, "node b ready", true)

	// Back into the pool: its pods leave it first, which is in order.
	pass(w, 8, "i-b", "Warmed:Pending:Wait")
	checkG(t, w, "group web warm-nodes=0 early-nodes=0", true)
	pass(w, 9, "i-b", "Warmed:Stopped")
	checkG(t, w, "group web warm-nodes=1", true)
}

func TestHooksAreCheckedByResult(t *testing.T) {
	w := grouped()
	checkG(t, w, "every hook of web answered", false)
	fired := []HookExecution{{Instance: "i-a", Group: "web", Hook: "launch", Held: at(1)}}
	if moments := w.HookExecutions(fired); moments != nil {
		t.Errorf("moments %v of a hook that still holds the instance", texts(moments))
	}
	checkG(t, w, "every hook of web answered", false)
	end := func(result string, by HookExecutionEnd) {
		t.Helper()
		next := append([]HookExecution(nil), fired...)
		next[len(next)-1].Ended, next[len(next)-1].Result, next[len(next)-1].By = at(4), result, by
		fired = next
	}
	end("CONTINUE", EndedByAnswer)
	if diff := cmp.Diff([]string{"a|hook launch: CONTINUE after 3 s"}, texts(append(w.HookExecutions(fired), w.HookExecutions(fired)...))); diff != "" {
		t.Errorf("moments (-want +got):\n%s", diff)
	}
	checkG(t, w, "every hook of web answered", true)
	checkG(t, w, "instance a answered=1", true)
	fired = append(fired, HookExecution{Instance: "i-b", Group: "web", Hook: "launch", Held: at(2)})
	end("ABANDON", EndedByTimeout)
	if moments := texts(w.HookExecutions(fired)); len(moments) != 1 || moments[0] != "b|hook launch: no answer before its timeout: ABANDON" {
		t.Errorf("moments %v", moments)
	}
	checkG(t, w, "every hook of web answered", false)
	checkG(t, w, "group web timed-out=1 abandoned=1 answered=1", true)
}

func TestNodeGroupSpecIsApplied(t *testing.T) {
	w := grouped()
	checkG(t, w, "nodegroup web ready", false)
	g := &v1beta1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if moments := w.NodeGroup(at(0), g, false); moments != nil {
		t.Errorf("moments %v of a NodeGroup without conditions", texts(moments))
	}
	setReady := func(status metav1.ConditionStatus, message string) []string {
		g = g.DeepCopy()
		meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionReady, Status: status, Reason: "X", Message: message})
		return texts(w.NodeGroup(at(1), g, false))
	}
	moments := append(setReady(metav1.ConditionFalse, "no hook"), setReady(metav1.ConditionFalse, "no hook")...)
	checkG(t, w, "nodegroup web ready", false)
	moments = append(moments, setReady(metav1.ConditionTrue, "all is well")...)
	checkG(t, w, "nodegroup web ready", true)
	checkG(t, w, "nodegroup web hooks-ready", false)
	moments = append(moments, texts(w.NodeGroup(at(2), g, true))...)
	checkG(t, w, "nodegroup web ready", false)
	want := []string{"|NodeGroup web: not ready: no hook", "|NodeGroup web: ready: all is well", "|NodeGroup web is deleted"}
	if diff := cmp.Diff(want, moments); diff != "" {
		t.Errorf("moments (-want +got):\n%s", diff)
	}
}
