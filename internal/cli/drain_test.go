package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// requestNotice is a request of carol that stands.
func requestNotice() v1beta1.Notice {
	n := (&drainFlags{note: "new AMI"}).notice("carol", clock.Add(-time.Minute))
	n.ID = "requested-1"
	return n
}

func TestDrainRequestsAndWithdraws(t *testing.T) {
	over := interruption(spotNotice("n1", time.Hour))
	complete(over, 30*time.Minute, 1, 0)
	withdrawn := requestNotice()
	withdrawn.Withdrawn = true
	for name, tc := range map[string]struct {
		objects []client.Object
		args    []string
		code    int
		says    string
		notices int
		open    bool
	}{
		"a node":                     {mixedNode(), []string{"drain", nodeName, "--note", "new AMI"}, ExitOK, "drain requested by carol: ip-10-0-0-10", 1, true},
		"a node, by a time":          {mixedNode(), []string{"drain", nodeName, "--by", "10m"}, ExitOK, "the pods leave by 2026-05-11T08:24:02Z", 1, true},
		"a selection":                {database(), []string{"drain", "-l", "pool=db", "-o", "name"}, ExitOK, "interruption.lifeboat.dev/" + instanceA, 1, true},
		"an earlier interruption":    {append(mixedNode(), over), []string{"drain", nodeName}, ExitOK, "drain requested", 2, true},
		"again":                      {append(mixedNode(), interruption(requestNotice())), []string{"drain", nodeName}, ExitFailed, "is requested already", 1, true},
		"again after a withdrawal":   {append(mixedNode(), interruption(withdrawn)), []string{"drain", nodeName}, ExitOK, "drain requested", 2, true},
		"a selection without nodes":  {mixedNode(), []string{"drain", "-l", "pool=none"}, ExitFailed, "no node has the labels pool=none", 0, false},
		"no node":                    {mixedNode(), []string{"drain"}, ExitUsage, "or -l SELECTOR", 0, false},
		"nodes and a selection":      {mixedNode(), []string{"drain", nodeName, "-l", "a=b"}, ExitUsage, "remove one of them", 0, false},
		"a time in the past":         {mixedNode(), []string{"drain", nodeName, "--by", "-1m"}, ExitUsage, "invalid --by", 0, false},
		"withdraw":                   {append(mixedNode(), interruption(requestNotice())), []string{"uncordon", nodeName}, ExitOK, "withdrawn by carol", 1, false},
		"withdraw without a request": {append(mixedNode(), interruption(spotNotice("n1", time.Minute))), []string{"uncordon", nodeName}, ExitFailed, "no drain of ip-10-0-0-10.ec2.internal is requested", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster(t, withUser("carol"), tc.objects...)
			r := (&harness{t: t, cluster: c}).run(t.Context(), tc.args...)
			if r.code != tc.code || !strings.Contains(r.out+r.err, tc.says) {
				t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
			}
			var in v1beta1.Interruption
			if err := c.Get(t.Context(), client.ObjectKey{Name: instanceA}, &in); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if len(in.Spec.Notices) != tc.notices || (openRequest(&in) >= 0) != tc.open {
				t.Errorf("notices %+v", in.Spec.Notices)
			}
		})
	}
}

func TestDrainWritesWhoAsked(t *testing.T) {
	n := (&drainFlags{note: "new AMI", by: 10 * time.Minute}).notice("carol", clock)
	if n.Description != "requested by carol: new AMI" || n.Source != notice.SourceUser || n.Deadline.Type != v1beta1.DeadlineEstimated {
		t.Errorf("%+v", n)
	}
}

func TestApproveSelects(t *testing.T) {
	waiting := stopping(26 * time.Hour)
	waiting.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "databases"}
	for name, tc := range map[string]struct {
		objects []client.Object
		args    []string
		code    int
		says    string
	}{
		"by label":            {database(waiting), []string{"-l", "pool=db"}, ExitOK, "approved by carol"},
		"by another label":    {database(waiting), []string{"-l", "pool=web"}, ExitFailed, "no node with the labels pool=web has an interruption"},
		"by policy":           {database(waiting), []string{"--policy", "databases"}, ExitOK, "approved by carol"},
		"by another policy":   {database(waiting), []string{"--policy", "web"}, ExitFailed, "no selected interruption waits"},
		"all that wait":       {database(waiting, draining("databases")), []string{"--all-waiting"}, ExitOK, "approved by carol"},
		"nothing waits":       {database(draining("databases")), []string{"--all-waiting"}, ExitFailed, "no selected interruption waits"},
		"an invalid selector": {database(), []string{"-l", "=="}, ExitUsage, "invalid selector"},
	} {
		c := fakeCluster(t, withUser("carol"), tc.objects...)
		r := (&harness{t: t, cluster: c}).run(t.Context(), append([]string{"approve"}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.out+r.err, tc.says) || strings.Count(r.out, "approved by") > 1 {
			t.Errorf("%s: exit code %d\n%s%s", name, r.code, r.out, r.err)
		}
	}
}

func TestNodeNamesAreCompleted(t *testing.T) {
	hit := interruption(spotNotice("n1", time.Minute))
	hit.Spec.NodeName, hit.Status.NodeName, hit.Status.Phase = otherNode, otherNode, v1beta1.PhaseDraining
	c := fakeCluster(t, withUser("carol"), append(mixedNode(), hit)...)
	for _, cmd := range []string{"plan", "explain", "approve", "hold", "release", "drain", "uncordon", "watch", "interrupt"} {
		r := (&harness{t: t, cluster: c}).run(t.Context(), "__complete", cmd, "")
		lines := strings.Split(r.out, "\n")
		if len(lines) < 2 || lines[0] != otherNode+"\tDraining" || lines[1] != nodeName {
			t.Errorf("%s: completes %q", cmd, lines)
		}
	}
	r := (&harness{t: t, cluster: c}).run(t.Context(), "__complete", "drain", nodeName, "")
	if strings.Contains(r.out, nodeName+"\n") {
		t.Errorf("a node that is given is completed again:\n%s", r.out)
	}
}

func TestStatusShowsWhatIsUnderWay(t *testing.T) {
	waiting, moving := stopping(26*time.Hour), draining("databases")
	waiting.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "databases"}
	waiting.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionApproved, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock.Add(-time.Hour)),
	}}
	moving.Status.Deadline = notice.At(clock.Add(90*time.Second), v1beta1.DeadlineHard)
	moving.Status.Drain.PodCounts = v1beta1.PodCounts{Total: 4, Moved: 1, Waiting: 2, Leaving: 1}
	moving.Spec.Hold = say("bob", time.Minute, "backup")
	c := fakeCluster(t, withUser("carol"), append(database(waiting, moving), newInstallation().objects()...)...)
	h := &harness{t: t, cluster: c}
	r := h.run(t.Context(), "status")
	if r.code != exitNeedsPerson {
		t.Errorf("exit code %d", r.code)
	}
	golden(t, "status.golden", r.out+r.err)
	golden(t, "status-json.golden", h.run(t.Context(), "status", "-o", "json").out)
}

func TestStatusExitCodes(t *testing.T) {
	well := (&harness{t: t, cluster: fakeCluster(t, withUser("carol"), append(mixedNode(), newInstallation().objects()...)...)}).run(t.Context(), "status")
	if well.code != ExitOK || !strings.Contains(well.out, "Nothing waits for a person.") {
		t.Errorf("exit code %d\n%s%s", well.code, well.out, well.err)
	}
	missing := (&harness{t: t, cluster: fakeCluster(t, withUser("carol"), mixedNode()...)}).run(t.Context(), "status")
	if missing.code != exitBroken || !strings.Contains(missing.out, "Lifeboat is not installed") {
		t.Errorf("exit code %d\n%s%s", missing.code, missing.out, missing.err)
	}
}

// A script that reads the exit code goes on after the wiring is corrected.
func TestStatusDropsRepairedWiring(t *testing.T) {
	in := interruption(spotNotice("n1", time.Hour))
	complete(in, 50*time.Minute, 3, 0)
	for _, c := range []struct {
		status metav1.ConditionStatus
		reason string
		code   int
	}{
		{metav1.ConditionTrue, v1beta1.ReasonMissingFromQueue, exitNeedsPerson},
		{metav1.ConditionFalse, v1beta1.ReasonWiringRepaired, ExitOK},
	} {
		in.Status.Conditions = []metav1.Condition{{
			Type: v1beta1.ConditionWiringDegraded, Status: c.status, Reason: c.reason,
			LastTransitionTime: metav1.NewTime(clock.Add(-time.Hour)), Message: "SpotInterruption was not delivered",
		}}
		objects := append(mixedNode(), newInstallation().objects()...)
		r := (&harness{t: t, cluster: fakeCluster(t, withUser("carol"), append(objects, in.DeepCopy())...)}).run(t.Context(), "status")
		if r.code != c.code || strings.Contains(r.out, "was not delivered") != (c.code == exitNeedsPerson) {
			t.Errorf("%s: exit code %d\n%s%s", c.reason, r.code, r.out, r.err)
		}
	}
}
