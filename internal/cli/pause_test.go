package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// pauseBy is a pause of bob that began an hour ago.
func pauseBy(pool string, stops v1beta1.PauseScope, left time.Duration) *v1beta1.Pause {
	p := &v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: (&pauseFlags{pool: pool}).name()}, Spec: v1beta1.PauseSpec{
		By: "bob", NodePool: pool, Stops: stops, Note: "incident",
		StartTime: metav1.NewTime(clock.Add(-time.Hour)), Until: metav1.NewTime(clock.Add(left)),
	}}
	return p
}

func TestPauseAndResume(t *testing.T) {
	running, over := pauseBy("", v1beta1.PauseDeferrable, time.Hour), pauseBy("", v1beta1.PauseDeferrable, -time.Minute)
	for name, tc := range map[string]struct {
		has   *v1beta1.Pause
		args  []string
		code  int
		says  string
		pause string // the object that is there afterwards: its stops, until and author
	}{
		"cluster":            {nil, []string{"pause", "--note", "incident"}, ExitOK, "carol paused the cluster (incident) until 2026-05-11T10:14:02Z", "cluster Deferrable 10:14 carol"},
		"everything":         {nil, []string{"pause", "--all", "--for", "30m"}, ExitOK, "pods on instances that AWS takes are lost", "cluster Everything 08:44 carol"},
		"pool":               {nil, []string{"pause", "--nodepool", "web"}, ExitOK, "`lifeboat resume --nodepool web`", "nodepool-web Deferrable 10:14 carol"},
		"again extends":      {running, []string{"pause", "--for", "3h"}, ExitOK, "until 2026-05-11T11:14:02Z", "cluster Deferrable 11:14 carol"},
		"name":               {nil, []string{"pause", "-o", "name"}, ExitOK, "pause.lifeboat.dev/cluster", "cluster Deferrable 10:14 carol"},
		"too long":           {nil, []string{"pause", "--for", "25h"}, ExitUsage, "from 1s to 24h", ""},
		"resume":             {running, []string{"resume"}, ExitOK, "ended: bob paused the cluster (incident)", ""},
		"resume nothing":     {nil, []string{"resume"}, ExitFailed, "nothing is paused", ""},
		"resume what ended":  {over, []string{"resume"}, ExitFailed, "nothing is paused", "cluster Deferrable 08:13 bob"},
		"resume other scope": {running, []string{"resume", "--nodepool", "web"}, ExitFailed, "run `lifeboat resume`", "cluster Deferrable 09:14 bob"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := mixedNode()
			if tc.has != nil {
				objects = append(objects, tc.has.DeepCopy())
			}
			c := fakeCluster(t, withUser("carol"), objects...)
			r := (&harness{t: t, cluster: c}).run(t.Context(), tc.args...)
			if r.code != tc.code || !strings.Contains(r.out+r.err, tc.says) {
				t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
			}
			var all v1beta1.PauseList
			if err := c.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range all.Items {
				got += strings.Join([]string{p.Name, string(p.Spec.Stops), p.Spec.Until.UTC().Format("15:04"), p.Spec.By}, " ")
			}
			if got != tc.pause {
				t.Errorf("pauses %q, want %q", got, tc.pause)
			}
		})
	}
}

func TestPauseIsShown(t *testing.T) {
	request := func() client.Object { return interruption(requestNotice()) }
	for _, tc := range []struct {
		name  string
		pause *v1beta1.Pause
		args  []string
		code  int
		says  string
	}{
		{"status", pauseBy("", v1beta1.PauseDeferrable, time.Hour), []string{"status"}, exitBroken, "    lifeboat resume\n"},
		{"explain", pauseBy("", v1beta1.PauseDeferrable, time.Hour), []string{"explain", nodeName}, ExitOK, "paused          bob paused the cluster (incident) until 2026-05-11T09:14:02Z"},
		{"plan", pauseBy("", v1beta1.PauseDeferrable, time.Hour), []string{"plan", nodeName}, ExitDoesNotFit, "the end of the pause: bob paused the cluster"},
		{"plan of a reclaim", pauseBy("", v1beta1.PauseEverything, time.Hour), []string{"plan", nodeName, "--kind", "spot"}, ExitDoesNotFit, "end the pause: run `lifeboat resume`"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := fakeCluster(t, withUser("carol"), append(mixedNode(), request(), tc.pause)...)
			r := (&harness{t: t, cluster: c}).run(t.Context(), tc.args...)
			if r.code != tc.code || !strings.Contains(r.out+r.err, tc.says) {
				t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
	reclaim := fakeCluster(t, withUser("carol"), append(mixedNode(), pauseBy("", v1beta1.PauseDeferrable, time.Hour))...)
	if r := (&harness{t: t, cluster: reclaim}).run(t.Context(), "explain", nodeName, "--kind", "spot"); strings.Contains(r.out, "paused") {
		t.Errorf("a reclaim does not wait for this pause:\n%s", r.out)
	}
}
