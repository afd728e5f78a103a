// Package groupcache caches the Auto Scaling groups of the cluster's instances
// and the instances' lifecycle states. One poller serves all users: one call
// for a hundred groups and one per warm pool, at an interval, and sooner on
// request. The number of calls depends neither on instances nor on users.
package groupcache

import (
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// Group is an Auto Scaling group as last read.
type Group struct {
	Name, ARN string
	// Operator manages the group on behalf of its account, such as EKS; empty:
	// none.
	Operator          string
	Min, Max, Desired int32
	// Suspended are the names of suspended processes.
	Suspended []string
	Tags      map[string]string
	// Pool is true if it has a warm pool, Reuse if instances return to the pool
	// on scale-in.
	Pool, Reuse bool
	// Hooks are its lifecycle hooks; HooksKnown is true once they were read.
	Hooks      []Hook
	HooksKnown bool
	// Members are its instances, including warm ones.
	Members []Member
	// At is when the request was sent. The group may lack later changes.
	At time.Time
}

// Busy reports whether an instance of the group is in a lifecycle transition.
func (g *Group) Busy() bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool { return m.At.Step != lifecycle.There })
}

// Hook is a lifecycle hook; a group does not tell whose it is.
type Hook = lifecycle.Hook

// Member is an instance of a group.
type Member struct {
	InstanceID, Group string
	// State is the lifecycle state as Auto Scaling reports it; At is its
	// meaning.
	State string
	At    lifecycle.Position
	// Healthy is Auto Scaling's health status, Protected its scale-in
	// protection.
	Healthy, Protected bool
	// LaunchTemplateVersion is the version that it was launched from.
	LaunchTemplateVersion string
}
