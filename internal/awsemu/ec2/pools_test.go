package ec2

import (
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
