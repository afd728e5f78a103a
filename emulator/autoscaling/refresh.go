package autoscaling

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Refresh is an instance refresh: the group replaces its instances, oldest first, those in service
// before warm ones (Amazon EC2 Auto Scaling User Guide, Use an instance refresh).
type Refresh struct {
	ID, Group string
	Options   RefreshOptions
	// Status is InProgress, Successful, Cancelling or Cancelled.
	Status     string
	Start, End time.Time // End is zero while it is in progress
	// Left and Total count instances.
	Left, Total int
}

// RefreshOptions says how to refresh.
type RefreshOptions struct {
	// MinHealthy is the percentage of the desired capacity that stays in service; nil: 90. With 100
	// each replacement is launched before its predecessor is terminated.
	MinHealthy *int
	// SkipMatching skips instances that have the current template.
	SkipMatching bool
	// Protected is the handling of instances with scale-in protection: Wait (the default), Ignore
	// or Refresh.
	Protected string
}

func (o RefreshOptions) minHealthy() int {
	if o.MinHealthy == nil {
		return 90
	}
	return *o.MinHealthy
}

// concerns reports whether the refresh replaces an instance.
func (o RefreshOptions) concerns(m Member, outdated bool) bool {
	switch {
	case leaving(m.State) || m.State == Standby || m.State == EnteringStandby:
		return false
	case o.SkipMatching && !outdated, m.Protected && o.Protected == "Ignore":
		return false
	default:
		return true
	}
}

type refresh struct {
	Refresh
	todo  []string // instance ids
	going []string // instances that were replaced and are not terminated yet
}

const causeRefresh = "an instance was taken out of service in response to an instance refresh."

// active is the refresh in progress; nil: none.
func (g *group) active() *refresh {
	if n := len(g.refresh); n > 0 && g.refresh[n-1].End.IsZero() {
		return g.refresh[n-1]
	}
	return nil
}

// StartRefresh starts an instance refresh, and returns its id. Errors: ValidationError;
// InstanceRefreshInProgress.
func (s *State) StartRefresh(groupName string, o RefreshOptions) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	switch {
	case err != nil:
		return "", err
	case !g.hasTemplate():
		return "", validation("This emulator refreshes only groups with a launch template.")
	case g.active() != nil:
		return "", wire.Errorf("InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	case o.minHealthy() < 0 || o.minHealthy() > 100:
		return "", constraint(o.minHealthy(), "minHealthyPercentage", "have value between 0 and 100")
	}
	r := &refresh{Refresh: Refresh{ID: string(uuid.NewUUID()), Group: g.Name, Options: o, Status: "InProgress", Start: time.Now().UTC()}}
	now := s.current(g)
	for _, m := range s.of(g) {
		if o.concerns(m.Member, outdated(m.Member, now)) {
			r.todo = append(r.todo, m.InstanceID)
		}
	}
	r.Left, r.Total = len(r.todo), len(r.todo)
	g.refresh = append(g.refresh, r)
	s.scheduleEvaluation(g)
	return r.ID, nil
}

// CancelRefresh cancels the active refresh, and returns its id; started replacements continue.
// Errors: ValidationError; ActiveInstanceRefreshNotFound.
func (s *State) CancelRefresh(groupName string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return "", err
	}
	r := g.active()
	if r == nil {
		return "", wire.Errorf("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", g.Name)
	}
	r.Status = "Cancelling"
	s.scheduleEvaluation(g)
	return r.ID, nil
}

// Refreshes lists the refreshes of a group, newest first. The error is ValidationError.
func (s *State) Refreshes(groupName string) ([]Refresh, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return nil, err
	}
	var out []Refresh
	for _, r := range slices.Backward(g.refresh) {
		out = append(out, r.Refresh)
	}
	return out, nil
}

// advance takes a group's refresh one step further. It needs the lock.
func (s *State) advance(g *group) {
	r := g.active()
	if r == nil || !g.does(InstanceRefresh) {
		return
	}
	r.todo = slices.DeleteFunc(r.todo, func(id string) bool {
		m := s.members[id]
		gone := m == nil || m.Group != g.Name || leaving(m.State)
		if gone {
			r.going = append(r.going, id)
		}
		return gone
	})
	r.going = slices.DeleteFunc(r.going, func(id string) bool {
		m := s.members[id]
		return m == nil || m.Group != g.Name || retained(m.State)
	})
	r.Left = len(r.todo)
	serving := s.serving(g)
	switch {
	case r.Status == "Cancelling":
		r.Status, r.End = "Cancelled", time.Now().UTC()
	case r.Left+len(r.going) == 0 && serving >= g.Desired:
		r.Status, r.End = "Successful", time.Now().UTC()
	default:
		s.refreshSome(g, r, serving)
	}
}

// serving is how many instances are in service and healthy. It needs the lock.
func (s *State) serving(g *group) int {
	n := 0
	for _, m := range s.of(g) {
		if m.State == InService && !m.Unhealthy {
			n++
		}
	}
	return n
}

// refreshable lists the instances that a refresh can replace now, in service and warm. It needs the
// lock.
func (s *State) refreshable(r *refresh) (cold, warm []*member) {
	for _, id := range r.todo {
		switch m := s.members[id]; {
		case m.State.warm():
			warm = append(warm, m)
		case m.Protected && r.Options.Protected != "Refresh":
		case m.State == InService && m.ReplaceCause == "":
			cold = append(cold, m)
		}
	}
	return cold, warm
}

// refreshSome replaces as many instances as the minimum allows, and at least one when all are in
// service. It needs the lock.
func (s *State) refreshSome(g *group, r *refresh, serving int) {
	cold, warm := s.refreshable(r)
	room := serving - (g.Desired*r.Options.minHealthy()+99)/100
	if room <= 0 && serving >= g.Desired {
		room = 1
	}
	for _, m := range cold[:min(max(room, 0), len(cold))] {
		if r.Options.minHealthy() == 100 {
			s.replaceMember(m, causeRefresh)
			continue
		}
		p, _ := ScaleIn.path()
		s.startTransition(m, p, causeRefresh)
	}
	if len(r.todo) > len(warm) || serving < g.Desired {
		return
	}
	for _, m := range warm {
		if ready(m.State) {
			p, _ := PoolShrink.path()
			s.startTransition(m, p, causeRefresh)
		}
	}
}
