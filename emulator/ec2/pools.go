package ec2

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// The ways to buy an instance that capacity is kept apart by.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

// Offering is a capacity pool: instances of one type in one zone, bought in one way. An
// empty field stands for any.
type Offering struct {
	Type, Zone   string
	CapacityType string // OnDemand or Spot
}

// SetCapacity lets EC2 give out n more instances of an offering and then no more, as if
// it ran out of machines; 0 means none from now on, a negative n as many as one likes.
// Where several settings meet an offering, such as one of its type and one of its zone,
// all of them have to allow a launch. What has been given out does not come back when
// it ends.
func (s *State) SetCapacity(o Offering, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit(o, n)
}

// RestoreCapacity ends all of SetCapacity's settings.
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

// within lists the settings that can meet a pool.
func (o Offering) within() []Offering {
	out := make([]Offering, 0, 8)
	for _, t := range []string{o.Type, ""} {
		for _, z := range []string{o.Zone, ""} {
			out = append(out, Offering{t, z, o.CapacityType}, Offering{t, z, ""})
		}
	}
	return out
}

// room is how many more instances a pool gives out. It needs the lock.
func (s *State) room(o Offering) int {
	least := math.MaxInt
	for _, setting := range o.within() {
		if n, limited := s.limits[setting]; limited {
			least = min(least, n)
		}
	}
	return least
}

// take gives n instances of a pool out. It needs the lock.
func (s *State) take(o Offering, n int) {
	for _, setting := range o.within() {
		if left, limited := s.limits[setting]; limited {
			s.limits[setting] = max(left-n, 0)
		}
	}
}

// depth is how much capacity a pool seems to have, for the allocation strategies that
// look for the deepest: what is left where that is limited, else a number of its own
// from 1000 to 1999. It needs the lock.
func (s *State) depth(o Offering) int {
	if n := s.room(o); n < math.MaxInt {
		return n
	}
	return 1000 + int(hash(o.Type, o.Zone, "depth")%1000)
}

// hash is a number that always is the same for the same words.
func hash(words ...string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, strings.Join(words, "\x00"))
	return h.Sum64()
}

// noCapacity is what EC2 says when a pool is empty (EC2 API Reference, Error codes).
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
