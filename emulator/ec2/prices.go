package ec2

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// SpotPrice is the hourly price of a spot instance from a time on.
type SpotPrice struct {
	Type, Zone string
	USD        float64
	Since      time.Time
}

// pool is a type in a zone, which has one spot price.
type pool struct{ typeName, zone string }

// basePrice is the initial spot price of a pool: 30 to 45 per cent of the on-demand price, stable
// for each pool.
func basePrice(p pool) float64 {
	onDemand, _ := OnDemandPrice(p.typeName)
	share := 0.30 + float64(hash(p.typeName, p.zone)%1500)/1e4
	return math.Round(onDemand*share*1e4) / 1e4
}

// SetSpotPrice changes the spot price of a type in a zone from now on. Running instances continue.
// The error names an unknown type or zone.
func (s *State) SetSpotPrice(typeName, zone string, usdPerHour float64) error {
	if _, ok := FindType(typeName); !ok {
		return fmt.Errorf("setting a spot price: no type %q; Types lists those there are", typeName)
	}
	if _, err := s.place("", zone); zone == "" || err != nil {
		return fmt.Errorf("setting a spot price: no zone %q; Subnets lists those there are", zone)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := pool{typeName, zone}
	s.prices[p] = append(s.prices[p], SpotPrice{typeName, zone, usdPerHour, time.Now().UTC().Truncate(time.Second)})
	return nil
}

// SpotPrice is the spot price of a type in a zone now, in USD an hour, and whether the
// type is known.
func (s *State) SpotPrice(typeName, zone string) (usdPerHour float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok = FindType(typeName)
	return s.spotPrice(typeName, zone), ok
}

// spotPrice needs the lock.
func (s *State) spotPrice(typeName, zone string) float64 {
	p := pool{typeName, zone}
	if changes := s.prices[p]; len(changes) > 0 {
		return changes[len(changes)-1].USD
	}
	return basePrice(p)
}

// SpotPriceHistory lists the spot prices that were valid between from and to, the latest first; a
// zero time leaves that end open.
func (s *State) SpotPriceHistory(from, to time.Time) []SpotPrice {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []SpotPrice
	subnets := s.Subnets()
	for _, t := range catalogue {
		for _, n := range subnets {
			p := pool{t.Name, n.Zone}
			all := append([]SpotPrice{{t.Name, n.Zone, basePrice(p), s.born}}, s.prices[p]...)
			out = append(out, pricesWithin(all, from, to)...)
		}
	}
	slices.SortStableFunc(out, func(a, b SpotPrice) int { return cmp.Compare(b.Since.Unix(), a.Since.Unix()) })
	return out
}

// pricesWithin returns those of one pool's prices, oldest first, that were valid in a period.
func pricesWithin(all []SpotPrice, from, to time.Time) []SpotPrice {
	var out []SpotPrice
	for i, p := range all {
		ended := i+1 < len(all) && !from.IsZero() && !all[i+1].Since.After(from)
		if !ended && (to.IsZero() || !p.Since.After(to)) {
			out = append(out, p)
		}
	}
	return out
}
