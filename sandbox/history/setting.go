package history

import "github.com/lifeboat-dev/lifeboat/sandbox/chaos"

// Setting is the sandbox that a history plays on.
type Setting struct {
	Name string
	// Replicas is how many replicas of lifeboatd run.
	Replicas int
	// Agents: each node has an agent, which reads the notice and its time from the metadata.
	Agents bool
	// Karpenter launches some of the nodes.
	Karpenter bool
	// Group: some of the nodes are members of an Auto Scaling group with Lifeboat's lifecycle hooks.
	Group bool
}

// Settings are all settings.
func Settings() []Setting {
	return []Setting{
		{Name: "one replica", Replicas: 1},
		{Name: "two replicas", Replicas: 2},
		{Name: "agents", Replicas: 1, Agents: true},
		{Name: "two replicas and agents", Replicas: 2, Agents: true},
		{Name: "Karpenter", Replicas: 1, Karpenter: true},
		{Name: "Auto Scaling group", Replicas: 1, Group: true},
	}
}

// sources are the sources of notices.
func (s Setting) sources() string {
	all := "sqs,ec2"
	if s.Agents {
		all += ",imds"
	}
	if s.Group {
		all += ",autoscaling"
	}
	return all
}

// SettingOf is the setting of a seed. It is an index of [Settings].
func SettingOf(seed uint64) int { return int(seed % uint64(len(Settings()))) }

// skipped are faults that random histories do not have, with the reason.
var skipped = map[string]string{
	"freeze-control-plane":      "the audit log has requests that were frozen, with times that no client saw",
	"step-clock-control-plane":  "the audit log has the times of that clock",
	"drift-clock-control-plane": "the audit log has the times of that clock",
}

// faults are the names of the faults of a setting, without some. They do not depend on a sandbox, so that
// a seed gives the same history everywhere.
func (s Setting) faults(without map[string]string) (names []string) {
	missing := map[string]bool{chaos.PartAgents: !s.Agents, chaos.PartKarpenter: !s.Karpenter, chaos.PartStandby: s.Replicas < 2}
	for _, f := range chaos.Menu() {
		if !missing[f.Part] && without[f.Name] == "" {
			names = append(names, f.Name)
		}
	}
	return names
}
