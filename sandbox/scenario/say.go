package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// say writes an operator's decision, under that user's name, with the patch of `lifeboat approve`,
// `hold` and `release`.
func (p *player) say(ctx context.Context, st SayStatement) error {
	who := rest.CopyConfig(p.sandbox.RESTConfig())
	who.Impersonate = rest.ImpersonationConfig{UserName: st.By, Groups: []string{"system:masters", "system:authenticated"}}
	c, err := client.New(who, client.Options{Scheme: p.client.Scheme()})
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", st.By, err)
	}
	var record v1alpha1.Interruption
	if err := c.Get(ctx, types.NamespacedName{Name: p.nodes[st.Node].ID}, &record); err != nil {
		return fmt.Errorf("reading the Interruption of node %s: %w", st.Node, err)
	}
	patch, err := sayPatch(st, &record, time.Now())
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, &record, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing what %s says: %w", st.By, err)
	}
	done := map[SayAct]string{SayApprove: "approves", SayHold: "holds the pods", SayRelease: "releases the pods"}[st.Act]
	p.do(func(w *World) []Moment {
		return []Moment{w.moment(time.Now(), MomentStep, st.Node, "", fmt.Sprintf("%s %s (lifeboat %s)", st.By, done, st.Act))}
	})
	return nil
}

// sayPatch is the merge patch: it approves what policy currently requires approval for.
func sayPatch(st SayStatement, record *v1alpha1.Interruption, now time.Time) ([]byte, error) {
	say := &v1alpha1.UserAction{By: st.By, Time: metav1.NewMicroTime(now)}
	field := "hold"
	switch st.Act {
	case SayRelease:
		say = nil
	case SayApprove:
		facts := policy.Facts{Now: now, Notices: record.Spec.Notices, Answered: record.Status.HandledNotices}
		if record.Status.Since != nil {
			facts.Since = record.Status.Since.Time
		}
		d, ok := policy.Decide(facts)
		if !ok {
			return nil, fmt.Errorf("there is nothing to approve: no notice counts any more")
		}
		field, say.About = "approval", d.About
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{field: say}})
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return patch, nil
}
