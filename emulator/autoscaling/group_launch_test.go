package autoscaling_test

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// limit sets how many more instances of a type EC2 can launch, in all zones.
func (r *region) limit(instanceType, lifecycle string, n int) {
	for _, subnet := range r.ec2.Subnets() {
		r.ec2.SetCapacity(ec2.Offering{Type: instanceType, Zone: subnet.Zone, CapacityType: lifecycle}, n)
	}
}

func TestGroupRetriesWithoutCapacity(t *testing.T) {
	inLiving(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		r.limit("m5.large", ec2.OnDemand, 0)
		r.ec2.SetCapacity(ec2.Offering{Type: "m5.large", Zone: "eu-west-1c", CapacityType: ec2.OnDemand}, 1)
		check(t, r.SetDesired("g", 2, false))
		settled()
		same(t, "one zone has one", r.states(), "1 InService")
		failed := r.Activities("g")[0]
		same(t, "activity", []any{failed.Status, contains(failed.Message, "capacity"), len(r.events()) > 2}, []any{"Failed", true, true})
		tried := len(r.Activities("g"))
		check(t, r.SetDesired("g", 6, false))
		settled()
		if n := len(r.Activities("g")) - tried; n < 8 || n > 12 {
			t.Errorf("%d launches failed in 20 s, with 2 s between", n)
		}
		r.limit("m5.large", ec2.OnDemand, 5)
		settled()
		same(t, "later", r.states(), "6 InService")
	})
}

func TestMixedGroups(t *testing.T) {
	quarter := 25
	g := autoscaling.Group{Desired: 6, Mixed: &autoscaling.Mixed{
		Template: ec2.TemplateRef{Name: "workers", Version: "$Latest"}, Overrides: []autoscaling.Override{{Type: "c5.large"}, {Type: "m5.large"}},
		Distribution: autoscaling.Distribution{OnDemandBase: 1, OnDemandPercent: &quarter},
	}, WarmPool: fixed(1, "")}
	inLiving(t, g, func(t *testing.T, r *region) {
		settled()
		spot, types := map[bool]int{}, map[string]int{}
		for _, id := range r.in(autoscaling.InService) {
			m, _ := r.Member(id)
			spot[m.Spot]++
			in, _ := r.ec2.Instance(id)
			types[in.Type]++
			same(t, "tags", []any{in.Spot(), in.Tags["aws:autoscaling:groupName"], in.Tags["aws:ec2launchtemplate:version"]}, []any{m.Spot, "g", "1"})
		}
		// One is the base, and a quarter of five is two.
		same(t, "bought", spot, map[bool]int{false: 3, true: 3})
		same(t, "the first type is preferred on demand", types["c5.large"] >= 3, true)
		m, _ := r.Member(r.in(autoscaling.WarmedStopped)[0])
		same(t, "the pool is bought on demand, as spot instances cannot be stopped", m.Spot, false)
		r.limit("c5.large", ec2.OnDemand, 0)
		check(t, r.Update("g", func(g *autoscaling.Group) error {
			g.Mixed.Distribution.OnDemandPercent = nil
			g.Desired = 8
			return nil
		}))
		settled()
		same(t, "the second type where the first has nothing", r.states(), "1 Warmed:Stopped, 8 InService")
	})
}

func TestLaunchNow(t *testing.T) {
	inLiving(t, autoscaling.Group{Max: 4}, func(t *testing.T, r *region) {
		request := autoscaling.LaunchRequest{Group: "g", Token: "t", Count: 2, Zones: []string{"eu-west-1b"}}
		first := must(r.LaunchNow(request))(t)
		again := must(r.LaunchNow(request))(t)
		same(t, "again", again, first)
		same(t, "zones", []string{first.Instances[0].Zone, first.Instances[1].Zone}, []string{"eu-west-1b", "eu-west-1b"})
		settled()
		_, desired, _, _ := r.Sizes("g")
		same(t, "in the group", []any{r.states(), desired}, []any{"2 InService", 2})
		for name, tc := range map[string]struct {
			change func(*autoscaling.LaunchRequest)
			want   string
		}{
			"another request": {func(q *autoscaling.LaunchRequest) { q.Count = 1 }, "IdempotentParameterMismatch"},
			"too many":        {func(q *autoscaling.LaunchRequest) { q.Token, q.Count = "u", 3 }, "max-size=4, and desired-size=2"},
			"nowhere":         {func(q *autoscaling.LaunchRequest) { q.Token, q.Zones = "u", nil }, "AvailabilityZones or SubnetIds must be specified"},
			"elsewhere":       {func(q *autoscaling.LaunchRequest) { q.Token, q.Zones = "u", []string{"eu-west-1z"} }, "must be among those of the group"},
			"no token":        {func(q *autoscaling.LaunchRequest) { q.Token = "" }, "clientToken"},
			"none":            {func(q *autoscaling.LaunchRequest) { q.Token, q.Count = "u", 0 }, "requestedCapacity"},
		} {
			bad := request
			tc.change(&bad)
			if _, err := r.LaunchNow(bad); !contains(err, tc.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		r.limit("m5.large", ec2.OnDemand, 0)
		request.Token, request.Count = "v", 1
		short := must(r.LaunchNow(request))(t)
		same(t, "no capacity", []any{len(short.Instances), short.Errors[0].Code, short.Errors[0].Zone}, []any{0, "InsufficientInstanceCapacity", "eu-west-1b"})
		request.Token, request.Retry = "w", true
		must(r.LaunchNow(request))(t)
		r.limit("m5.large", ec2.OnDemand, 5)
		settled()
		same(t, "tried again by the group", r.states(), "3 InService")
	})
}

// refreshed runs a refresh and returns the lowest number of instances in service.
func (r *region) refreshed(t *testing.T, o autoscaling.RefreshOptions) (least int, all autoscaling.Refresh) {
	t.Helper()
	must(r.StartRefresh("g", o))(t)
	least = 99
	for range 600 {
		pass(100 * time.Millisecond)
		least = min(least, len(r.in(autoscaling.InService)))
		if all = must(r.Refreshes("g"))(t)[0]; !all.End.IsZero() {
			break
		}
	}
	pass(10 * time.Second)
	return least, all
}

func TestRefresh(t *testing.T) {
	hundred, half := 100, 50
	for _, tc := range []struct {
		name    string
		options autoscaling.RefreshOptions
		least   int
	}{
		{"one at a time, by default", autoscaling.RefreshOptions{}, 3},
		{"half of them", autoscaling.RefreshOptions{MinHealthy: &half}, 2},
		{"launch first", autoscaling.RefreshOptions{MinHealthy: &hundred}, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inLiving(t, autoscaling.Group{Desired: 4, WarmPool: fixed(1, "")}, func(t *testing.T, r *region) {
				settled()
				old := r.Members()
				must2(r.ec2.AddTemplateVersion(ec2.TemplateRef{Name: "workers"}, "1", "", ec2.TemplateData{ImageID: "ami-0def"}))(t)
				least, done := r.refreshed(t, tc.options)
				same(t, "refresh", []any{done.Status, done.Total, done.Left, least}, []any{"Successful", 5, 0, tc.least})
				same(t, "states", r.states(), "1 Warmed:Stopped, 4 InService")
				for _, m := range old {
					same(t, "an old one", r.at(m.InstanceID), "gone")
				}
				for _, m := range r.Members() {
					same(t, "a new one", []string{m.Image, m.Template.Version}, []string{"ami-0def", "2"})
				}
			})
		})
	}
	inLiving(t, autoscaling.Group{Desired: 2, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		_, none := r.refreshed(t, autoscaling.RefreshOptions{SkipMatching: true})
		same(t, "nothing to do", []any{none.Status, none.Total}, []any{"Successful", 0})
		must(r.StartRefresh("g", autoscaling.RefreshOptions{}))(t)
		pass(200 * time.Millisecond)
		same(t, "the hook is called", []any{len(r.in(autoscaling.InService)), len(r.in(autoscaling.Terminating + ":Wait"))}, []any{1, 1})
		if _, err := r.StartRefresh("g", autoscaling.RefreshOptions{}); !contains(err, "InstanceRefreshInProgress") {
			t.Errorf("twice: %v", err)
		}
		if err := r.PutPool("g", autoscaling.WarmPool{}); !contains(err, "InstanceRefreshInProgress") {
			t.Errorf("a pool in the meantime: %v", err)
		}
		must(r.CancelRefresh("g"))(t)
		pass(time.Second)
		r.answer(t, autoscaling.Terminating+":Wait", autoscaling.Continue)
		settled()
		same(t, "cancelled", []string{must(r.Refreshes("g"))(t)[0].Status, r.states()}, []string{"Cancelled", "2 InService"})
		if _, err := r.CancelRefresh("g"); !contains(err, "ActiveInstanceRefreshNotFound") {
			t.Errorf("none to cancel: %v", err)
		}
	})
}

func must2[A, B any](_ A, _ B, err error) func(testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		check(t, err)
	}
}

func TestConsistency(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 1, Hooks: []autoscaling.Hook{up()}}, func(t *testing.T, r *region) {
		settled()
		r.SetConsistency(autoscaling.Consistency{ActionAfter: 5 * time.Second, TargetAfter: 10 * time.Second})
		check(t, r.SetDesired("g", 2, false))
		pass(time.Second)
		id := r.in(autoscaling.Pending + ":Wait")[1]
		ref := r.Actions(id)[0].Ref
		if err := r.Complete(ref, autoscaling.Continue); !contains(err, "No active Lifecycle Action found with token") {
			t.Errorf("too early: %v", err)
		}
		same(t, "state and metadata", []string{r.at(id), r.TargetState(id)}, []string{"Pending:Wait > InService", ""})
		pass(5 * time.Second)
		check(t, r.Complete(ref, autoscaling.Continue))
		pass(5 * time.Second)
		same(t, "later", []string{r.at(id), r.TargetState(id)}, []string{"InService > InService", "InService"})
	})
}

// As on AWS, the call succeeds and the launches fail.
func TestGroupLargerThanQuota(t *testing.T) {
	inLiving(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		settled()
		check(t, r.Update("g", func(g *autoscaling.Group) error {
			g.Max, g.Desired = 100_000, 100_000
			return nil
		}))
		pass(60 * time.Millisecond)
		same(t, "launched at a time", len(r.Members()), 100)
		settled()
		same(t, "up to the quota", []any{r.states(), len(r.ec2.Instances())}, []any{"5000 InService", ec2.MostInstances})
		zones := map[string]int{}
		for _, m := range r.Members() {
			zones[m.Zone]++
		}
		same(t, "in all zones", zones, map[string]int{"eu-west-1a": 1667, "eu-west-1b": 1667, "eu-west-1c": 1666})
		failed := r.Activities("g")[0]
		same(t, "activity", []any{failed.Status, contains(failed.Message, "You have requested more vCPU capacity than your current vCPU limit of 10000 allows")},
			[]any{"Failed", true})
		if n := len(r.Activities("g")) - ec2.MostInstances; n < 5 || n > 12 {
			t.Errorf("%d launches failed in 20 s, with 2 s between", n)
		}
	})
}

// leave fills the quota with other instances, except for n.
func leave(t *testing.T, cloud *ec2.State, n int) {
	t.Helper()
	for n := ec2.MostInstances - n; n > 0; n -= 1000 {
		must(cloud.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: min(n, 1000), Max: min(n, 1000)}))(t)
	}
}

func TestWarmPoolLargerThanQuota(t *testing.T) {
	inLiving(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		leave(t, r.ec2, 250)
		check(t, r.Update("g", func(g *autoscaling.Group) error { g.Max = 100_000; return nil }))
		check(t, r.PutPool("g", autoscaling.WarmPool{}))
		pass(60 * time.Millisecond)
		same(t, "launched at a time", len(r.Members()), 100)
		settled()
		same(t, "up to the quota", r.states(), "250 Warmed:Stopped")
		launched := must(r.LaunchNow(autoscaling.LaunchRequest{Group: "g", Token: "t", Count: 1, Zones: []string{"eu-west-1b"}}))(t)
		same(t, "no more at once either", []any{len(launched.Instances), launched.Errors[0].Code}, []any{0, "VcpuLimitExceeded"})
		check(t, r.SetDesired("g", 240, false))
		pass(60 * time.Millisecond)
		same(t, "taken out of it at a time", r.states(), "100 Pending, 150 Warmed:Stopped")
		settled()
		same(t, "all of them", r.states(), "10 Warmed:Stopped, 240 InService")
		check(t, r.DeletePool("g", false))
		check(t, r.SetDesired("g", 0, false))
		settled()
		same(t, "and back", r.states(), "")
	})
}
