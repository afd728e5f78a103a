package autoscaling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// have makes members from texts such as "a1 InService": an id whose letter is the zone and whose
// number is the age, a state, and flags. The flags are outdated (must be replaced), unwell, protected,
// old (of an old template) and spot.
func have(lines ...string) []snapshotMember {
	var out []snapshotMember
	for _, line := range lines {
		words := strings.Fields(line)
		var age int
		_, _ = fmt.Sscanf(words[0][1:], "%d", &age)
		m := snapshotMember{launched: time.Unix(int64(age), 0), outdated: slices.Contains(words, "old")}
		m.InstanceID, m.Zone, m.State = words[0], words[0][:1], LifecycleState(words[1])
		m.Unhealthy, m.Protected, m.Spot = slices.Contains(words, "unwell"), slices.Contains(words, "protected"), slices.Contains(words, "spot")
		if slices.Contains(words, "outdated") {
			m.ReplaceCause = "it is outdated"
		}
		out = append(out, m)
	}
	return out
}

func TestSteps(t *testing.T) {
	t.Parallel()
	off := func(p ...Process) func(*snapshot) {
		return func(v *snapshot) {
			v.launch = v.launch && !slices.Contains(p, Launch)
			v.terminate = v.terminate && !slices.Contains(p, Terminate)
			v.replace = v.replace && !slices.Contains(p, ReplaceUnhealthy)
		}
	}
	for name, tc := range map[string]struct {
		desired, pool int
		set           func(*snapshot)
		have          []snapshotMember
		want          []string
	}{
		"nothing to do":  {desired: 2, have: have("a1 InService", "b1 Pending:Wait")},
		"empty":          {desired: 2, want: []string{"cold start", "cold start"}},
		"a pool to fill": {desired: 0, pool: 2, have: have("a1 Warmed:Pending"), want: []string{"into pool"}},
		"warm first, then cold, and the pool again":  {desired: 2, pool: 1, have: have("a1 Warmed:Stopped"), want: []string{"out of pool a1", "cold start", "into pool"}},
		"what is on its way into the pool is no use": {desired: 1, pool: 1, have: have("a1 Warmed:Pending:Wait"), want: []string{"cold start"}},
		"what is unwell in the pool is no use": {desired: 1, pool: 1, have: have("a1 Warmed:Stopped unwell"),
			want: []string{"pool shrink a1", "cold start", "into pool"}},
		"a pool too large": {desired: 0, pool: 1, have: have("a1 Warmed:Stopped", "b1 Warmed:Pending:Wait"), want: []string{"pool shrink a1"}},
		"what leaves does not count": {desired: 2, have: have("a1 Terminating:Wait", "a2 Terminating:Retained", "a3 Standby", "a4 Detaching", "a5 EnteringStandby"),
			want: []string{"cold start", "cold start"}},
		"what was retained in the pool does not count": {pool: 1, have: have("a1 Warmed:Terminating:Retained", "a2 Warmed:Pending:Retained"), want: []string{"into pool"}},
		"the zone with the most, its oldest":           {desired: 2, have: have("a1 InService", "b3 InService", "b2 InService"), want: []string{"scale in b2"}},
		"one of an old template first":                 {desired: 1, have: have("a1 InService", "a2 InService old"), want: []string{"scale in a2"}},
		"several, from zone to zone":                   {desired: 1, have: have("a1 InService", "a2 InService", "b1 InService", "b2 InService"), want: []string{"scale in a1", "scale in b1", "scale in a2"}},
		"the newest, by policy": {desired: 1, set: func(v *snapshot) { v.policies = []string{"NewestInstance"} }, have: have("a1 InService old", "a2 InService"),
			want: []string{"scale in a2"}},
		"what is on its way only when need be":      {desired: 1, have: have("a1 Pending:Wait", "b2 InService", "c3 InService"), want: []string{"scale in b2", "scale in c3"}},
		"and then that too":                         {desired: 0, have: have("a1 Pending:Wait", "b2 InService"), want: []string{"scale in b2", "scale in a1"}},
		"protected ones stay":                       {desired: 0, have: have("a1 InService protected", "b2 InService"), want: []string{"scale in b2"}},
		"back to the pool, as far as it has room":   {desired: 0, pool: 1, set: func(v *snapshot) { v.reuse = true }, have: have("a1 InService", "b2 InService"), want: []string{"return to pool a1", "scale in b2"}},
		"spot instances cannot be stopped":          {desired: 0, pool: 1, set: func(v *snapshot) { v.reuse = true }, have: have("a1 InService spot"), want: []string{"scale in a1", "into pool"}},
		"unwell: terminated and replaced":           {desired: 1, have: have("a1 InService unwell"), want: []string{"scale in a1", "cold start"}},
		"unwell, before the launch hook is through": {desired: 1, have: have("a1 Pending:Wait unwell")},
		"outdated: another first":                   {desired: 1, have: have("a1 InService outdated"), want: []string{"cold start"}},
		"outdated: while the other comes":           {desired: 1, have: have("a1 InService outdated", "b2 Pending:Wait")},
		"outdated: when it is there":                {desired: 1, have: have("a1 InService outdated", "b2 InService"), want: []string{"scale in a1"}},
		"outdated: two, and one has come":           {desired: 2, have: have("a1 InService outdated", "a2 InService outdated", "b2 InService", "b3 Pending"), want: []string{"scale in a1"}},
		"outdated: the other is unwell":             {desired: 1, have: have("a1 InService outdated", "b2 InService unwell"), want: []string{"scale in b2", "cold start"}},
		"no Launch":                                 {desired: 2, pool: 1, set: off(Launch), have: have("a1 Warmed:Stopped")},
		"no Terminate":                              {desired: 0, set: off(Terminate), have: have("a1 InService", "a2 InService unwell", "a3 Warmed:Stopped", "a4 InService outdated")},
		"no ReplaceUnhealthy":                       {desired: 1, set: off(ReplaceUnhealthy), have: have("a2 InService unwell")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := snapshot{desired: tc.desired, poolSize: tc.pool, launch: true, terminate: true, replace: true, members: tc.have}
			if tc.set != nil {
				tc.set(&v)
			}
			var got []string
			for _, s := range v.steps() {
				got = append(got, strings.TrimSpace(string(s.transition)+" "+s.id))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolSize(t *testing.T) {
	t.Parallel()
	prepared := func(n int) *int { return &n }
	for _, tc := range []struct {
		most, desired int
		pool          *WarmPool
		want          int
	}{
		{10, 4, nil, 0},
		{10, 4, &WarmPool{}, 6},
		{10, 4, &WarmPool{MinSize: 8}, 8},
		{10, 4, &WarmPool{MaxPrepared: prepared(5)}, 1},
		{10, 4, &WarmPool{MaxPrepared: prepared(3)}, 0},
		{10, 4, &WarmPool{MaxPrepared: prepared(3), MinSize: 2}, 2},
	} {
		g := group{Group: Group{Max: tc.most, Desired: tc.desired, WarmPool: tc.pool}}
		if got := g.poolSize(); got != tc.want {
			t.Errorf("%+v: %d, want %d", tc, got, tc.want)
		}
	}
}

func TestSharesOnDemand(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ base, percent, total, want int }{
		{0, 100, 3, 3}, {0, 0, 3, 0}, {2, 0, 1, 1}, {2, 0, 5, 2}, {1, 25, 6, 3}, {0, 50, 3, 2},
	} {
		if got := (Distribution{OnDemandBase: tc.base, OnDemandPercent: &tc.percent}).onDemand(tc.total); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}
