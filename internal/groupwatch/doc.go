// Package groupwatch knows in which Auto Scaling groups the cluster's instances
// are, and in which lifecycle state. It asks once for everybody: a call for a
// hundred groups, and one for each group with a warm pool, at an interval, and
// sooner where something hints that there is news. The calls do not grow with
// instances, nor with how many want to know.
package groupwatch

import (
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// Group is an Auto Scaling group as it was last seen.
type Group struct {
	Name, ARN string
	// Operator owns the group in place of its account, such as EKS; empty: none.
	Operator          string
	Min, Max, Desired int32
	// Suspended are the names of suspended processes.
	Suspended []string
	Tags      map[string]string
	// Pool tells whether it has a warm pool, and Reuse whether instances go back
	// to it when the group shrinks.
	Pool, Reuse bool
	// Hooks are its lifecycle hooks; HooksKnown, whether they could be read.
	Hooks      []Hook
	HooksKnown bool
	// Members are its instances, warm ones as well.
	Members []Member
	// At is when it was asked about: what is newer than that, it may not tell.
	At time.Time
}

// Busy reports whether an instance of the group is on its way.
func (g *Group) Busy() bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool { return m.At.Step != lifecycle.There })
}

// Hook is a lifecycle hook; a group does not tell whose it is.
type Hook = lifecycle.Hook

// Member is an instance of a group.
type Member struct {
	InstanceID, Group string
	// State is the lifecycle state as Auto Scaling writes it; At what it means.
	State string
	At    lifecycle.Position
	// Healthy as Auto Scaling sees it, and Protected from scale-in.
	Healthy, Protected bool
	// LaunchTemplateVersion is what it was launched from.
	LaunchTemplateVersion string
}
