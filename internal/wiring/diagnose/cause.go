package diagnose

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// longestCause bounds how long Cause takes.
const longestCause = 10 * time.Second

// Cause says in a sentence why the queue did not bring a notice of a kind, as far
// as can be told, and how to mend that; the mend is empty where there is nothing
// to mend. It is for a controller that heard of it another way: it asks AWS
// a few dozen questions, in ten seconds at most, changes nothing, and always has an
// answer.
func Cause(ctx context.Context, clients Clients, target Target, kind string) (sentence, fix string) {
	if !slices.Contains(kinds(), kind) {
		return "notices of the kind " + kind + " do not come through the queue", ""
	}
	ctx, cancel := context.WithTimeout(ctx, longestCause)
	defer cancel()
	found, err := glance(ctx, clients, target)
	if err != nil {
		return fmt.Sprintf("the wiring could not be looked at: %v", err), "lifeboat doctor --cluster " + clusterName(target)
	}
	all := Run(found, target.Want, Cluster{})
	for _, explains := range []func(finding.Finding) bool{
		func(f finding.Finding) bool { return f.Severity == finding.Broken && concerns(f, kind) },
		func(f finding.Finding) bool { return slices.Contains(f.Kinds, kind) },
		func(f finding.Finding) bool { return f.Severity == finding.Unknown },
	} {
		if i := slices.IndexFunc(all, explains); i >= 0 {
			return all[i].Object + ": " + all[i].Problem, all[i].Fix
		}
	}
	return "the wiring for it looks right: EventBridge delivers EC2's events on a best-effort basis, and this one was lost or is late, or somebody else took it from the queue", ""
}

// concerns tells whether a finding explains the silence about a kind.
func concerns(f finding.Finding, kind string) bool {
	switch f.ID {
	case idQueueMissing, idQueueEncryptionAWSKey, idQueueEncryptionKey:
		return true // nothing at all arrives
	}
	return slices.Contains(f.Kinds, kind)
}

func clusterName(t Target) string {
	if t.Want.Cluster == "" {
		return "NAME"
	}
	return t.Want.Cluster
}
