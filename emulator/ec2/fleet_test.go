package ec2

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// over is an override for a type in a zone of eu-west-1, such as "m5.large/a".
func over(spec string) FleetOverride {
	typeName, letter, _ := strings.Cut(spec, "/")
	o := FleetOverride{InstanceType: typeName}
	if letter != "" {
		o.AvailabilityZone = "eu-west-1" + letter
	}
	return o
}

// fleet requests n instances from pools, with one strategy for both purchase options.
func (w *world) fleet(t *testing.T, lifecycle, strategy string, n int, pools ...string) FleetInput {
	t.Helper()
	config := FleetConfig{Template: TemplateRef{Name: w.template(t, nil), Version: "$Latest"}}
	for _, spec := range pools {
		config.Overrides = append(config.Overrides, over(spec))
	}
	in := FleetInput{Type: "instant", Configs: []FleetConfig{config}, Target: FleetTarget{Total: n, DefaultType: lifecycle}}
	if lifecycle == Spot {
		in.SpotOptions.AllocationStrategy = strategy
	} else {
		in.OnDemandOptions.AllocationStrategy = strategy
	}
	return in
}

// outcome is a short form of a fleet: "2 spot m5.large/a", "!InsufficientInstanceCapacity spot …".
func outcome(f Fleet) []string {
	var out []string
	pool := func(p FleetPool) string {
		return p.Override.InstanceType + "/" + strings.TrimPrefix(p.Override.AvailabilityZone, "eu-west-1")
	}
	for _, e := range f.Errors {
		out = append(out, fmt.Sprintf("!%s %s %s", e.Code, e.Lifecycle, pool(e.Pool)))
	}
	for _, i := range f.Instances {
		out = append(out, fmt.Sprintf("%d %s %s", len(i.IDs), i.Lifecycle, pool(i.Pool)))
	}
	return out
}

// prices sets spot prices that are easy to compare.
func (w *world) setPrices(t *testing.T, prices map[string]float64) {
	t.Helper()
	for spec, usd := range prices {
		o := over(spec)
		if err := w.SetSpotPrice(o.InstanceType, o.AvailabilityZone, usd); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFleetChoosesOfferings(t *testing.T) {
	const none = "!InsufficientInstanceCapacity "
	for name, c := range map[string]struct {
		lifecycle, strategy string
		n                   int
		pools               []string
		left                map[string]int // capacity, where limited
		change              func(*FleetInput)
		want                []string
	}{
		"the cheapest on demand": {lifecycle: OnDemand, n: 1, pools: []string{"m5.xlarge/a", "m5.large/b", "m5.large/a"}, want: []string{"1 on-demand m5.large/b"}},
		"the cheapest on demand that is left": {lifecycle: OnDemand, strategy: LowestPrice, n: 1, pools: []string{"m5.xlarge/a", "m5.large/b"},
			left: map[string]int{"m5.large/b": 0}, want: []string{none + "on-demand m5.large/b", "1 on-demand m5.xlarge/a"}},
		"by price and capacity": {lifecycle: Spot, strategy: PriceCapacityOptimized, n: 2, pools: []string{"m5.large/a", "m5.large/b", "c5.large/a"},
			want: []string{"2 spot c5.large/a"}},
		"by price and capacity, avoiding what is empty": {lifecycle: Spot, strategy: PriceCapacityOptimized, n: 2,
			pools: []string{"m5.large/a", "m5.large/b", "c5.large/a"}, left: map[string]int{"c5.large/a": 1}, want: []string{"2 spot m5.large/b"}},
		"over two pools where one is not enough": {lifecycle: Spot, strategy: LowestPrice, n: 3, pools: []string{"m5.large/a", "c5.large/a"},
			left: map[string]int{"c5.large/a": 1}, want: []string{none + "spot c5.large/a", "1 spot c5.large/a", "2 spot m5.large/a"}},
		"nothing anywhere": {lifecycle: Spot, strategy: PriceCapacityOptimized, n: 1, pools: []string{"m5.large/a", "c5.large/a"},
			left: map[string]int{"c5.large/a": 0, "m5.large/a": 0}, want: []string{none + "spot c5.large/a", none + "spot m5.large/a"}},
		"diversified": {lifecycle: Spot, strategy: Diversified, n: 5, pools: []string{"m5.large/a", "m5.large/b", "c5.large/a"},
			want: []string{"2 spot c5.large/a", "2 spot m5.large/b", "1 spot m5.large/a"}},
		"spread over two": {lifecycle: Spot, strategy: LowestPrice, n: 4, pools: []string{"m5.large/a", "m5.large/b", "c5.large/a"},
			change: func(in *FleetInput) { in.SpotOptions.InstancePoolsToUseCount = 2 }, want: []string{"2 spot c5.large/a", "2 spot m5.large/b"}},
		"on demand and on the spot": {lifecycle: Spot, strategy: "lowestPrice", n: 3, pools: []string{"m5.large/a", "c5.large/a"},
			change: func(in *FleetInput) { in.Target.OnDemand = 1 }, want: []string{"1 on-demand c5.large/a", "2 spot c5.large/a"}},
		"a zone by its id": {lifecycle: OnDemand, n: 1, pools: []string{"m5.large"},
			change: func(in *FleetInput) { in.Configs[0].Overrides[0].AvailabilityZoneID = "euw1-az3" }, want: []string{"1 on-demand m5.large/c"}},
		"one type only": {lifecycle: Spot, strategy: LowestPrice, n: 2, pools: []string{"m5.large/a", "m5.large/b", "c5.large/a"},
			left: map[string]int{"c5.large/a": 1}, change: func(in *FleetInput) { in.SpotOptions.SingleInstanceType = true },
			want: []string{"2 spot m5.large/b"}},
		"less than the least": {lifecycle: Spot, strategy: LowestPrice, n: 3, pools: []string{"c5.large/a"}, left: map[string]int{"c5.large/a": 1},
			change: func(in *FleetInput) { in.SpotOptions.SingleInstanceType, in.SpotOptions.MinTargetCapacity = true, 2 },
			want:   []string{"!UnfulfillableCapacity spot c5.large/a"}},
		"an unknown type beside a known one": {lifecycle: OnDemand, n: 1, pools: []string{"m9.huge/a", "m5.large/a"},
			want: []string{"!InvalidParameterValue on-demand m9.huge/a", "1 on-demand m5.large/a"}},
		"another architecture": {lifecycle: OnDemand, n: 1, pools: []string{"m6g.large/a"}, want: []string{"!InvalidParameterValue on-demand m6g.large/a"}},
		"an unknown subnet": {lifecycle: OnDemand, n: 1, pools: []string{"m5.large/a"},
			change: func(in *FleetInput) { in.Configs[0].Overrides[0].SubnetID = "subnet-0" }, want: []string{"!InvalidSubnetID.NotFound on-demand m5.large/a"}},
		"too low a price": {lifecycle: Spot, n: 1, pools: []string{"m5.large/a"},
			change: func(in *FleetInput) { in.Configs[0].Overrides[0].MaxPrice = "0.029" }, want: []string{"!SpotMaxPriceTooLow spot m5.large/a"}},
		"no type at all": {lifecycle: OnDemand, n: 1, pools: []string{"/a"}, want: []string{"!MissingParameter on-demand /a"}},
		"the first name of a strategy": {lifecycle: Spot, strategy: "priceCapacityOptimized", n: 1, pools: []string{"m5.large/a", "c5.large/a"},
			left: map[string]int{"c5.large/a": 0}, want: []string{"1 spot m5.large/a"}},
		"the deepest": {lifecycle: Spot, strategy: "capacityOptimized", n: 1, pools: []string{"c5.large/a", "m5.large/a"},
			left: map[string]int{"c5.large/a": 3}, want: []string{"1 spot m5.large/a"}},
		"the one of priority that has room": {lifecycle: Spot, strategy: "capacityOptimizedPrioritized", n: 1, pools: []string{"m5.large/b", "c5.large/a", "m5.large/a"},
			left: map[string]int{"c5.large/a": 0},
			change: func(in *FleetInput) {
				for i, p := range []float64{3, 1, 2} {
					in.Configs[0].Overrides[i].Priority = &p
				}
			}, want: []string{"1 spot m5.large/a"}},
		"by weight": {lifecycle: Spot, n: 5, pools: []string{"m5.large/a"},
			change: func(in *FleetInput) { two := 2.0; in.Configs[0].Overrides[0].WeightedCapacity = &two }, want: []string{"3 spot m5.large/a"}},
		"by priority": {lifecycle: OnDemand, strategy: Prioritized, n: 1, pools: []string{"c5.large/a", "m5.large/a"},
			change: func(in *FleetInput) { first := 0.0; in.Configs[0].Overrides[1].Priority = &first }, want: []string{"1 on-demand m5.large/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Timing{}, func(t *testing.T, w *world) {
				w.setPrices(t, map[string]float64{"m5.large/a": 0.04, "m5.large/b": 0.03, "c5.large/a": 0.02})
				in := w.fleet(t, c.lifecycle, c.strategy, c.n, c.pools...)
				for spec, n := range c.left {
					o := over(spec)
					w.SetCapacity(Offering{o.InstanceType, o.AvailabilityZone, c.lifecycle}, n)
				}
				if c.change != nil {
					c.change(&in)
				}
				f, err := w.CreateFleet(in)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "outcome", outcome(f), c.want)
			})
		})
	}
}

func TestFleetLaunchesInstances(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		in := w.fleet(t, Spot, PriceCapacityOptimized, 2, "m5.large/b")
		spec := func(kind, value string) TagSpecification {
			return TagSpecification{ResourceType: kind, Tags: []struct{ Key, Value string }{{"for", value}}}
		}
		in.TagSpecifications = []TagSpecification{spec("instance", "i"), spec("volume", "v"), spec("fleet", "f")}
		in.ClientToken = "once"
		f, err := w.CreateFleet(in)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^fleet-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(f.ID) {
			t.Errorf("fleet id %s", f.ID)
		}
		same(t, "pool", f.Instances[0].Pool.Override.SubnetID, w.Subnets()[1].ID)
		again, err := w.CreateFleet(in)
		if err != nil || again.ID != f.ID {
			t.Errorf("with the same token: %s, %v", again.ID, err)
		}
		in.Target.Total = 3
		_, err = w.CreateFleet(in)
		wantCode(t, err, "IdempotentParameterMismatch")

		// The deletion of the template does not affect the fleet's instances.
		if _, err := w.DeleteTemplate(TemplateRef{ID: f.Instances[0].Pool.Template.ID}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
		got := w.Instances()
		same(t, "instances", len(got), 2)
		made := got[0]
		same(t, "instance", []any{
			made.State, made.UserData, made.Zone, made.ImageID, made.Tags["for"], made.Tags["aws:ec2:fleet-id"], made.Tags["aws:ec2launchtemplate:version"], made.Spot(),
		}, []any{Running, "Ym9vdA==", "eu-west-1b", ImageID(X86), "i", f.ID, "1", true})
		same(t, "request", w.request(t, made.ID).State, "active")
		same(t, "tags", []string{w.tagsOn(made.Volumes[0].ID)["for"], w.Fleets()[0].Tags["for"]}, []string{"v", "f"})
		if !slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, made.ID) && strings.Contains(e, `"running"`) }) {
			t.Errorf("no event about %s: %v", made.ID, w.events)
		}
		if _, err := w.Terminate([]string{made.ID}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		wantCode(t, w.CreateTags([]string{made.Volumes[0].ID}, map[string]string{"a": ""}), "InvalidVolume.NotFound")
	})
}

func TestFleetRejectsInvalidRequests(t *testing.T) {
	negative, zero := -1.0, 0.0
	for name, c := range map[string]struct {
		change func(*FleetInput)
		code   string
	}{
		"no type, which is maintain":     {func(in *FleetInput) { in.Type = "" }, "UnsupportedOperation"},
		"an unknown type":                {func(in *FleetInput) { in.Type = "x" }, "InvalidParameterValue"},
		"nothing":                        {func(in *FleetInput) { in.Target.Total = 0 }, "InvalidFleetConfig"},
		"far too much":                   {func(in *FleetInput) { in.Target.Total = 10001 }, "InvalidFleetConfig"},
		"parts above the total":          {func(in *FleetInput) { in.Target.OnDemand, in.Target.Spot = 1, 1 }, "InvalidFleetConfig"},
		"reserved capacity":              {func(in *FleetInput) { in.Target.DefaultType = "reserved-capacity" }, "UnsupportedOperation"},
		"an unknown way to buy":          {func(in *FleetInput) { in.Target.DefaultType = "x" }, "InvalidParameterValue"},
		"no templates":                   {func(in *FleetInput) { in.Configs = nil }, "MissingParameter"},
		"too many templates":             {func(in *FleetInput) { in.Configs = make([]FleetConfig, 51) }, "InvalidFleetConfig"},
		"no version":                     {func(in *FleetInput) { in.Configs[0].Template.Version = "" }, "MissingParameter"},
		"an unknown template":            {func(in *FleetInput) { in.Configs[0].Template.Name = "x" }, "InvalidLaunchTemplateName.NotFoundException"},
		"an unknown version":             {func(in *FleetInput) { in.Configs[0].Template.Version = "9" }, "InvalidLaunchTemplateId.VersionNotFound"},
		"too many overrides":             {func(in *FleetInput) { in.Configs[0].Overrides = make([]FleetOverride, 301) }, "InvalidFleetConfig"},
		"types by attribute":             {func(in *FleetInput) { in.Configs[0].Overrides[0].Requirements = &struct{}{} }, "UnsupportedOperation"},
		"no weight":                      {func(in *FleetInput) { in.Configs[0].Overrides[0].WeightedCapacity = &zero }, "InvalidFleetConfig"},
		"a priority below zero":          {func(in *FleetInput) { in.Configs[0].Overrides[0].Priority = &negative }, "InvalidFleetConfig"},
		"a price in words":               {func(in *FleetInput) { in.Configs[0].Overrides[0].MaxPrice = "cheap" }, "InvalidParameterValue"},
		"an unknown strategy":            {func(in *FleetInput) { in.SpotOptions.AllocationStrategy = "x" }, "InvalidParameterValue"},
		"a strategy of the other market": {func(in *FleetInput) { in.OnDemandOptions.AllocationStrategy = Diversified }, "InvalidParameterValue"},
		"stopping instead of ending":     {func(in *FleetInput) { in.SpotOptions.InstanceInterruptionBehavior = "stop" }, "InvalidFleetConfig"},
		"pools to use with another strategy": {func(in *FleetInput) {
			in.SpotOptions.AllocationStrategy, in.SpotOptions.InstancePoolsToUseCount = Diversified, 2
		}, "InvalidFleetConfig"},
		"a least without a single type or zone": {func(in *FleetInput) { in.SpotOptions.MinTargetCapacity = 1 }, "InvalidFleetConfig"},
		"a reserved tag": {func(in *FleetInput) {
			in.TagSpecifications = []TagSpecification{{ResourceType: "fleet", Tags: []struct{ Key, Value string }{{"aws:x", ""}}}}
		}, "InvalidParameterValue"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Timing{}, func(t *testing.T, w *world) {
				in := w.fleet(t, Spot, "", 1, "m5.large/a")
				c.change(&in)
				_, err := w.CreateFleet(in)
				wantCode(t, err, c.code)
				same(t, "instances", len(w.Instances()), 0)
			})
		})
	}
}

func TestFleetWithFullSubnet(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		w.hosts["eu-west-1a"] = w.Subnets()[0].capacity() - 1
		in := w.fleet(t, OnDemand, LowestPrice, 3, "m5.large/a", "m5.large/b")
		f, err := w.CreateFleet(in)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "outcome", outcome(f), []string{"!InsufficientFreeAddressesInSubnet on-demand m5.large/a", "1 on-demand m5.large/a", "2 on-demand m5.large/b"})
		if f, err = w.CreateFleet(in); err != nil {
			t.Fatal(err)
		}
		same(t, "once it is full", outcome(f)[0], "!InsufficientFreeAddressesInSubnet on-demand m5.large/a")
	})
}

func TestOldFleetsAreForgotten(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		in := w.fleet(t, OnDemand, "", 1, "m9.huge/a")
		for n := range maxFleets + 2 {
			in.ClientToken = fmt.Sprint(n)
			if _, err := w.CreateFleet(in); err != nil {
				t.Fatal(err)
			}
		}
		left := w.Fleets()
		same(t, "fleets", []any{len(left), left[0].Input.ClientToken, len(w.fleetTokens)}, []any{maxFleets, "2", maxFleets})
	})
}

// A template with tags for spot requests cannot be used on demand.
func TestTagsForUncreatedSpotRequest(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		in := w.fleet(t, OnDemand, "", 1, "m5.large/a")
		in.Configs[0].Template.Name = w.template(t, func(d *TemplateData) {
			d.TagSpecifications = []TagSpecification{{ResourceType: "spot-instances-request", Tags: []struct{ Key, Value string }{{"a", "b"}}}}
		})
		f, err := w.CreateFleet(in)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "on demand", outcome(f), []string{"!InvalidParameterValue on-demand m5.large/a"})
		in.Target.DefaultType = Spot
		if f, err = w.CreateFleet(in); err != nil {
			t.Fatal(err)
		}
		same(t, "on the spot", outcome(f), []string{"1 spot m5.large/a"})
		same(t, "tags", w.request(t, f.Instances[0].IDs[0]).Tags, map[string]string{"a": "b"})
	})
}
