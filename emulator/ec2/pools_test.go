package ec2

import (
	"strings"
	"testing"
	"time"
)

func TestCapacityRunsOut(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		launch := func(zone string, spot *SpotOptions, least, most int) (int, error) {
			made, err := w.Launch(LaunchInput{ImageID: "ami-1", Type: "m5.large", Zone: zone, Min: least, Max: most, Spot: spot})
			return len(made), err
		}
		w.SetCapacity(Offering{"m5.large", "eu-west-1a", Spot}, 2)
		if n, err := launch("eu-west-1a", &SpotOptions{}, 1, 3); err != nil || n != 2 {
			t.Errorf("launched %d of 3 where 2 are left: %v", n, err)
		}
		_, err := launch("eu-west-1a", &SpotOptions{}, 1, 1)
		wantCode(t, err, "InsufficientInstanceCapacity")
		for _, other := range []struct {
			zone string
			spot *SpotOptions
		}{{"eu-west-1a", nil}, {"eu-west-1b", &SpotOptions{}}} {
			if _, err := launch(other.zone, other.spot, 1, 1); err != nil {
				t.Errorf("another pool: %v", err)
			}
		}
		w.SetCapacity(Offering{Zone: "eu-west-1b"}, 0)
		_, err = launch("eu-west-1b", nil, 1, 1)
		wantCode(t, err, "InsufficientInstanceCapacity")
		w.SetCapacity(Offering{Zone: "eu-west-1b"}, -1)
		if _, err := launch("eu-west-1b", nil, 1, 1); err != nil {
			t.Errorf("after lifting: %v", err)
		}
		w.SetCapacity(Offering{Type: "m5.large"}, 5)
		_, err = launch("eu-west-1c", nil, 6, 6)
		wantCode(t, err, "InsufficientInstanceCapacity")
		w.RestoreCapacity()
		if _, err := launch("eu-west-1a", &SpotOptions{}, 6, 6); err != nil {
			t.Errorf("after restoring: %v", err)
		}
	})
}

func TestReclaimedOfferingMayRunOut(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		if err := w.Interrupt([]string{id}, InterruptOptions{Exhaust: true}); err != nil {
			t.Fatal(err)
		}
		again := LaunchInput{ImageID: "ami-0abc", Zone: "eu-west-1b", Min: 1, Max: 1, Spot: &SpotOptions{}}
		_, err := w.Launch(again)
		wantCode(t, err, "InsufficientInstanceCapacity")
		w.pass(3 * time.Minute)
		_, err = w.Launch(again)
		wantCode(t, err, "InsufficientInstanceCapacity")
		again.Type = "m5.xlarge"
		if _, err = w.Launch(again); err != nil {
			t.Errorf("another type: %v", err)
		}
	})
}

func TestSpotPrices(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		born := time.Now()
		for _, in := range Types() {
			onDemand, _ := OnDemandPrice(in.Name)
			for _, n := range w.Subnets() {
				price, ok := w.SpotPrice(in.Name, n.Zone)
				if !ok || price < onDemand*0.29 || price > onDemand*0.46 {
					t.Errorf("%s in %s: %g on the spot, %g on demand", in.Name, n.Zone, price, onDemand)
				}
			}
		}
		all := 3 * len(Types())
		same(t, "prices", len(w.SpotPriceHistory(time.Time{}, time.Time{})), all)
		w.pass(time.Hour)
		changed := time.Now()
		if err := w.SetSpotPrice("m5.large", "eu-west-1a", 0.05); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		price, _ := w.SpotPrice("m5.large", "eu-west-1a")
		same(t, "the price now", price, 0.05)
		for name, c := range map[string]struct {
			from, to time.Time
			want     int
		}{
			"now":               {time.Now(), time.Time{}, all},
			"since the change":  {changed, time.Time{}, all},
			"before the change": {born, changed.Add(-time.Minute), all},
			"all the time":      {born, time.Now(), all + 1},
			"long before":       {time.Time{}, born.Add(-time.Hour), 0},
		} {
			same(t, name, len(w.SpotPriceHistory(c.from, c.to)), c.want)
		}
		latest := w.SpotPriceHistory(born, time.Time{})[0]
		same(t, "the latest", []any{latest.Type, latest.Zone, latest.text()}, []any{"m5.large", "eu-west-1a", "0.050000"})
		if w.SetSpotPrice("m9.huge", "eu-west-1a", 1) == nil || w.SetSpotPrice("m5.large", "us-east-1a", 1) == nil {
			t.Error("set the price of what is not there")
		}
	})
}

func TestInstanceQuota(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		launch := func(least, most int, spot *SpotOptions) ([]Instance, error) {
			return w.Launch(LaunchInput{ImageID: "ami-1", Type: "m5.xlarge", Min: least, Max: most, Spot: spot})
		}
		for range MostInstances/1000 - 1 {
			if _, err := launch(1000, 1000, nil); err != nil {
				t.Fatal(err)
			}
		}
		fleet, err := w.CreateFleet(w.fleet(t, OnDemand, LowestPrice, 10_000, "m5.xlarge/a"))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "a fleet", outcome(fleet), []string{"!VcpuLimitExceeded on-demand m5.xlarge/a", "1000 on-demand m5.xlarge/a"})
		same(t, "instances", len(w.Instances()), MostInstances)

		_, err = launch(1, 1, nil)
		wantCode(t, err, "VcpuLimitExceeded")
		if want := "your current vCPU limit of 20000 allows"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v, without %q", err, want)
		}
		_, err = launch(1, 1, &SpotOptions{})
		wantCode(t, err, "MaxSpotInstanceCountExceeded")
		least := w.fleet(t, Spot, LowestPrice, 2, "m5.xlarge/a")
		least.SpotOptions.SingleInstanceType, least.SpotOptions.MinTargetCapacity = true, 1
		fleet, err = w.CreateFleet(least)
		same(t, "a fleet with a minimum", []any{err, outcome(fleet)}, []any{nil, []string{"!UnfulfillableCapacity spot m5.xlarge/a"}})

		w.pass(time.Second)
		ids := w.Fleets()[0].Instances[0].IDs[:3]
		for range 2 { // the second time they are terminating already
			if _, err := w.Terminate(ids); err != nil {
				t.Fatal(err)
			}
			_, err = launch(1, 1, nil)
			wantCode(t, err, "VcpuLimitExceeded")
		}
		w.pass(3 * time.Second)
		made, err := launch(1, 10, nil)
		same(t, "as many as have ended", []any{len(made), err}, []any{3, nil})
	})
}
