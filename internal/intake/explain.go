package intake

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// maxOrigin bounds the account and the region that a message names, in a log line.
const maxOrigin = 64

// refuses reports whether the notice is of another account or region, and logs it.
func (r *Recorder) refuses(ctx context.Context, n *notice.Notice) bool {
	switch {
	case isOther(n.Account, r.o.Account):
		r.explain(ctx, "account", "refused notice of another account", describe(n,
			"account", notice.Cut(n.Account, maxOrigin), "expected", r.o.Account,
			"advice", "let only this account's rules send to the source (aws:SourceAccount in the queue policy); if the account is this cluster's, correct the one that Lifeboat was given"))
		return true
	case isOther(n.Region, r.o.Region):
		r.explain(ctx, "region", "refused notice of another region", describe(n,
			"region", notice.Cut(n.Region, maxOrigin), "expected", r.o.Region,
			"advice", "remove the rule that forwards from that region; if the region is this cluster's, correct the one that Lifeboat was given"))
		return true
	}
	return false
}

func isOther(found, expected string) bool {
	return found != "" && expected != "" && found != expected
}

func (r *Recorder) explainImplausible(ctx context.Context, n *notice.Notice) {
	r.explain(ctx, "implausible "+n.Kind, "refused notice that claims to be issued in the future", describe(n,
		"advice", "check the clock of this pod's node, and who may send to the source: AWS issues no notice for the future"))
}

func (r *Recorder) explainStale(ctx context.Context, n *notice.Notice) {
	r.explain(ctx, "stale "+n.Kind, "dropped stale notice", describe(n,
		"advice", "see why it came so late: messages waited in the source while no replica of Lifeboat ran, or EventBridge could not deliver them"))
}

func (r *Recorder) explainEarlier(ctx context.Context, n *notice.Notice) {
	r.explain(ctx, "earlier "+n.Kind, "dropped notice from before the instance was started again", describe(n,
		"advice", "nothing: the instance was started since, manually or from a warm pool"))
}

func (r *Recorder) explainUnknown(ctx context.Context, n *notice.Notice) {
	r.explain(ctx, "unknown "+n.Kind, "dropped notice of an instance that is not of this cluster", describe(n,
		"advice", "nothing, if the instance is of another cluster or its node was removed before it"))
}

// explain logs at most one line a minute for each key.
func (r *Recorder) explain(ctx context.Context, key, message string, names []any) {
	if held, ok := r.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}

// describe returns the key-value pairs of a log line about a notice, followed by more.
func describe(n *notice.Notice, more ...any) []any {
	names := []any{"instance", n.InstanceID, "kind", n.Kind, "source", n.Source, "notice", n.ID,
		"issued", n.Time.UTC().Format(time.RFC3339)}
	if n.InstanceState != "" {
		names = append(names, "state", n.InstanceState)
	}
	if n.Deadline != nil {
		names = append(names, "deadline", deadlineText(n.Deadline))
	}
	return append(names, more...)
}

func deadlineText(d *v1beta1.Deadline) string {
	return d.Time.UTC().Format(time.RFC3339) + " " + string(d.Type)
}
