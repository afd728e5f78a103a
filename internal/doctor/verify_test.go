package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

const verifyQueue = "arn:aws:sqs:eu-west-1:210987654321:q"

// verifyWiring has one queue without encryption and one rule.
func verifyWiring() snapshot.Snapshot {
	return snapshot.Snapshot{
		Account: "210987654321", Region: "eu-west-1", Queue: verifyQueue,
		Queues: []snapshot.Queue{{ARN: verifyQueue, Name: "q", Known: true, Retention: time.Hour}},
		Rules: []snapshot.Rule{{
			Name: "spot", ARN: "arn:aws:events:eu-west-1:210987654321:rule/spot", Enabled: true, TargetsKnown: true,
			Pattern: `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`,
			Targets: []snapshot.Target{{ID: "t", ARN: verifyQueue}},
		}},
	}
}

func TestVerifyRejectsFixes(t *testing.T) {
	want, s := awssetup.Desired("", "", ""), verifyWiring()
	unencrypted := func(edit change) finding.Finding {
		return finding.Finding{ID: idQueueUnencrypted, Object: "queue q", Fix: "x", Change: edit}
	}
	encrypt := onQueue(verifyQueue, func(q *snapshot.Queue) { q.ManagedSSE = true })
	for name, tc := range map[string]struct {
		edit change
		want string
	}{
		"a fix that solves it":                     {encrypt, ""},
		"a fix that changes nothing":               {func(*snapshot.Snapshot) {}, "leaves queue-unencrypted"},
		"a fix that removes the rule's target":     {together(encrypt, func(s *snapshot.Snapshot) { s.Rules[0].Targets = nil }), "no longer reaches queue 0"},
		"a fix after which one instance is heard":  {together(encrypt, narrow), "no longer reaches queue 0"},
		"a fix that encrypts with the account key": {together(encrypt, onQueue(verifyQueue, func(q *snapshot.Queue) { q.KMSKey = "alias/aws/sqs" })), "no longer reaches"},
	} {
		a := newAnalyzer(s)
		err := a.verify(unencrypted(tc.edit), s, want, Cluster{}, a.deliveries(s, want))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if len(s.Rules[0].Targets) != 1 || s.Queues[0].ManagedSSE {
		t.Error("verify changed the wiring itself")
	}
	if err := newAnalyzer(s).verify(finding.Finding{ID: "x", Fix: "helm upgrade"}, s, want, Cluster{}, nil); err != nil {
		t.Errorf("a fix that cannot be applied in memory: %v", err)
	}
}

func narrow(s *snapshot.Snapshot) {
	s.Rules[0].Pattern = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-id":["i-1"]}}`
}

// Every fix that Run prints for this wiring can be followed: after a few rounds no
// finding remains.
func TestFollowingTheFixes(t *testing.T) {
	s, want := verifyWiring(), awssetup.Desired("", "", "")
	s.Rules[0].Enabled = false
	for round := range 3 {
		all := serious(Run(s, want, Cluster{}))
		if len(all) == 0 {
			return
		}
		for _, f := range all {
			if f.Fix == noVerifiedFix {
				t.Errorf("round %d: no verified fix: %+v", round, f)
			}
			if after, changed := Apply(f, s); changed {
				s = after
			} else {
				t.Logf("round %d: cannot apply %s: %s", round, f.ID, f.Fix)
			}
		}
	}
	for _, f := range serious(Run(s, want, Cluster{})) {
		t.Errorf("remains: %s %s %s: %s\n%s", f.Severity, f.ID, f.Object, f.Problem, f.Fix)
	}
}
