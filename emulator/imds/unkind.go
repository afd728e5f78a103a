package imds

import (
	"math/rand/v2"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Unkind is how late and how unreliable all services are. The zero value is never.
type Unkind struct {
	// Random draws the delays and the failures. The state uses it under its lock.
	Random *rand.Rand
	// NoticeLag is how late a spot notice or a rebalance recommendation appears at most, after the
	// event of EventBridge.
	NoticeLag time.Duration
	// Failures is the share of requests that get 503 (EC2 User Guide, "Access instance metadata",
	// response codes).
	Failures float64
}

// SetUnkind changes it from the next notice and request on.
func (s *State) SetUnkind(u Unkind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkind = u
}

func (u Unkind) lag() time.Duration {
	if u.Random == nil || u.NoticeLag == 0 {
		return 0
	}
	return time.Duration(u.Random.Int64N(int64(u.NoticeLag)))
}

// failsNow reports whether a request fails.
func (s *State) failsNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unkind.Random != nil && s.unkind.Random.Float64() < s.unkind.Failures
}

// asShown is an instance without the notice that its metadata does not have yet.
func (s *State) asShown(in ec2.Instance) ec2.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.shown[in.ID]) {
		in.Notice, in.RebalanceAt = ec2.Notice{}, time.Time{}
	}
	return in
}
