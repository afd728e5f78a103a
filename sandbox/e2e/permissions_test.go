//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// auditPolicy makes the API server log the requests of the chart's accounts.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts:lifeboat-system"]}
- {level: None}
`

// rarelyUsed are permissions that this scenario does not use, each with the reason why it is
// needed.
var rarelyUsed = map[string]string{
	"coordination.k8s.io/leases patch":       "a probe of the doctor is answered",
	"coordination.k8s.io/leases list":        "the canary, which is off by default, watches for answers",
	"coordination.k8s.io/leases watch":       "the same",
	"/persistentvolumes list":                "an EBS volume that AWS Health names is looked for",
	"/persistentvolumeclaims get":            "a pod that mounts one must be surged",
	"batch/jobs delete":                      "a Job that does not end when its time is up is deleted",
	"apps/replicasets get":                   "a surged pod of a node that lives is given back",
	"/nodes list":                            watched,
	"lifeboat.dev/interruptions list":        watched,
	"lifeboat.dev/interruptionpolicies list": watched,
	"lifeboat.dev/nodenotices list":          watched,
	"lifeboat.dev/pauses list":               watched,
	"policy/poddisruptionbudgets list":       watched,

	"lifeboat.dev/nodegroups list":         watched,
	"lifeboat.dev/nodegroups patch":        noGroup,
	"lifeboat.dev/nodegroups/status patch": noGroup,
	"/nodes delete":                        noGroup,

	"karpenter.sh/nodeclaims get":          noKarpenter,
	"karpenter.sh/nodeclaims list":         noKarpenter,
	"karpenter.sh/nodeclaims watch":        noKarpenter,
	"karpenter.sh/nodeclaims create":       noKarpenter,
	"karpenter.sh/nodeclaims patch":        noKarpenter,
	"karpenter.sh/nodeclaims delete":       noKarpenter,
	"karpenter.sh/nodepools get":           noKarpenter,
	"karpenter.k8s.aws/ec2nodeclasses get": noKarpenter,
}

// sometimesUsed are permissions that this scenario uses or not, depending on timing.
var sometimesUsed = map[string]string{
	"events.k8s.io/events patch":     "client-go counts an event that is repeated within minutes by patching the first",
	"/events patch":                  "the same, for the events of leader election",
	"lifeboat.dev/interruptions get": "a write that meets a newer record reads it past the cache",
}

// noKarpenter is the reason for permissions that replacements need:
// TestReplacementIsReadyBeforeEviction uses them.
const noKarpenter = "Karpenter is not part of this scenario"

// noGroup is the reason for permissions on Auto Scaling groups: the scenarios declared and reuse
// use them.
const noGroup = "there is no Auto Scaling group in this scenario"

// watched is the reason for list permissions on watched resources: before Kubernetes 1.34, an API
// server does not send the initial state within a watch by default.
const watched = "client-go lists what it watches, where the API server does not stream the list"

// TestChartPermissionsAreUsedAndSufficient plays an interruption from the first notice until its
// record is deleted. Controller and agents run under the chart's ServiceAccounts. The test compares
// their requests with the chart's grants.
func TestChartPermissionsAreUsedAndSufficient(t *testing.T) {
	t.Parallel()
	args, log := auditArgs(t, auditPolicy)
	r := newRigWith(t, sandbox.Options{
		APIServerArgs: args,
		LifeboatdArgs: []string{"--leader-elect=true", "--ttl=1m"},
		NoLifeboat:    true, // at first, so that the agent receives the notice first
		Agents:        true,
	})
	r.apply(&v1beta1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1beta1.InterruptionPolicySpec{
			Rules: []v1beta1.Rule{{Kinds: []string{"SpotInterruption"}, Action: v1beta1.ActionDrain, Strategy: v1beta1.StrategySurge}},
			Workloads: []v1beta1.Workload{{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}}, Strategy: v1beta1.StrategyEvict,
			}},
			Hooks: []v1beta1.Hook{{
				// No node has this label, so the Job times out.
				Name: "never", When: v1beta1.HookBeforeDrain, Timeout: &metav1.Duration{Duration: 2 * time.Second},
				Job: &v1beta1.HookJob{Template: runtime.RawExtension{Raw: []byte(
					`{"spec":{"template":{"spec":{"nodeSelector":{"no":"node"},"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)}},
			}},
		},
	})
	interrupted := r.launch(1)[0]
	// The budget of held blocks its pod until the last call; then lifeboatd deletes it.
	r.apply(deployment("web", 2, time.Second), budget("web", 1), deployment("held", 1, time.Second), budget("held", 1))
	r.waitPods(interrupted, 3)
	terminated := r.launch(2)[0] // and one for the replacements
	if err := r.EC2().Recommend([]string{interrupted.ID}); err != nil {
		t.Fatal(err)
	}
	r.until("the agent to write it", time.Minute, func(ctx context.Context) (bool, error) {
		var written v1beta1.NodeNoticeList
		err := r.client.List(ctx, &written)
		return len(written.Items) > 0, err
	})
	if err := r.StartLifeboat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.EC2().Terminate([]string{terminated.ID}); err != nil { // not visible in instance metadata
		t.Fatal(err)
	}
	if err := r.EC2().Interrupt([]string{interrupted.ID}, ec2.InterruptOptions{Notice: 60 * time.Second}); err != nil {
		t.Fatal(err)
	}
	r.reaches(interrupted.ID, v1beta1.PhaseCompleted, 2*time.Minute)
	r.until("the record to be removed", 2*time.Minute, func(ctx context.Context) (bool, error) {
		in, err := r.record(ctx, interrupted.ID)
		return in == nil && err == nil, err
	})

	asked := readAudit(t, log)
	unused, granted := map[string]bool{}, map[string]bool{}
	for _, account := range []string{chart.ControllerAccount, chart.AgentAccount} {
		grants := r.grants(account)
		maps.Copy(granted, grants)
		for _, grant := range checkUse(t, account, asked[account], grants) {
			unused[grant] = true
		}
	}
	checkExceptions(t, granted, unused)
}

// checkUse compares an account's requests with its grants, and returns the grants that it did not
// use.
func checkUse(t *testing.T, account string, asked []request, grants map[string]bool) (unused []string) {
	t.Helper()
	used := map[string]bool{}
	for _, q := range asked {
		used[q.String()] = true
		if q.ResponseStatus.Code == 403 {
			t.Errorf("%s was refused %s: grant it in the chart", account, q)
		}
	}
	for _, grant := range slices.Sorted(maps.Keys(grants)) {
		if used[grant] {
			continue
		}
		unused = append(unused, grant)
		if rarelyUsed[grant] == "" && sometimesUsed[grant] == "" {
			t.Errorf("%s never used %s: remove it from the chart, or let this scenario use it", account, grant)
		}
	}
	t.Logf("%s made %d requests, of %d kinds; it is granted %d", account, len(asked), len(used), len(grants))
	return unused
}

// checkExceptions finds obsolete exceptions: the chart does not grant the permission, or every
// account that has it used it.
func checkExceptions(t *testing.T, granted, unused map[string]bool) {
	t.Helper()
	for _, grant := range slices.Sorted(maps.Keys(rarelyUsed)) {
		switch {
		case !granted[grant]:
			t.Errorf("%q is listed as rarely used, and the chart grants it to no account: take it off the list", grant)
		case !unused[grant]:
			t.Errorf("%q is listed as rarely used, and this scenario used it: take it off the list", grant)
		}
	}
	for _, grant := range slices.Sorted(maps.Keys(sometimesUsed)) {
		if !granted[grant] {
			t.Errorf("%q is listed as sometimes used, and the chart grants it to no account: take it off the list", grant)
		}
	}
}

// grants returns the permissions that the chart's roles of this name grant.
func (r *rig) grants(name string) map[string]bool {
	r.t.Helper()
	var ofCluster rbacv1.ClusterRole
	var ofNamespace rbacv1.Role
	err := r.client.Get(r.t.Context(), client.ObjectKey{Name: name}, &ofCluster)
	if inNamespace := r.client.Get(r.t.Context(), client.ObjectKey{Namespace: chart.Namespace, Name: name}, &ofNamespace); inNamespace != nil {
		err = errors.Join(err, client.IgnoreNotFound(inNamespace))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var ofHooks rbacv1.Role
	if name == chart.ControllerAccount {
		if err := r.client.Get(r.t.Context(), client.ObjectKey{Namespace: "node-hooks", Name: "lifeboat-hooks"}, &ofHooks); err != nil {
			r.t.Fatal(err)
		}
	}
	out := map[string]bool{}
	for _, rule := range slices.Concat(ofCluster.Rules, ofNamespace.Rules, ofHooks.Rules) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out[fmt.Sprintf("%s/%s %s", group, resource, verb)] = true
				}
			}
		}
	}
	return out
}
