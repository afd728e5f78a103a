package cli

import (
	"context"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkGroup is one part of the checks. An error means that this part, or some of it,
// could not be checked; the other parts still run.
type checkGroup struct {
	name  string
	check func(context.Context) ([]finding.Finding, error)
	// main is true if the user asked for just this part, so that its error is that of
	// the command.
	main bool
}

// groups returns the checks, in order.
func (d *doctorRun) groups() []checkGroup {
	if d.flags.offline {
		return []checkGroup{{"files", d.files, true}}
	}
	groups := []checkGroup{
		{"AWS resources", d.awsResources, true},
		{"Lifeboat in the cluster", d.installed, false},
		{"CRDs", d.crds, false},
		{"policies", d.policies, false},
		{"permissions of the controller", d.controllerPermissions, false},
		{"node groups", d.nodeGroups, false},
		{"agents", d.agents, false},
		{"admission policies", d.admissionPolicies, false},
		{"writes of the controller", d.writes, false},
		{"workloads", d.workloads, false},
	}
	if d.flags.probe {
		groups = append(groups, checkGroup{"probe path", d.probe, true})
	}
	return groups
}
