package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

// fleetOf runs status over several clusters; nil is one that does not answer.
func fleetOf(t *testing.T, clusters map[string]client.WithWatch, args ...string) result {
	t.Helper()
	h := &harness{t: t, setup: func(s *session) {
		s.connectTo = func(_ context.Context, name string) (cluster, error) {
			c, known := clusters[name]
			switch {
			case !known:
				return cluster{}, command.ErrNoContext
			case c == nil:
				return cluster{}, errors.New("dial tcp 192.0.2.1:443: i/o timeout")
			}
			return cluster{WithWatch: c, name: name, requestTimeout: command.DefaultRequestTimeout}, nil
		}
	}}
	return h.run(t.Context(), append([]string{"status"}, args...)...)
}

func TestFleetHasOneLineForEachCluster(t *testing.T) {
	waiting := stopping(26 * time.Hour)
	waiting.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "databases"}
	waiting.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionApproved, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock.Add(-time.Hour)),
	}}
	clusters := map[string]client.WithWatch{
		"prod-eu": fakeCluster(t, withUser("carol"), append(database(waiting), newInstallation().objects()...)...),
		"prod-us": fakeCluster(t, withUser("carol"), append(mixedNode(), newInstallation().objects()...)...),
		"staging": fakeCluster(t, withUser("carol"), mixedNode()...),
		"lab":     nil,
	}
	r := fleetOf(t, clusters, "--contexts", "prod-eu,prod-us,staging,lab")
	golden(t, "status-fleet.golden", r.out+r.err)
	golden(t, "status-fleet-json.golden", fleetOf(t, clusters, "--contexts", "prod-eu,lab", "-o", "json").out)
	if r := fleetOf(t, clusters, "--contexts", "lab"); !strings.Contains(r.out, "what waits there is not known") {
		t.Errorf("says nothing about the cluster that it could not read:\n%s", r.out)
	}
	for contexts, want := range map[string]int{
		"prod-us": ExitOK, "prod-us,prod-eu": exitNeedsPerson, "prod-us,staging": exitBroken, "prod-eu,lab": exitBroken, "prod-us,none": exitBroken,
	} {
		if r := fleetOf(t, clusters, "--contexts", contexts); r.code != want {
			t.Errorf("%s: exit code %d, want %d\n%s%s", contexts, r.code, want, r.out, r.err)
		}
	}
}

func TestCommandsQuoteContext(t *testing.T) {
	for word, want := range map[string]string{
		"prod": "prod", "arn:aws:eks:eu-west-1:1:cluster/a": "arn:aws:eks:eu-west-1:1:cluster/a", "my cluster": "'my cluster'", "it's; ls": `'it'\''s; ls'`,
	} {
		if got := shellWord(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

func TestFleetFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncontexts:\n- {name: b, context: {cluster: c}}\n- {name: a, context: {cluster: c}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	well := fakeCluster(t, withUser("carol"), append(mixedNode(), newInstallation().objects()...)...)
	r := fleetOf(t, map[string]client.WithWatch{"a": well, "b": well}, "--kubeconfig", file, "--all-contexts")
	if lines := strings.Split(r.out, "\n"); r.code != ExitOK || len(lines) < 3 || !strings.HasPrefix(lines[1], "a ") || !strings.HasPrefix(lines[2], "b ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	for _, args := range [][]string{
		{"--contexts", "a", "--all-contexts"}, {"--contexts", "a", "--context", "b"}, {"--all-contexts", "--sandbox=default"},
	} {
		if r := fleetOf(t, nil, args...); r.code != ExitUsage || !strings.Contains(r.err, "write one of") {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
		}
	}
	if r := fleetOf(t, nil, "--contexts", "a,,b"); r.code != ExitUsage || !strings.Contains(r.err, "empty name") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := fleetOf(t, nil, "--kubeconfig", empty, "--all-contexts"); r.code != ExitUsage || !strings.Contains(r.err, "no context") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}
