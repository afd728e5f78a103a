package record_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

var at = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)

func pause(name, pool string, from, to time.Duration, stops v1beta1.PauseScope) v1beta1.Pause {
	return v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.PauseSpec{
		By: "dana", NodePool: pool, Stops: stops, StartTime: metav1.NewTime(at.Add(from)), Until: metav1.NewTime(at.Add(to)),
	}}
}

func TestPauseOfNode(t *testing.T) {
	hour := time.Hour
	cluster := pause("cluster", "", -hour, hour, v1beta1.PauseDeferrable)
	web := pause("nodepool-web", "web", -hour, 2*hour, v1beta1.PauseDeferrable)
	all := pause("nodepool-web", "web", -hour, time.Minute, v1beta1.PauseEverything)
	for name, c := range map[string]struct {
		pauses []v1beta1.Pause
		pool   string
		want   string
	}{
		"none":                        {nil, "web", ""},
		"cluster":                     {[]v1beta1.Pause{cluster}, "web", "cluster"},
		"cluster, node without pool":  {[]v1beta1.Pause{cluster}, "", "cluster"},
		"pool":                        {[]v1beta1.Pause{web}, "web", "nodepool-web"},
		"other pool":                  {[]v1beta1.Pause{web}, "db", ""},
		"node without pool":           {[]v1beta1.Pause{web}, "", ""},
		"longer one counts":           {[]v1beta1.Pause{cluster, web}, "web", "nodepool-web"},
		"everything counts first":     {[]v1beta1.Pause{cluster, all}, "web", "nodepool-web"},
		"expired":                     {[]v1beta1.Pause{pause("cluster", "", -hour, 0, v1beta1.PauseDeferrable)}, "web", ""},
		"not begun":                   {[]v1beta1.Pause{pause("cluster", "", time.Second, hour, v1beta1.PauseDeferrable)}, "web", ""},
		"longer than the API permits": {[]v1beta1.Pause{pause("cluster", "", -25*hour, 100*hour, v1beta1.PauseDeferrable)}, "web", ""},
	} {
		node := &corev1.Node{}
		if c.pool != "" {
			node.Labels = map[string]string{"karpenter.sh/nodepool": c.pool}
		}
		got := ""
		if p := record.PauseOf(c.pauses, node, at); p != nil {
			got = p.Name
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if p := record.PauseOf([]v1beta1.Pause{web}, nil, at); p != nil {
		t.Errorf("a node that is gone: %s", p.Name)
	}
}

// notices of each kind of deadline, under both kinds of pause.
func TestPauseStopsWhatCanWait(t *testing.T) {
	begun := at.Add(-time.Hour)
	terminate := []v1beta1.InterruptionPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1beta1.InterruptionPolicySpec{
		Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionTerminate}},
	}}}
	for _, c := range []struct {
		name     string
		notice   v1beta1.Notice
		policies []v1beta1.InterruptionPolicy
		begun    time.Time
		stops    bool // a pause of what can wait
	}{
		{name: "reclaim", notice: v1beta1.Notice{Kind: notice.KindSpotInterruption, Deadline: notice.At(at.Add(2*time.Minute), v1beta1.DeadlineHard)}},
		{name: "shutdown", notice: v1beta1.Notice{Kind: notice.KindInstanceStateChange, InstanceState: "shutting-down"}},
		{name: "group termination", notice: v1beta1.Notice{Kind: notice.KindAutoScalingTermination}},
		{name: "planned change", notice: v1beta1.Notice{Kind: notice.KindScheduledChange, InstanceAction: "stop", Deadline: notice.At(at.Add(12*time.Hour), v1beta1.DeadlineSoft)}, stops: true},
		{name: "planned change in its last hour", notice: v1beta1.Notice{Kind: notice.KindScheduledChange, InstanceAction: "stop", Deadline: notice.At(at.Add(30*time.Minute), v1beta1.DeadlineSoft)}},
		{name: "rebalance", notice: v1beta1.Notice{Kind: notice.KindRebalanceRecommendation}, stops: true},
		{name: "request", notice: v1beta1.Notice{Kind: notice.KindRequested}, stops: true},
		{name: "request with a time", notice: v1beta1.Notice{Kind: notice.KindRequested, Deadline: notice.At(at.Add(time.Minute), v1beta1.DeadlineEstimated)}, stops: true},
		{name: "termination that began", notice: v1beta1.Notice{Kind: notice.KindInstanceStatus}, policies: terminate, begun: begun, stops: true},
	} {
		c.notice.ID, c.notice.Time, c.notice.ReceivedTime = "n", metav1.NewTime(begun), metav1.NewMicroTime(begun)
		facts := policy.Facts{Now: at, Notices: []v1beta1.Notice{c.notice}, Policies: c.policies, Begun: c.begun, Node: &corev1.Node{}}
		same := func(d policy.Decision) policy.Decision { return d }
		deferrable, everything := pause("cluster", "", -time.Hour, time.Hour, v1beta1.PauseDeferrable), pause("cluster", "", -time.Hour, time.Hour, v1beta1.PauseEverything)
		if _, by, ok := record.Decide(facts, &deferrable, same); !ok || (by != nil) != c.stops {
			t.Errorf("%s: decided %v, stopped %v, want %v", c.name, ok, by != nil, c.stops)
		}
		if _, by, ok := record.Decide(facts, &everything, same); !ok || by == nil {
			t.Errorf("%s: a pause of everything does not stop it", c.name)
		}
		if _, by, ok := record.Decide(facts, nil, same); !ok || by != nil {
			t.Errorf("%s: stopped without a pause", c.name)
		}
	}
}
