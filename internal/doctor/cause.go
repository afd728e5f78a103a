package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// causeTimeout limits the duration of Cause.
const causeTimeout = 10 * time.Second

// Cause explains in one sentence why the queue did not deliver a notice of a kind,
// and how to fix it. fix is empty if nothing needs a fix. It is for a controller that
// received the notice from another source. It makes a few dozen read-only AWS calls,
// in ten seconds at most, and always returns a sentence.
func Cause(ctx context.Context, clients Clients, target Target, kind string) (sentence, fix string) {
	if !slices.Contains(kinds(), kind) {
		return "the queue does not deliver notices of kind " + kind, ""
	}
	ctx, cancel := context.WithTimeout(ctx, causeTimeout)
	defer cancel()
	found, err := readBrief(ctx, clients, target)
	if err != nil {
		return fmt.Sprintf("the wiring could not be checked: %v", err), "lifeboat doctor --cluster " + clusterName(target)
	}
	all := Run(found, target.Desired, Cluster{})
	for _, explains := range []func(finding.Finding) bool{
		func(f finding.Finding) bool { return f.Severity == finding.Broken && explainsLoss(f, kind) },
		func(f finding.Finding) bool { return slices.Contains(f.Kinds, kind) },
		func(f finding.Finding) bool { return f.Severity == finding.Unknown },
	} {
		if i := slices.IndexFunc(all, explains); i >= 0 {
			return all[i].Object + ": " + all[i].Problem, all[i].Fix
		}
	}
	return "the wiring for it has no known problem. EventBridge delivers EC2's events on a best-effort basis: this one was lost or is late, or another reader took it from the queue", ""
}

// explainsLoss reports whether a finding explains why notices of a kind do not
// arrive.
func explainsLoss(f finding.Finding, kind string) bool {
	switch f.ID {
	case idQueueMissing, idQueueEncryptionAWSKey, idQueueEncryptionKey:
		return true // no notice arrives
	}
	return slices.Contains(f.Kinds, kind)
}

func clusterName(t Target) string {
	if t.Desired.Cluster == "" {
		return "NAME"
	}
	return t.Desired.Cluster
}
