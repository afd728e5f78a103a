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

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// userAction writes an operator's decision under that user's name. The patch is that of `lifeboat
// approve`, `hold` and `release`.
func (p *player) userAction(ctx context.Context, st UserActionStatement) error {
	who := rest.CopyConfig(p.sandbox.RESTConfig())
	who.Impersonate = rest.ImpersonationConfig{UserName: st.By, Groups: []string{"system:masters", "system:authenticated"}}
	c, err := client.New(who, client.Options{Scheme: p.client.Scheme()})
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", st.By, err)
	}
	var in v1beta1.Interruption
	if err := c.Get(ctx, types.NamespacedName{Name: p.nodes[st.Node].ID}, &in); err != nil {
		return fmt.Errorf("reading the Interruption of node %s: %w", st.Node, err)
	}
	patch, err := userActionPatch(st, &in, time.Now())
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, &in, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the action of %s: %w", st.By, err)
	}
	done := map[UserAction]string{UserApprove: "approves", UserHold: "holds the pods", UserRelease: "releases the pods"}[st.Act]
	p.do(func(w *World) []Moment {
		return []Moment{w.moment(time.Now(), MomentStep, st.Node, "", fmt.Sprintf("%s %s (lifeboat %s)", st.By, done, st.Act))}
	})
	return nil
}

// userActionPatch is the merge patch: it approves what policy currently requires approval for.
func userActionPatch(st UserActionStatement, in *v1beta1.Interruption, now time.Time) ([]byte, error) {
	action := &v1beta1.UserAction{By: st.By, Time: metav1.NewMicroTime(now)}
	field := "hold"
	switch st.Act {
	case UserRelease:
		action = nil
	case UserApprove:
		d, ok := policy.Decide(policy.Facts{Now: now, Notices: in.Spec.Notices, Answered: notice.Handled(&in.Status), Since: record.Since(&in.Status)})
		if !ok {
			return nil, fmt.Errorf("there is nothing to approve: no notice is active")
		}
		field, action.About = "approval", d.About
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{field: action}})
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return patch, nil
}
