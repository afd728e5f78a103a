package ec2

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// The purchase options with separate capacity.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

// Offering is a capacity pool: instances of one type in one zone with one purchase option. An empty
// field matches any.
type Offering struct {
	Type, Zone   string
	CapacityType string // OnDemand or Spot
}

// SetCapacity lets EC2 launch n more instances of an offering, and then rejects launches for lack
// of capacity. 0 means none from now on, a negative n no limit. If several settings match a launch,
// such as one for its type and one for its zone, all must allow it. Terminated instances do not
// return capacity.
func (s *State) SetCapacity(o Offering, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit(o, n)
}

// RestoreCapacity removes all settings of SetCapacity.
func (s *State) RestoreCapacity() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.limits)
}

// limit needs the lock.
func (s *State) limit(o Offering, n int) {
	if n < 0 {
		delete(s.limits, o)
		return
	}
	s.limits[o] = n
}

// within lists the settings that can match a pool.
func (o Offering) within() []Offering {
	out := make([]Offering, 0, 8)
	for _, t := range []string{o.Type, ""} {
		for _, z := range []string{o.Zone, ""} {
			out = append(out, Offering{t, z, o.CapacityType}, Offering{t, z, ""})
		}
	}
	return out
}

// room is how many more instances a pool can launch. It needs the lock.
func (s *State) room(o Offering) int {
	least := math.MaxInt
	for _, setting := range o.within() {
		if n, limited := s.limits[setting]; limited {
			least = min(least, n)
		}
	}
	return least
}

// take subtracts n instances from a pool. It needs the lock.
func (s *State) take(o Offering, n int) {
	for _, setting := range o.within() {
		if left, limited := s.limits[setting]; limited {
			s.limits[setting] = max(left-n, 0)
		}
	}
}

// depth is the estimated capacity of a pool, for capacity-optimized strategies: the remaining
// capacity if it is limited, else a fixed number from 1000 to 1999. It needs the lock.
func (s *State) depth(o Offering) int {
	if n := s.room(o); n < math.MaxInt {
		return n
	}
	return 1000 + int(hash(o.Type, o.Zone, "depth")%1000)
}

// hash is a stable number for the given words.
func hash(words ...string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, strings.Join(words, "\x00"))
	return h.Sum64()
}

// noCapacity is EC2's error for a pool without capacity (EC2 API Reference, Error codes).
func noCapacity(o Offering) *wire.Error {
	e := &wire.Error{Status: http.StatusInternalServerError, Code: "InsufficientInstanceCapacity"}
	if o.CapacityType == Spot {
		e.Message = "There is no Spot capacity available that matches your request."
		return e
	}
	e.Message = fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). "+
		"Our system will be working on provisioning additional capacity. You can currently get %s capacity by not specifying "+
		"an Availability Zone in your request.", o.Type, o.Zone, o.Type)
	return e
}
